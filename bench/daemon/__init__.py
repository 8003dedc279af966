"""Throughput under the daemon's own record processors."""
