"""A spooled batch through Spark: format, then the user's transform, then files that nobody sees yet.

One job does it all in the usual case. While it decodes it counts (an observation), so that a batch without failures
needs no second look; only a batch with failures is read again, to name them. The observation also keeps the optimizer
from evaluating the parser once per use of its result, which would double its cost (measured: +45 %).

A job that fails on data is tried on single records and halves until the culprits are known (see `isolation`).
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from kcl_spark.errors import KclSparkError, SparkGone, TransformBroken, UsageError
from kcl_spark.formats.base import ERROR, VALUE, Format
from kcl_spark.pipeline import METADATA, Transform
from kcl_spark.sinks.base import Staged
from kcl_spark.worker import letters
from kcl_spark.worker.isolation import PROBES, NothingPasses, culprits
from kcl_spark.worker.spool import ROW, Spool, Spooled, ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation, SparkSession
    from pyspark.sql.types import StructType

_OBSERVATION_SECONDS: Final = 5.0
"""How long a finished job's observation may take to arrive; it comes with the job's end event, within milliseconds."""

_REASON: Final = 400
"""Characters of an exception that a dead letter's reason keeps: its first lines, not its stack."""

Stage = Callable[["DataFrame"], Staged]


@dataclass(frozen=True, slots=True)
class Computed:
    """What became of a batch: staged rows and the rows that failed, by number, with reasons.

    If the transform was the one to fail, nothing is staged and the batch is to be computed again without the failures.
    """

    staged: Staged | None
    failures: dict[int, str]


class Computation:
    """A pipeline's part in Spark.

    Args:
        session: the worker's session.
        source: how payloads become columns.
        transform: the user's part; None keeps the columns.
        spool: where samples for isolation are written.
    """

    def __init__(self, session: SparkSession, source: Format, transform: Transform | None, spool: Spool) -> None:
        self._session = session
        self._source = source
        self._transform = transform
        self._spool = spool
        self._ddl = ddl(source.spool_type)
        self._failed_in_a_row = 0

    def check(self) -> StructType:
        """Build the plan on no rows at all and return the columns that it will write.

        Raises:
            UsageError: the schema of the format can't be used.
            TransformBroken: the transform can't even be planned.
        """
        empty = self._session.createDataFrame([], self._ddl)
        good = self._good(self._decoded(empty))
        names = [name.lower() for name in good.columns]
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise UsageError(f"the format has a column {doubled[0]} twice", "Rename it in the schema")
        made = self._transformed(good)
        try:
            made.isLocal()  # needs the plan analysed, which Spark Connect puts off for as long as it can
        except Exception as error:
            self._raise_if_gone(error)
            raise broken(error, "it can't be planned") from error
        return made.schema

    def compute(self, spooled: Spooled, stage: Stage) -> Computed:
        """Decode, transform and stage a batch. Blocks for one job, or for many if it fails on data.

        Raises:
            TransformBroken: no record passes the transform.
            SparkGone: the session is dead.
            Exception: whatever the job failed with, if no record is to blame: the sink, the disk, the cluster.
        """
        try:
            return self._compute(spooled, stage)
        except KclSparkError:
            raise
        except Exception as error:
            self._raise_if_gone(error)
            found = self._isolate(spooled, error)
            if not found:
                raise
            return Computed(None, found)

    def frame(self, spooled: Spooled) -> DataFrame:
        """The spooled rows as they are."""
        return self._session.read.schema(self._ddl).parquet(str(spooled.path))

    def letters_schema(self) -> StructType:
        """The columns of dead letters."""
        return self._session.createDataFrame([], letters.DDL).schema

    def warm_plan(self, spooled: Spooled) -> DataFrame:
        """The plan for made-up records: without the user's transform, which was not written for them."""
        return self._observed(spooled)[0]

    def letters_frame(self, path: str) -> DataFrame:
        """A spool file of dead letters."""
        return self._session.read.schema(letters.DDL).parquet(path)

    # ------------------------------------------------------------------------------------------------------- plan

    def _decoded(self, raw: DataFrame) -> DataFrame:
        return self._source.decode(raw).select(VALUE, ERROR, ROW, *METADATA)

    def _good(self, decoded: DataFrame) -> DataFrame:
        return decoded.where(f"{ERROR} is null").select(f"{VALUE}.*", *METADATA)

    def _transformed(self, good: DataFrame) -> DataFrame:
        from pyspark.sql import DataFrame

        if self._transform is None:
            return good
        try:
            made = self._transform(good)
        except Exception as error:
            raise broken(error, "it can't be planned") from error
        if not isinstance(made, DataFrame):
            raise TransformBroken(
                f"the transform is broken, it returned a {type(made).__name__}", "Return a DataFrame from it"
            )
        return made

    def _observed(self, spooled: Spooled) -> tuple[DataFrame, Observation]:
        """The good rows, and what the job will have seen of all."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        seen = Observation("kcl_spark_decoded")
        counted = F.count(F.lit(1)).alias("records"), F.count(ERROR).alias("failed")
        return self._good(self._decoded(self.frame(spooled)).observe(seen, *counted)), seen

    # ------------------------------------------------------------------------------------------------------- jobs

    def _compute(self, spooled: Spooled, stage: Stage) -> Computed:
        good, seen = self._observed(spooled)
        staged = stage(self._transformed(good))
        self._failed_in_a_row = 0
        if self._counts(seen) == {"records": spooled.rows, "failed": 0}:
            return Computed(staged, {})
        # Either something failed, or the transform did not read the batch exactly once (a limit, a self-join), so that
        # the count says nothing.
        return Computed(staged, self._failures(spooled))

    def _counts(self, seen: Observation) -> dict[str, Any] | None:
        """What the job observed; None if it never read the batch.

        The observation of a plan that was optimized away (a transform that ends in `limit(0)`) never comes, and its
        `get` blocks for ever or fails, depending on Spark's version.
        """
        if self._transform is None:
            return seen.get
        box: list[dict[str, Any]] = []

        def ask() -> None:
            with suppress(Exception):
                box.append(seen.get)

        asking = Thread(target=ask, daemon=True)
        asking.start()
        asking.join(_OBSERVATION_SECONDS)
        return box[0] if box else None

    def _failures(self, spooled: Spooled) -> dict[int, str]:
        failed = self._decoded(self.frame(spooled)).where(f"{ERROR} is not null").select(ROW, ERROR)
        return {row[ROW]: row[ERROR] for row in failed.collect()}

    # ------------------------------------------------------------------------------------------------------- culprits

    def _isolate(self, spooled: Spooled, error: Exception) -> dict[int, str]:
        if spooled.rows == 0:
            return {}
        try:
            found = culprits(spooled.rows, lambda rows: self._try(spooled, rows))
        except NothingPasses as nothing:
            self._failed_in_a_row += nothing.tried
            if self._failed_in_a_row >= PROBES:
                raise broken(error, "no record passes it") from error
            return dict.fromkeys(range(spooled.rows), nothing.reason)
        self._failed_in_a_row = 0
        return found

    def _try(self, spooled: Spooled, rows: Sequence[int]) -> str | None:
        """Run the plan on some rows and throw the result away; return why it failed."""
        sample = self._spool.sample(spooled, rows)
        try:
            plan = self._transformed(self._good(self._decoded(self.frame(sample))))
            plan.write.format("noop").mode("overwrite").save()
        except KclSparkError:
            raise
        except Exception as error:
            self._raise_if_gone(error)
            return f"the transform failed: {reason_of(error)}"
        finally:
            self._spool.remove(sample)
        return None

    def _raise_if_gone(self, error: Exception) -> None:
        if is_gone(error):
            raise SparkGone(f"the Spark session does not answer: {reason_of(error)}") from error


def is_gone(error: BaseException) -> bool:
    """Whether the error means that the session is dead, and not that a job failed."""
    name = type(error).__name__
    text = str(error)
    return (
        isinstance(error, ConnectionError)
        or name == "Py4JNetworkError"
        or "SparkContext was shut down" in text
        or "Cannot call methods on a stopped SparkContext" in text
    )


def reason_of(error: BaseException) -> str:
    """The part of an exception that says what happened, on one line.

    A Python exception inside Spark arrives as a stack with its own message last; everything else says it first.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    told = lines[-1] if type(error).__name__ == "PythonException" else lines[0]
    return told[:_REASON]


def broken(error: Exception, how: str) -> TransformBroken:
    """The error that stops the worker, with the traceback of what the transform raised."""
    stack: Any = "".join(traceback.format_exception(error)).rstrip()
    failure = TransformBroken(f"the transform is broken, {how}: {reason_of(error)}", "Correct the pipeline's transform")
    failure.add_note(stack)
    return failure
