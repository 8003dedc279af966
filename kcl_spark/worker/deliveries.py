"""What one `processRecords` becomes: a chunk of columns that knows its positions. Positions travel with the data.

A delivery is judged by three rules before a byte of it is kept:

1. Its records ascend strictly, and go on after what was delivered before; a record equal to the one before it is the
   same record delivered twice and is dropped; anything else that goes backwards stops the shard, because Kinesis
   promises that it cannot happen and dropping it could drop data.
2. What the ledger already holds is dropped (rule 2 of the design).
3. A record whose base64 is broken is a dead letter from the start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from kcl_spark.errors import SequenceWentBackwards
from kcl_spark.positions import Position, Span
from kcl_spark.protocol import ProcessRecords, Record
from kcl_spark.worker.columns import strictly_ascending, to_columns

_PER_DEAD_LETTER = 200
"""Bytes that a dead letter costs beside its payload, for the memory cap's account."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that can't become a row, with what is needed to find, judge and replay it."""

    position: Position
    partition_key: str | None
    arrival_time: datetime | None
    payload: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """The part of one delivery that is new: columns, dead letters, and the span of positions that both cover."""

    span: Span
    columns: pa.RecordBatch
    dead: tuple[DeadLetter, ...] = ()
    received_at: float = 0.0
    size: int = field(default=0)

    @classmethod
    def of(cls, records: list[Record], undecodable: dict[int, str], received_at: float) -> Chunk:
        """Build a chunk from records in ascending order; there must be at least one."""
        dead = tuple(_undecodable(records[index], text) for index, text in undecodable.items())
        good = [r for index, r in enumerate(records) if index not in undecodable] if undecodable else records
        return cls._of(Span(place(records[0]), place(records[-1]), len(records)), to_columns(good), dead, received_at)

    @classmethod
    def _of(cls, span: Span, columns: pa.RecordBatch, dead: tuple[DeadLetter, ...], received_at: float) -> Chunk:
        size = columns.nbytes + sum(len(letter.payload) + _PER_DEAD_LETTER for letter in dead)
        return cls(span, columns, dead, received_at, size)

    def fitting(self, records: int, size: int, *, at_least: int) -> int:
        """How many of its rows go into so many records and bytes, taking all rows for equally large."""
        by_size = int(size * self.columns.num_rows) // max(self.size, 1)
        return max(at_least, min(records, by_size))

    def cut(self, rows: int) -> tuple[Chunk | None, Chunk | None]:
        """Cut behind so many rows; a dead letter goes with the rows before it. Either part may be nothing."""
        if rows >= self.columns.num_rows:
            return self, None
        if rows <= 0:
            return None, self
        last, first = self._place(rows - 1), self._place(rows)
        before = tuple(letter for letter in self.dead if letter.position < first)
        behind = self.dead[len(before) :]
        end = max([last, *(letter.position for letter in before)])
        head = Span(self.span.first, end, rows + len(before))
        rest = Span(first, self.span.last, self.span.records - head.records)
        return (
            self._of(head, self.columns.slice(0, rows), before, self.received_at),
            self._of(rest, self.columns.slice(rows), behind, self.received_at),
        )

    def _place(self, row: int) -> Position:
        sequence, sub = (self.columns[name][row].as_py() for name in ("_sequence_number", "_sub_sequence_number"))
        return Position.parse(sequence, sub)


def place(record: Record) -> Position:
    """The record's position.

    Raises:
        ValueError: the daemon sent something that is no sequence number.
    """
    return Position.parse(record.sequence_number, record.sub_sequence_number)


def in_order(shard_id: str, event: ProcessRecords, delivered: Position | None) -> ProcessRecords:
    """Apply rule 1: return the delivery without repeated records.

    Args:
        shard_id: for the error.
        event: the delivery.
        delivered: the last position of the delivery before; None for the first.

    Raises:
        SequenceWentBackwards: a record came after one with a greater position.
    """
    records = event.records
    if records and strictly_ascending(records):
        first, last = (_checked(shard_id, record, None) for record in (records[0], records[-1]))
        if first <= last and (delivered is None or first > delivered):
            return event
    return _without_repeats(shard_id, event, delivered)


def _without_repeats(shard_id: str, event: ProcessRecords, delivered: Position | None) -> ProcessRecords:
    kept: list[Record] = []
    undecodable: dict[int, str] = {}
    for index, record in enumerate(event.records):
        position = _checked(shard_id, record, delivered)
        if position == delivered:
            continue
        if index in event.undecodable:
            undecodable[len(kept)] = event.undecodable[index]
        kept.append(record)
        delivered = position
    return ProcessRecords(kept, event.millis_behind_latest, undecodable)


def _checked(shard_id: str, record: Record, before: Position | None) -> Position:
    try:
        position = place(record)
    except ValueError as error:
        raise SequenceWentBackwards(f"shard {shard_id}: {error}", "The daemon sent a record without a place") from None
    if before is not None and position < before:
        raise SequenceWentBackwards(
            f"shard {shard_id}: record {position} came after {before}",
            "Kinesis promises ascending order within a shard: look for a proxy or emulator that reorders, "
            "or for two streams behind one name",
        )
    return position


def after(event: ProcessRecords, done: Position | None) -> ProcessRecords:
    """Apply rule 2: return the part of an ordered delivery that lies behind `done`."""
    if done is None or not event.records or place(event.records[0]) > done:
        return event
    cut = _first_after(event.records, done)
    undecodable = {index - cut: text for index, text in event.undecodable.items() if index >= cut}
    return ProcessRecords(event.records[cut:], event.millis_behind_latest, undecodable)


def _first_after(records: list[Record], done: Position) -> int:
    low, high = 0, len(records)
    while low < high:
        middle = (low + high) // 2
        if place(records[middle]) > done:
            high = middle
        else:
            low = middle + 1
    return low


def letter_of(row: Mapping[str, Any], payload: bytes, reason: str) -> DeadLetter:
    """Make a dead letter of a row of columns."""
    position = Position.parse(row["_sequence_number"], row["_sub_sequence_number"])
    return DeadLetter(position, row["_partition_key"], row["_arrival_time"], payload, reason)


def _undecodable(record: Record, text: str) -> DeadLetter:
    arrival = record.approximate_arrival_timestamp
    return DeadLetter(
        position=place(record),
        partition_key=record.partition_key,
        arrival_time=None if arrival is None else datetime.fromtimestamp(arrival / 1000, UTC),
        payload=text.encode("utf-8", "surrogatepass"),
        reason="the record's data is not base64",
    )
