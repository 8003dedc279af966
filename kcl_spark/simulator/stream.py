"""A stream in memory, by the rules that a consumer depends on. Deterministic: no clock, no randomness, no threads.

* A partition key's MD5 is a 128-bit number; each shard owns a closed range of them, and the open shards' ranges cover
  all numbers once.
* Sequence numbers are 56 digits wide, ascend within a shard, and are greater in a child than in its parents.
* A split or a merge closes its shards; what was put into them stays readable; their children begin where they end.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from kcl_spark.errors import UsageError
from kcl_spark.positions import Position
from kcl_spark.protocol import Record

KEYS: Final = 1 << 128
"""How many hash keys there are."""

_FIRST: Final = 495903 * 10**50
_STRIDE: Final = 16
"""Sequence numbers begin as Kinesis' do in 2026 and leave room between each other."""


def hash_key(partition_key: str) -> int:
    """The number that decides which shard a partition key belongs to."""
    return int.from_bytes(hashlib.md5(partition_key.encode(), usedforsecurity=False).digest())


@dataclass(slots=True)
class Shard:
    """One shard: its range of hash keys, where it came from, and what is in it and not yet forgotten."""

    shard_id: str
    first_key: int
    last_key: int
    parents: tuple[str, ...] = ()
    closed: bool = False
    records: deque[Record] = field(default_factory=deque)
    read: int = 0

    def next(self, limit: int) -> list[Record]:
        """Read on from where the reader is."""
        batch = list(islice(self.records, self.read, self.read + limit))
        self.read += len(batch)
        return batch

    def rewind(self, after: Position | None) -> None:
        """Put the reader behind a position, or at the beginning of what is kept."""
        self.read = 0
        if after is not None:
            places = [int(record.sequence_number) for record in self.records]
            self.read = bisect_right(places, after.sequence)

    def forget(self, until: Position) -> None:
        """Drop what is checkpointed; a reader never goes back behind it."""
        while self.records and self.read and int(self.records[0].sequence_number) <= until.sequence:
            self.records.popleft()
            self.read -= 1

    @property
    def unread(self) -> int:
        """Records that the reader has not seen."""
        return len(self.records) - self.read


class Stream:
    """A stream of `shards` shards of equal width.

    Raises:
        UsageError: fewer than one shard.
    """

    def __init__(self, shards: int) -> None:
        if shards < 1:
            raise UsageError(f"a stream of {shards} shards can't be made", "Give --shards at least 1")
        self.shards: dict[str, Shard] = {}
        self.put_count = 0
        width = KEYS // shards
        for index in range(shards):
            last = KEYS - 1 if index == shards - 1 else (index + 1) * width - 1
            self._open(index * width, last, ())

    def put(self, data: bytes, partition_key: str, arrival_millis: int) -> Record:
        """Store a record in the open shard that its key belongs to."""
        self.put_count += 1
        number = str(_FIRST + self.put_count * _STRIDE)
        record = Record(data, partition_key, number, 0, arrival_millis)
        self.shard_of(partition_key).records.append(record)
        return record

    def shard_of(self, partition_key: str) -> Shard:
        """The open shard of a key: there is exactly one."""
        key = hash_key(partition_key)
        return next(shard for shard in self.open_shards() if shard.first_key <= key <= shard.last_key)

    def open_shards(self) -> list[Shard]:
        """Those that take records, in the order of their ranges."""
        return sorted((s for s in self.shards.values() if not s.closed), key=lambda shard: shard.first_key)

    @property
    def unread(self) -> int:
        """Records that no reader has seen yet."""
        return sum(shard.unread for shard in self.shards.values())

    def split(self, shard_id: str) -> tuple[Shard, Shard]:
        """Close a shard and open two halves of it.

        Raises:
            UsageError: it is not open, or has only one hash key.
        """
        parent = self._close(shard_id)
        middle = (parent.first_key + parent.last_key) // 2
        if middle == parent.last_key:
            raise UsageError(f"{shard_id} has one hash key and can't be split", "Split another shard")
        lower = self._open(parent.first_key, middle, (shard_id,))
        return lower, self._open(middle + 1, parent.last_key, (shard_id,))

    def merge(self, left: str, right: str) -> Shard:
        """Close two adjacent shards and open one over both.

        Raises:
            UsageError: they are not open or not adjacent.
        """
        first, second = sorted((self._find(left), self._find(right)), key=lambda shard: shard.first_key)
        if first.last_key + 1 != second.first_key:
            raise UsageError(f"{left} and {right} are not adjacent", "Merge neighbours")
        self._close(left)
        self._close(right)
        return self._open(first.first_key, second.last_key, (first.shard_id, second.shard_id))

    def _open(self, first_key: int, last_key: int, parents: tuple[str, ...]) -> Shard:
        shard = Shard(f"shardId-{len(self.shards):012d}", first_key, last_key, parents)
        self.shards[shard.shard_id] = shard
        return shard

    def _find(self, shard_id: str) -> Shard:
        shard = self.shards.get(shard_id)
        if shard is None or shard.closed:
            raise UsageError(
                f"{shard_id} is no open shard", f"Open are {', '.join(s.shard_id for s in self.open_shards())}"
            )
        return shard

    def _close(self, shard_id: str) -> Shard:
        shard = self._find(shard_id)
        shard.closed = True
        return shard
