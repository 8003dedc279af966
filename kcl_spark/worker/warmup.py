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

FIRST: Final = (100, 5_000)
"""Rows of the first jobs: small ones find out that Spark works at all, and let it compile the plan."""

LARGE: Final = 100_000
"""Rows of the jobs after them, as many as a real batch has: what the JIT gains from is loops that run long, and memory
that has never been touched costs several times what it costs later (seen on virtual machines: 5 µs instead of 0.6 µs
for each record spooled)."""

ENOUGH: Final = 0.9
"""Stop when a job takes more than this share of the best one before it."""

MOST_SECONDS: Final = 12.0
"""Stop after this time in any case."""

FLOOR_JOBS: Final = 3


def warm_up(plan: Callable[[Spooled], DataFrame], spool: Spool, clock: Callable[[], float]) -> float:
    """Run the jobs.

    Args:
        plan: a spooled batch's DataFrame as it will be written.
        spool: where the records are spooled.
        clock: monotonic seconds.

    Returns:
        the least seconds that a job of one row took.
    """
    for rows in FIRST:
        _run(plan, spool, rows, clock)
    _until_steady(lambda: _run(plan, spool, LARGE, clock), clock)
    return min(_run(plan, spool, 1, clock) for _ in range(FLOOR_JOBS))


def _until_steady(job: Callable[[], float], clock: Callable[[], float]) -> None:
    end = clock() + MOST_SECONDS
    best = job()
    while clock() < end:
        seconds = job()
        if seconds > ENOUGH * best:
            return
        best = seconds


def _run(plan: Callable[[Spooled], DataFrame], spool: Spool, rows: int, clock: Callable[[], float]) -> float:
    """Spool, compute and write some records; return how many seconds it took."""
    began = clock()
    spooled = spool.write_sample(rows)
    target = spool.folder / "warm-up"
    try:
        plan(spooled).write.mode("overwrite").parquet(target.as_uri())
    finally:
        spool.remove(spooled)
        shutil.rmtree(target, ignore_errors=True)
    return clock() - began
