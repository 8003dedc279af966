"""Marks inside the Delta log: a position as `txn` actions of the commit that carries the rows.

A Delta `txn` action holds one signed 64-bit number under an application id, and the log keeps the latest of each id
through checkpoints and log cleanup. A sequence number has 186 bits, so it is kept as 62-bit limbs:

    kcl-spark/<pipeline>/<shard>        how many commits have touched the shard: the fence compares it
    kcl-spark/<pipeline>/<shard>#0…     limbs of the sequence number, least significant first
    kcl-spark/<pipeline>/<shard>#sub    sub-sequence number
    kcl-spark/<pipeline>#stream         fingerprint of the stream's name, so that a ledger is not used for another one

`lastUpdated` is left out of every action: with it, a table that sets delta.setTransactionRetentionDuration would lose
the marks of idle shards (seen: such entries read as None).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from deltalake import DeltaTable, Transaction

from kcl_spark.positions import LIMB_BITS, Position, from_limbs, to_limbs
from kcl_spark.sinks.base import Entry, Move


def read_version(table: DeltaTable, ledger: str, shard_id: str) -> int:
    """How many commits have touched the shard; 0 for one that the ledger does not know."""
    return table.transaction_version(_id(ledger, shard_id)) or 0


def read_entry(table: DeltaTable, ledger: str, shard_id: str) -> Entry:
    """The shard's entry in the table's loaded state."""
    version = read_version(table, ledger, shard_id)
    limbs = list(_limbs(table, _id(ledger, shard_id))) if version else []
    if not limbs:
        return Entry(version, None)
    sub = table.transaction_version(f"{_id(ledger, shard_id)}#sub") or 0
    return Entry(version, Position(from_limbs(limbs), sub))


def read_stream(table: DeltaTable, ledger: str) -> int | None:
    """The fingerprint of the stream that the ledger was begun on, where one was given."""
    return table.transaction_version(_stream_id(ledger))


def transactions(ledger: str, moves: Iterable[Move]) -> list[Transaction]:
    """The `txn` actions that move the marks.

    Application ids must be unique within a commit: delta-rs takes a second one without a word and keeps the first.

    Raises:
        ValueError: a shard is moved twice.
    """
    actions = [action for move in moves for action in _of(ledger, move)]
    if len({action.app_id for action in actions}) < len(actions):
        raise ValueError("a commit moves each shard once")
    return actions


def stream_transaction(ledger: str, stream: str) -> Transaction:
    """The `txn` action that ties the ledger to a stream."""
    return Transaction(_stream_id(ledger), fingerprint(stream))


def fingerprint(stream: str) -> int:
    """62 bits of a hash of the stream's name."""
    return int.from_bytes(hashlib.sha256(stream.encode()).digest()[:8]) >> (64 - LIMB_BITS)


def _of(ledger: str, move: Move) -> Iterator[Transaction]:
    app_id, entry = _id(ledger, move.shard_id), move.entry
    yield Transaction(app_id, entry.version)
    if entry.mark is not None:
        for index, limb in enumerate(to_limbs(entry.mark.sequence)):
            yield Transaction(f"{app_id}#{index}", limb)
        yield Transaction(f"{app_id}#sub", entry.mark.sub)


def _limbs(table: DeltaTable, app_id: str) -> Iterator[int]:
    index = 0
    while (limb := table.transaction_version(f"{app_id}#{index}")) is not None:
        yield limb
        index += 1


def _id(ledger: str, shard_id: str) -> str:
    return f"kcl-spark/{ledger}/{shard_id}"


def _stream_id(ledger: str) -> str:
    return f"kcl-spark/{ledger}#stream"
