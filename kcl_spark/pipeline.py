"""What a user declares: one frozen `Pipeline`, checked when it is made, so that nothing wrong is ever started.

A declaration does nothing: it opens no table, starts no Spark, and can be made in a test without either.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NoReturn

from kcl_spark.errors import UsageError
from kcl_spark.formats.base import Format
from kcl_spark.sinks.base import Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Transform = Callable[["DataFrame"], "DataFrame"]
"""DataFrame in, DataFrame out; sees the decoded columns and the metadata columns of one micro-batch."""

METADATA: Final = ("_shard_id", "_sequence_number", "_sub_sequence_number", "_partition_key", "_arrival_time")
"""The columns that every row brings along: its identity, its partition key, and when Kinesis got it."""

_UNITS: Final = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_SIZES: Final = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def seconds(text: str | float) -> float:
    """Read a duration such as "500ms", "1s", "2m" as seconds.

    Raises:
        UsageError: no positive duration.
    """
    return _quantity(text, _UNITS, "a duration such as '500ms', '1s' or '2m'")


def size(text: str | int) -> int:
    """Read a size such as "64MiB" as bytes.

    Raises:
        UsageError: no positive size.
    """
    wanted = "a size such as '64MiB' or '500KB'"
    return int(_quantity(text, _SIZES, wanted)) or _refuse(text, wanted)


def _quantity(text: str | float, units: Mapping[str, float], wanted: str) -> float:
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", str(text))
    if not match or match[2] not in units or float(match[1]) <= 0:
        _refuse(text, wanted)
    return float(match[1]) * units[match[2]]


def _refuse(text: object, wanted: str) -> NoReturn:
    raise UsageError(f"{text!r} is no {wanted.removeprefix('a ')}", f"Write {wanted}")


@dataclass(frozen=True)
class Trigger:
    """When a micro-batch closes: whichever comes first.

    Attributes:
        interval: how long its oldest record may wait, in seconds or as "1s".
        max_records: how many records it may hold.
        max_bytes: how many bytes, as columns, or as "64MiB". Also the cap on what is buffered while Spark is busy with
            the batch before. Large batches are what makes Spark fast: a job has a floor of 90 to 150 ms.
    """

    interval: str | float = "1s"
    max_records: int = 1_000_000
    max_bytes: str | int = "128MiB"
    interval_seconds: float = field(init=False, repr=False)
    byte_limit: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "interval_seconds", seconds(self.interval))
        object.__setattr__(self, "byte_limit", size(self.max_bytes))
        if self.max_records < 1:
            raise UsageError(f"max_records is {self.max_records}", "A batch holds at least one record")


@dataclass(frozen=True)
class DeadLetterLimit:
    """How many dead letters are still a matter of single records; beyond it the shard stops.

    Attributes:
        ratio: the greatest share of dead letters, 0 to 1.
        over: over how many of the shard's latest records it is counted; with fewer, nothing stops.
    """

    ratio: float = 0.10
    over: int = 10_000

    def __post_init__(self) -> None:
        if not 0 <= self.ratio <= 1 or self.over < 1:
            raise UsageError(
                f"a dead-letter limit of {self.ratio} over {self.over} records can't be kept",
                "ratio is from 0 to 1, over is at least 1",
            )


@dataclass(frozen=True)
class Pipeline:
    """One stream into one table.

    Attributes:
        name: the name of its ledger: marks are kept in the table under this name, so changing it starts a new ledger.
        source: how a record's bytes become columns: `formats.json(...)`, `formats.raw()`.
        sink: where the rows go: `sinks.delta(...)`.
        transform: DataFrame in, DataFrame out, for each micro-batch; where a micro-batch begins and ends means nothing.
        dead_letter: where records go that can't become rows; without it such a record stops its shard.
        trigger: when a micro-batch closes.
        recovery: "checkpoint" is exactly once. "best_effort" starts at LATEST after each stop and keeps no marks: for
            operations that may lose records but must not repeat them after a restart.
        adopt_checkpoints: start at a lease's checkpoint although the table has no mark for the shard: for a table that
            takes over from another consumer. Without it that is a data-loss error.
        dead_letter_limit: how many dead letters stop a shard.
        stream: the stream's name. Where it is given, a ledger begun on another stream is refused.
        spark: settings for the Spark session; the command line's `--conf` and spark-defaults.conf win.
    """

    name: str
    source: Format
    sink: Sink
    transform: Transform | None = None
    dead_letter: Sink | None = None
    trigger: Trigger = field(default_factory=Trigger)
    recovery: Literal["checkpoint", "best_effort"] = "checkpoint"
    adopt_checkpoints: bool = False
    dead_letter_limit: DeadLetterLimit = field(default_factory=DeadLetterLimit)
    stream: str | None = None
    spark: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise UsageError(f"{self.name!r} is no pipeline name", "Use letters, digits, '.', '_' and '-', 128 at most")
        if self.recovery not in ("checkpoint", "best_effort"):
            raise UsageError(f"recovery is {self.recovery!r}", "It is 'checkpoint' or 'best_effort'")
        if self.dead_letter is not None and self.dead_letter.place == self.sink.place:
            raise UsageError("rows and dead letters go to the same place", "Give dead_letter a table of its own")

    @property
    def keeps_marks(self) -> bool:
        """Whether the table is the ledger, which is what exactly-once rests on."""
        return self.recovery == "checkpoint"
