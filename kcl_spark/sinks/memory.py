"""A table in memory: for tests of pipelines and of the worker, and the plainest reading of the sink contract.

It keeps what a ledger needs and nothing else, passes the same contract suite as the real sinks, and lives and dies with
the object: two openings of one `MemorySink` see the same table, as two workers would.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from threading import RLock
from typing import TYPE_CHECKING, Any

from kcl_spark.errors import CommitConflict, SchemaDrift
from kcl_spark.positions import Position
from kcl_spark.sinks.base import Entry, Move, Staged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

Row = dict[str, Any]


@dataclass
class MemoryTable:
    """What is durable: rows in the order of their commits, and for each ledger its entries.

    `commits` keeps the moves of each commit, so that a test can look at their order.
    """

    rows: list[Row] = field(default_factory=list)
    entries: dict[tuple[str, str], Entry] = field(default_factory=dict)
    commits: list[tuple[Move, ...]] = field(default_factory=list)
    columns: list[str] | None = None
    lock: RLock = field(default_factory=RLock)


@dataclass(frozen=True)
class MemorySink:
    """Declares a table in memory."""

    name: str = "memory"
    table: MemoryTable = field(default_factory=MemoryTable, compare=False)

    @property
    def place(self) -> str:
        """A name, since there is no place."""
        return f"memory:{self.name}"

    def open(self, ledger: str, stream: str | None = None) -> OpenMemory:  # noqa: ARG002 - the contract's signature
        """Open the table."""
        return OpenMemory(self.table, ledger)


class OpenMemory:
    """The table in use by one worker."""

    def __init__(self, table: MemoryTable, ledger: str) -> None:
        self._table = table
        self._ledger = ledger

    def check(self, schema: StructType) -> None:
        """See `OpenSink.check`."""
        names = schema.fieldNames()
        if self._table.columns not in (None, names):
            raise SchemaDrift(f"the table has {self._table.columns}, the batch has {names}", "Use another sink")
        self._table.columns = names

    def entries(self, shard_ids: Collection[str]) -> Mapping[str, Entry]:
        """See `OpenSink.entries`."""
        with self._table.lock:
            return {shard_id: self._table.entries.get((self._ledger, shard_id), Entry()) for shard_id in shard_ids}

    def stage(self, frame: DataFrame, name: str) -> Staged:  # noqa: ARG002 - the contract's signature
        """See `OpenSink.stage`; the rows are collected."""
        rows = [row.asDict() for row in frame.collect()]
        return Staged(len(rows), 0, rows)

    def commit(self, staged: Staged | None, moves: Sequence[Move]) -> None:
        """See `OpenSink.commit`."""
        with self._table.lock:
            known = self.entries([move.shard_id for move in moves])
            for move in moves:
                if known[move.shard_id].version != move.base.version:
                    raise CommitConflict(f"shard {move.shard_id} was moved by another commit")
            self._table.rows.extend(staged.token if staged and isinstance(staged.token, list) else [])
            self._table.entries.update({(self._ledger, move.shard_id): move.entry for move in moves})
            self._table.commits.append(tuple(moves))

    def identities(self, shard_id: str, after: Position | None) -> set[Position]:
        """See `OpenSink.identities`."""
        with self._table.lock:
            rows = [row for row in self._table.rows if row["_shard_id"] == shard_id]
        places = {Position.parse(row["_sequence_number"], row["_sub_sequence_number"]) for row in rows}
        return {place for place in places if after is None or place > after}

    def abandon(self, staged: Staged) -> None:
        """See `OpenSink.abandon`; there is nothing to remove."""

    def close(self) -> None:
        """See `OpenSink.close`."""


def memory(name: str = "memory") -> MemorySink:
    """Keep the rows in memory; for tests."""
    return MemorySink(name)
