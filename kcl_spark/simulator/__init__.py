"""A stream and a daemon without AWS: the same pipeline file, child and engine as ever, and real pipes between them."""
