"""The worker: every shard of a daemon in one process, one micro-batch from all of them, one commit for all."""
