"""Pipelines to read, copy and run."""
