"""Every error says its cause and its remedy in one line, and carries the exit code of the process that ends by it.

    KclSparkError                     1
    ├─ UsageError                     2   an option, a pipeline file, a properties file, a missing program
    ├─ ProtocolError                 65   the conversation with the daemon broke
    │   ├─ LocalProtocolError             we would have broken it
    │   └─ RemoteProtocolError            they broke it
    ├─ DataLossError                 66   going on would skip records: an operator decides
    ├─ ShardStopped                  67   one shard cannot go on; the others do
    │   ├─ SequenceWentBackwards
    │   ├─ DeadLetterLimitExceeded
    │   └─ DeadLetterRefused
    ├─ TransformBroken               68   the user's transform fails for every record
    ├─ SinkError                     69
    │   ├─ TableRefused                   a table we could only write to by corrupting it
    │   ├─ SchemaDrift                    the batch does not have the table's columns
    │   ├─ CommitConflict                 somebody else moved a shard's mark: read again, cut, try again
    │   └─ OutcomeUnknown                 the commit may or may not have happened: read back
    ├─ SpoolError                    70   local disk
    ├─ EngineGone                    71   a child lost its engine
    ├─ SparkGone                     72   the Spark session died
    └─ DaemonFailed                  73   the MultiLangDaemon could not be started or kept dying

A leaf is one cause; `remedy` is what the reader can do about it.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """How a process of kcl-spark ends. Documented in docs/exit-codes.md, which a test holds against this list."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    PROTOCOL = 65
    DATA_LOSS = 66
    SHARD_STOPPED = 67
    TRANSFORM_BROKEN = 68
    SINK = 69
    SPOOL = 70
    ENGINE_GONE = 71
    SPARK_GONE = 72
    DAEMON_FAILED = 73


class KclSparkError(Exception):
    """Base of every error that kcl-spark raises on purpose.

    Args:
        cause: what happened, one line, no trailing full stop.
        remedy: what the reader can do about it, one line; empty where there is nothing to do.
    """

    exit_code: ExitCode = ExitCode.FAILURE

    def __init__(self, cause: str, remedy: str = "") -> None:
        super().__init__(cause, remedy)
        self.cause = cause
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.cause}. {self.remedy}" if self.remedy else self.cause


class UsageError(KclSparkError):
    """Something the user wrote or the machine lacks; nothing has been started."""

    exit_code = ExitCode.USAGE


class ProtocolError(KclSparkError):
    """The conversation between daemon and child broke; the connection cannot be used again."""

    exit_code = ExitCode.PROTOCOL


class LocalProtocolError(ProtocolError):
    """This side asked for something that the protocol forbids in this state."""


class RemoteProtocolError(ProtocolError):
    """The other side sent something that the protocol forbids in this state."""


class DataLossError(KclSparkError):
    """The lease and the table disagree so that going on would skip records silently."""

    exit_code = ExitCode.DATA_LOSS


class ShardStopped(KclSparkError):
    """One shard cannot go on: its lease is held, nothing past its mark is committed, the other shards go on."""

    exit_code = ExitCode.SHARD_STOPPED


class SequenceWentBackwards(ShardStopped):
    """A record came after one with a greater position, which Kinesis promises never to do within a shard."""


class DeadLetterLimitExceeded(ShardStopped):
    """Too many of the shard's records are dead letters for this to be a matter of single records."""


class DeadLetterRefused(ShardStopped):
    """A record is a dead letter and the pipeline names no place for it."""


class TransformBroken(KclSparkError):
    """The transform fails for every record, so the fault is the transform's and not the data's."""

    exit_code = ExitCode.TRANSFORM_BROKEN


class SinkError(KclSparkError):
    """The sink refused or failed."""

    exit_code = ExitCode.SINK


class TableRefused(SinkError):
    """The table has a feature that a raw commit would violate without a word."""


class SchemaDrift(SinkError):
    """The batch's columns are not the table's."""


class CommitConflict(SinkError):
    """Another commit touched one of the batch's shards since their entries were read."""


class OutcomeUnknown(SinkError):
    """The commit failed in a way that does not say whether it happened."""


class SpoolError(KclSparkError):
    """The local disk that batches pass through refused to take one."""

    exit_code = ExitCode.SPOOL


class EngineGone(KclSparkError):
    """The engine that holds this child's shard has ended."""

    exit_code = ExitCode.ENGINE_GONE


class SparkGone(KclSparkError):
    """The Spark session's JVM does not answer any more."""

    exit_code = ExitCode.SPARK_GONE


class DaemonFailed(KclSparkError):
    """The MultiLangDaemon could not be started, or ended again and again."""

    exit_code = ExitCode.DAEMON_FAILED
