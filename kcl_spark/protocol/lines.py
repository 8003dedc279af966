"""Bytes of one line ⇄ one event, with exactly the keys that the daemon's parser allows.

Reading what the daemon says is liberal where it may grow (unknown fields, null fields, key order) and strict where
guessing would lose data (unknown actions, broken JSON). Writing has no freedom at all: the daemon skips a line with one
unknown key and then waits for ever, so the event types *are* the key sets; in the daemon's role we read as it does.

base64 is decoded by the JSON parser itself (msgspec), in the same pass; `bench/decode.py` measures it beside kclpy's.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kcl_spark.errors import RemoteProtocolError
from kcl_spark.protocol.events import (
    Checkpoint,
    CheckpointAnswer,
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
from kcl_spark.protocol.states import Role

_EXCERPT = 80
"""Characters of a foreign line shown in an error: enough to recognise it, too few to leak a payload."""


class _IncomingRecords(msgspec.Struct, tag="processRecords", tag_field="action", rename="camel"):
    """`ProcessRecords` as it travels, without the field that never does."""

    records: list[Record]
    millis_behind_latest: int | None = None


class _TextRecord(msgspec.Struct, gc=False, rename="camel"):
    """A record whose `data` is kept as text: the slow path, taken only when some record's base64 is broken."""

    data: str | None
    partition_key: str | None
    sequence_number: str
    sub_sequence_number: int | None = 0
    approximate_arrival_timestamp: int | None = None


class _TextRecords(msgspec.Struct, tag="processRecords", tag_field="action", rename="camel"):
    records: list[_TextRecord]
    millis_behind_latest: int | None = None


class _StrictCheckpoint(
    msgspec.Struct, tag="checkpoint", tag_field="action", rename="camel", forbid_unknown_fields=True
):
    """`Checkpoint` as the daemon reads it: one unknown key, and the line is nothing to it."""

    sequence_number: str | None = None
    sub_sequence_number: int | None = None
    error: str | None = None


class _StrictStatus(msgspec.Struct, tag="status", tag_field="action", rename="camel", forbid_unknown_fields=True):
    response_for: str


_from_daemon: Final[msgspec.json.Decoder[FromDaemon | _IncomingRecords]] = msgspec.json.Decoder(
    Initialize | _IncomingRecords | LeaseLost | ShardEnded | ShutdownRequested | CheckpointAnswer
)
_from_daemon_as_text: Final = msgspec.json.Decoder(_TextRecords)
_from_child: Final[msgspec.json.Decoder[_StrictCheckpoint | _StrictStatus]] = msgspec.json.Decoder(
    _StrictCheckpoint | _StrictStatus
)
_base64: Final = msgspec.json.Decoder(bytes)
_encoder: Final = msgspec.json.Encoder()


def encode(event: Event) -> bytes:
    """Write an event as the daemon or the child would: a line feed before and after.

    The one before ends a line that foreign output may have begun; empty lines are ignored by both sides.
    """
    if isinstance(event, ProcessRecords):
        event = _IncomingRecords(event.records, event.millis_behind_latest)  # type: ignore[assignment]
    return b"\n" + _encoder.encode(event) + b"\n"


def decode(line: bytes | bytearray | memoryview, sender: Role) -> FromDaemon | FromChild:
    """Read one line (without its end) that `sender` wrote.

    Raises:
        RemoteProtocolError: no JSON, no known action, or a field of a wrong type.
    """
    try:
        if sender is Role.CHILD:
            return _as_the_daemon_reads(_from_child.decode(line))
        event = _from_daemon.decode(line)
    except msgspec.ValidationError as error:
        if sender is Role.DAEMON and "base64" in str(error):
            return _decode_around_bad_base64(line)
        raise _foreign(line, str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _foreign(line, _reason(error)) from None
    if isinstance(event, _IncomingRecords):
        return ProcessRecords(event.records, event.millis_behind_latest)
    return event


def _as_the_daemon_reads(message: _StrictCheckpoint | _StrictStatus) -> FromChild:
    if isinstance(message, _StrictStatus):
        return Status(message.response_for)
    return Checkpoint(message.sequence_number, message.sub_sequence_number)


def _reason(error: msgspec.MsgspecError | UnicodeDecodeError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8: start the daemon with -Dfile.encoding=UTF-8"
    return str(error)


def _foreign(line: bytes | bytearray | memoryview, reason: str) -> RemoteProtocolError:
    excerpt = bytes(line[:_EXCERPT]).decode("utf-8", "replace")
    return RemoteProtocolError(f"a line that is no message ({reason}): {excerpt!r}")


def _decode_around_bad_base64(line: bytes | bytearray | memoryview) -> ProcessRecords:
    """Read a batch in which some record's data is no base64, so that one bad record costs only itself."""
    try:
        batch = _from_daemon_as_text.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _foreign(line, _reason(error)) from None
    undecodable: dict[int, str] = {}
    records: list[Record] = []
    for index, record in enumerate(batch.records):
        data = _unbase64(record.data)
        if data is None:
            undecodable[index] = record.data or ""
        records.append(
            Record(
                data,
                record.partition_key,
                record.sequence_number,
                record.sub_sequence_number,
                record.approximate_arrival_timestamp,
            )
        )
    return ProcessRecords(records, batch.millis_behind_latest, undecodable)


def _unbase64(text: str | None) -> bytes | None:
    """Decode by the same rules as the fast path, so that a record does not change its fate with its neighbours."""
    if text is None:
        return b""
    try:
        return _base64.decode(msgspec.json.encode(text))
    except (msgspec.MsgspecError, UnicodeEncodeError):
        return None
