"""The worker: every shard of one daemon in one process, one micro-batch from all of them, one commit for all of them."""
