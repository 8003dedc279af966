"""The nouns of the multi-language protocol: what daemon and child say to each other, one frozen object a line.

An event is a message that has happened; it holds no bytes, no clock and no connection. Field names are the wire's in
snake case. Source of the field sets: reference of the MultiLangDaemon 2.1 to 3.5, `messages` package; every nullable
field arrives as an explicit null.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec


class Record(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One user record; records of one KPL aggregate share `sequence_number` and differ in `sub_sequence_number`.

    `approximate_arrival_timestamp` is in epoch milliseconds.
    """

    data: bytes | None
    partition_key: str | None
    sequence_number: str
    sub_sequence_number: int | None = 0
    approximate_arrival_timestamp: int | None = None


class _Message(msgspec.Struct, frozen=True, rename="camel", tag_field="action", kw_only=False):
    """A message with an `action`; `kind` is the word that the state table knows it by."""

    @property
    def kind(self) -> str:
        return str(self.__struct_config__.tag)


class Initialize(_Message, frozen=True, tag="initialize"):
    """The first message: which shard, and the lease's checkpoint (digits, a sentinel, or null)."""

    shard_id: str
    sequence_number: str | None = None
    sub_sequence_number: int | None = None


class ProcessRecords(_Message, frozen=True, tag="processRecords"):
    """Records in shard order; empty where the daemon is told to tick idle shards.

    `undecodable` names the records whose `data` was no base64, by index, with the text that came instead;
    it never travels.
    """

    records: list[Record]
    millis_behind_latest: int | None = None
    undecodable: dict[int, str] = {}


class LeaseLost(_Message, frozen=True, tag="leaseLost"):
    """The lease is gone: no checkpoint is possible any more."""


class ShardEnded(_Message, frozen=True, tag="shardEnded"):
    """The shard is read to its end; its children start once a null checkpoint has been taken."""


class ShutdownRequested(_Message, frozen=True, tag="shutdownRequested"):
    """The lease will be given up after the answer: the last chance to checkpoint."""


class CheckpointAnswer(_Message, frozen=True, tag="checkpoint"):
    """The answer to `Checkpoint`: an echo of what was asked, and the Java class name of the error, if any.

    An error does not prove that nothing was stored.
    """

    sequence_number: str | None = None
    sub_sequence_number: int | None = None
    error: str | None = None

    @property
    def kind(self) -> str:
        """On the wire both are a `checkpoint`; the state table tells asking from answering."""
        return "answer(checkpoint)"


class Checkpoint(_Message, frozen=True, tag="checkpoint"):
    """Ask the daemon to store a place; a null sequence number means "all that was delivered", or the shard's end."""

    sequence_number: str | None = None
    sub_sequence_number: int | None = None


class Status(_Message, frozen=True, tag="status"):
    """The action named by `response_for` is done; the daemon may send the next one."""

    response_for: str

    @property
    def kind(self) -> str:
        """The state table tells statuses apart by what they answer."""
        return f"status({self.response_for})"


class Closed(msgspec.Struct, frozen=True):
    """The other side closed the pipe between two lines."""

    kind: ClassVar[str] = "eof"


Action = Initialize | ProcessRecords | LeaseLost | ShardEnded | ShutdownRequested
FromDaemon = Action | CheckpointAnswer
FromChild = Checkpoint | Status
Event = FromDaemon | FromChild | Closed
