"""One micro-batch from all shards: when it closes, how much it may hold, and what it carries. Pure; time comes in.

A batch closes when its oldest record has waited for the trigger's interval, or it holds the trigger's records or bytes,
whichever comes first; a shard's end, a hand-over and shutdown close it early. It can only close while no other batch is
being flushed; until then it fills, and at the cap `has_room` says no, which holds back statuses: that is all of
back-pressure. The buffer can pass the cap by one delivery per shard, since a delivery is accepted whole. A batch takes
what came first, cuts inside a delivery where need be (inside a KPL aggregate too), and leaves the rest to the next one:
its rows never exceed the trigger; its bytes do where a delivery's records differ much in size, for its rows are taken
for equally large; and dead letters go with the rows before them and are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kcl_spark.pipeline import Trigger
from kcl_spark.positions import Span
from kcl_spark.sinks.base import Entry
from kcl_spark.worker.deliveries import Chunk


@dataclass(frozen=True, slots=True)
class Slice:
    """One shard's part of a batch: consecutive chunks of one life, and the ledger entry that they build on."""

    shard_id: str
    life: int
    base: Entry
    chunks: tuple[Chunk, ...]

    @property
    def span(self) -> Span:
        """First to last position, and how many records."""
        records = sum(chunk.span.records for chunk in self.chunks)
        return Span(self.chunks[0].span.first, self.chunks[-1].span.last, records)


@dataclass(frozen=True, slots=True)
class Batch:
    """What is flushed together. The number is for humans only: no decision may rest on it (rule 1)."""

    number: int
    slices: tuple[Slice, ...]
    sealed_at: float

    @property
    def records(self) -> int:
        """Records of all shards."""
        return sum(part.span.records for part in self.slices)

    @property
    def size(self) -> int:
        """Bytes of all shards, as columns."""
        return sum(chunk.size for part in self.slices for chunk in part.chunks)


@dataclass(slots=True)
class Batcher:
    """The open batch.

    Args:
        trigger: when to close it.
    """

    trigger: Trigger
    records: int = 0
    size: int = 0
    _opened_at: float | None = None
    _early: bool = False
    _number: int = 0
    _chunks: dict[tuple[str, int], list[Chunk]] = field(default_factory=dict)

    def add(self, shard_id: str, life: int, chunk: Chunk) -> None:
        """Take a chunk; the interval runs from the first one's arrival."""
        if self._opened_at is None:
            self._opened_at = chunk.received_at
        self._chunks.setdefault((shard_id, life), []).append(chunk)
        self.records += chunk.span.records
        self.size += chunk.size

    def drop(self, shard_id: str, life: int) -> int:
        """Forget what a shard's life has buffered; return how many records that were."""
        dropped = self._chunks.pop((shard_id, life), [])
        records = sum(chunk.span.records for chunk in dropped)
        self.records -= records
        self.size -= sum(chunk.size for chunk in dropped)
        if not self._chunks:
            self._opened_at, self._early = None, False
        return records

    def close_early(self) -> None:
        """Ask for the batch at the next chance, whatever the trigger says; without records there is nothing to ask."""
        self._early = bool(self._chunks)

    @property
    def has_room(self) -> bool:
        """Whether another delivery may be invited."""
        return self.size < self.trigger.byte_limit and self.records < self.trigger.max_records

    def is_due(self, now: float) -> bool:
        """Whether the batch should close now."""
        if self._opened_at is None:
            return False
        return self._early or not self.has_room or now - self._opened_at >= self.trigger.interval_seconds

    @property
    def due_at(self) -> float | None:
        """When the interval will close the batch; None while it is empty."""
        return None if self._opened_at is None else self._opened_at + self.trigger.interval_seconds

    def seal(self, bases: dict[tuple[str, int], Entry], now: float) -> Batch:
        """Close the batch and open the next one.

        Args:
            bases: for each shard's life, the ledger entry that its next commit builds on.
            now: monotonic seconds.
        """
        self._number += 1
        taken = self._take()
        slices = tuple(
            Slice(shard_id, life, bases[shard_id, life], tuple(chunks)) for (shard_id, life), chunks in taken.items()
        )
        left = [chunk for chunks in self._chunks.values() for chunk in chunks]
        self.records, self.size = sum(chunk.span.records for chunk in left), sum(chunk.size for chunk in left)
        self._opened_at = min((chunk.received_at for chunk in left), default=None)
        self._early = self._early and bool(left)
        return Batch(self._number, slices, now)

    def _take(self) -> dict[tuple[str, int], list[Chunk]]:
        """Take what fits out of the buffer, in the order of arrival: no shard waits behind another's later records."""
        whole = self._chunks
        self._chunks = {}
        if self.records <= self.trigger.max_records and self.size <= self.trigger.byte_limit:
            return whole
        arrived = sorted(
            ((chunk, key) for key, chunks in whole.items() for chunk in chunks), key=lambda pair: pair[0].received_at
        )
        taken: dict[tuple[str, int], list[Chunk]] = {}
        records, size = self.trigger.max_records, self.trigger.byte_limit
        for chunk, key in arrived:
            # An empty batch takes a record whatever its size, or it would never be taken.
            fits = chunk.fitting(records, size, at_least=0 if taken else 1)
            head, rest = chunk.cut(fits) if records > 0 and size > 0 else (None, chunk)
            if head is not None:
                taken.setdefault(key, []).append(head)
                records, size = records - head.span.records, size - head.size
            if rest is not None:
                self._chunks.setdefault(key, []).append(rest)
                records = 0  # what came later stays behind: a shard's chunks must not overtake one another
        return taken
