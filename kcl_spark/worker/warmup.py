"""Jobs on made-up records before the first real ones: a cold JVM runs its first batches five to ten times slower.

The JIT compiles what ran often, so the jobs have the shape of the real ones: the same format, the same kind of file,
written where the spool is and thrown away. They also give the floor: what a batch costs that has hardly a record.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kcl_spark.worker.spool import Spool, Spooled

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS: Final = (100, 2_000, 10_000, 20_000, 20_000, 20_000, 20_000, 20_000)
"""Rows of each job: about three seconds of work in all, after which a job's time no longer falls by much."""

FLOOR_JOBS: Final = 3


def warm_up(
    plan: Callable[[Spooled], DataFrame], spool: Spool, sample: bytes, clock: Callable[[], float], *, full: bool
) -> float:
    """Run the jobs.

    Args:
        plan: a spooled batch's DataFrame as it will be written.
        spool: where the records are spooled.
        sample: a payload that the format can decode.
        clock: monotonic seconds.
        full: False for one job only: enough to find out that Spark works.

    Returns:
        the least seconds that a job of one row took.
    """
    for rows in ROWS if full else ROWS[:1]:
        _run(plan, spool, sample, rows)
    return min(_seconds_of_one_row(plan, spool, sample, clock) for _ in range(FLOOR_JOBS if full else 1))


def _seconds_of_one_row(
    plan: Callable[[Spooled], DataFrame], spool: Spool, sample: bytes, clock: Callable[[], float]
) -> float:
    began = clock()
    _run(plan, spool, sample, 1)
    return clock() - began


def _run(plan: Callable[[Spooled], DataFrame], spool: Spool, sample: bytes, rows: int) -> None:
    spooled = spool.write_sample(sample, rows)
    target = spool.folder / "warm-up"
    try:
        plan(spooled).write.mode("overwrite").parquet(target.as_uri())
    finally:
        spool.remove(spooled)
        shutil.rmtree(target, ignore_errors=True)
