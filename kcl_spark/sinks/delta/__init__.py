"""`sinks.delta(...)`: a Delta table that is its own ledger, without a Delta jar: Spark writes, delta-rs commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from kcl_spark.errors import UsageError
from kcl_spark.sinks.delta.compaction import Compaction
from kcl_spark.sinks.delta.place import Place

if TYPE_CHECKING:
    from kcl_spark.sinks.delta.table import OpenDelta

PARQUET: Final[Mapping[str, str]] = {"compression": "snappy"}
"""How Spark writes the files; a user's options are laid over it."""


@dataclass(frozen=True)
class DeltaSink:
    """A Delta table, appended to; see `delta` for the fields."""

    table: Place
    partition_by: tuple[str, ...] = ()
    evolve: Literal["no", "additive"] = "no"
    optimize: Compaction | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.evolve not in ("no", "additive"):
            raise UsageError(f"evolve is {self.evolve!r}", "It is 'no' or 'additive'")
        if len(set(self.partition_by)) < len(self.partition_by):
            raise UsageError("a partition column is named twice", "Name each once")

    @property
    def place(self) -> str:
        """Where the table is."""
        return self.table.delta

    def open(self, ledger: str, stream: str | None = None) -> OpenDelta:
        """Open the table, which need not exist yet."""
        from kcl_spark.sinks.delta.table import OpenDelta

        return OpenDelta(
            self.table,
            self.partition_by,
            evolve=self.evolve == "additive",
            writer_options=dict(PARQUET) | dict(self.options),
            compaction=self.optimize,
            name=ledger,
            stream=stream,
        )


def delta(
    table: str,
    *,
    partition_by: Sequence[str] = (),
    evolve: Literal["no", "additive"] = "no",
    optimize: Compaction | bool = False,
    storage_options: Mapping[str, str] | None = None,
    options: Mapping[str, str] | None = None,
) -> DeltaSink:
    """Append to a Delta table, exactly once; the table is made by the first commit.

    Args:
        table: a local path or `s3://bucket/key`.
        partition_by: partition columns: string, integer, date or boolean.
        evolve: "additive" adds new columns to the table and leaves missing ones null; "no" refuses both.
        optimize: compact small files in the background: True, or a `Compaction` that says when.
        storage_options: for delta-rs, such as AWS_REGION or AWS_ENDPOINT_URL.
        options: Spark's Parquet options, such as {"compression": "zstd"}.
    """
    compaction = Compaction() if optimize is True else optimize or None
    return DeltaSink(Place(table, storage_options or {}), tuple(partition_by), evolve, compaction, options or {})
