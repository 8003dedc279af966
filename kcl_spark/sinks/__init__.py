"""Where rows go: `sinks.delta("out/flights")`."""

from kcl_spark.sinks.base import Entry, Move, OpenSink, Sink, Staged
from kcl_spark.sinks.delta import delta
from kcl_spark.sinks.delta.compaction import Compaction
from kcl_spark.sinks.memory import memory

__all__ = ["Compaction", "Entry", "Move", "OpenSink", "Sink", "Staged", "delta", "memory"]
