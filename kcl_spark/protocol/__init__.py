"""The multi-language protocol as a pure state machine (model: h11): no I/O, no clock, no threads, no log."""

from kcl_spark.protocol.connection import MAX_LINE, NEED_DATA, PAUSED, Connection, NeedData, Paused
from kcl_spark.protocol.events import (
    Action,
    Checkpoint,
    CheckpointAnswer,
    Closed,
    Event,
    FromChild,
    FromDaemon,
    Initialize,
    LeaseLost,
    ProcessRecords,
    Record,
    ShardEnded,
    ShutdownRequested,
    Status,
)
from kcl_spark.protocol.states import TRANSITIONS, Role, State, speaker

__all__ = [
    "MAX_LINE",
    "NEED_DATA",
    "PAUSED",
    "TRANSITIONS",
    "Action",
    "Checkpoint",
    "CheckpointAnswer",
    "Closed",
    "Connection",
    "Event",
    "FromChild",
    "FromDaemon",
    "Initialize",
    "LeaseLost",
    "NeedData",
    "Paused",
    "ProcessRecords",
    "Record",
    "Role",
    "ShardEnded",
    "ShutdownRequested",
    "State",
    "Status",
    "speaker",
]
