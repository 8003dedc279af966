"""The contract of every sink: a table that is its own ledger.

A commit makes rows visible and moves the marks of the shards they came from, in one transaction (rule 2). It succeeds
only if no other commit has moved one of those marks since their entries were read (rule 4, the fence). Whoever calls
`commit` and gets anything but success or `CommitConflict` does not know what happened and reads `entries` (rule 5).

Every sink passes one suite of tests, tests/sinks/contract.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kcl_spark.positions import Position

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


class Entry(NamedTuple):
    """What the ledger holds about a shard.

    `version` counts the shard's commits and is compared for equality only: it is what the fence looks at. `mark` is the
    last position whose fate is settled. A shard that the ledger does not know has `Entry()`.
    """

    version: int = 0
    mark: Position | None = None


class Move(NamedTuple):
    """One shard's part in a commit: from the entry that was read to a new mark; `records` is for the history.

    A move to the mark that the entry has already only counts the version up: it fences older lives (a claim).
    """

    shard_id: str
    base: Entry
    mark: Position | None
    records: int

    @property
    def entry(self) -> Entry:
        """The ledger's entry once the commit is done."""
        return Entry(self.base.version + 1, self.mark)


class Staged(NamedTuple):
    """Rows that are written and that nobody sees; `token` is the sink's own handle."""

    rows: int
    size: int
    token: object


class OpenSink(Protocol):
    """A sink in use by one worker. Any method may be called from any thread, one at a time each."""

    def check(self, schema: StructType) -> None:
        """Compare the columns that will come with the table's. Blocks for one read of the table's state.

        Raises:
            TableRefused: the table has features that this sink would violate.
            SchemaDrift: the columns differ in a way that was not asked for.
        """

    def entries(self, shard_ids: Collection[str]) -> Mapping[str, Entry]:
        """Read the ledger; every shard asked for is in the answer. Blocks for one read of the table's state.

        Raises:
            SinkError: the table can't be read.
        """

    def stage(self, frame: DataFrame, name: str) -> Staged:
        """Write the frame's rows where a commit can pick them up; runs a Spark job and blocks for it.

        Raises:
            whatever the job raises: the caller tells a failing transform from a failing disk. Nothing is left behind.
        """

    def commit(self, staged: Staged | None, moves: Sequence[Move]) -> None:
        """Make the staged rows visible and move the marks, both or neither. Blocks.

        Raises:
            CommitConflict: it did not happen, another commit moved one of the shards.
            SchemaDrift, TableRefused: it did not happen and will not.
            OutcomeUnknown: read `entries`.
        """

    def identities(self, shard_id: str, after: Position | None) -> set[Position]:
        """Positions of the visible rows of a shard that lie behind `after`; needs the metadata columns in the table.

        Asked of dead-letter sinks only, and only after a crash between two commits.

        Raises:
            SinkError: the table can't be read.
        """

    def abandon(self, staged: Staged) -> None:
        """Remove staged rows that were not committed. Never raises: what stays behind is invisible and collectable."""

    def close(self) -> None:
        """Let go of threads, connections and background work."""


class Sink(Protocol):
    """A sink as a user declares it: frozen, checked when made, nothing opened."""

    @property
    def place(self) -> str:
        """Where the rows go, for messages and to tell two sinks apart."""

    def open(self, ledger: str, stream: str | None = None) -> OpenSink:
        """Open it for the ledger of that name (the pipeline's), which is tied to the stream where that is given.

        Does not need Spark.

        Raises:
            SinkError: it can't be reached.
        """
