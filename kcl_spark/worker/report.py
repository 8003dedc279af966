"""The engine's account of itself, as plain data: what `kcl-spark status` shows. Reads, never changes anything."""

from __future__ import annotations

import math
from typing import Any

from kcl_spark.pipeline import Pipeline
from kcl_spark.worker.commit import Account
from kcl_spark.worker.shard import Shard
from kcl_spark.worker.worker import Worker


def of(
    pipeline: Pipeline, worker: Worker, account: Account | None, floor: float | None, now: float, *, ready: bool
) -> dict[str, Any]:
    """Describe the engine.

    Args:
        pipeline: what it runs.
        worker: its shards.
        account: what its flushes have come to; None before Spark is there.
        floor: seconds that a batch job takes with hardly any rows, measured at the start; None where it was not warmed.
        now: monotonic seconds.
        ready: whether Spark is there and warm.
    """
    account = account or Account()
    return {
        "pipeline": pipeline.name,
        "sink": pipeline.sink.place,
        "ready": ready,
        "draining": worker.draining,
        "buffered_records": worker.batcher.records,
        "buffered_bytes": worker.batcher.size,
        "in_flight_records": sum(batch.records for batch in list(worker.in_flight)),
        "records": account.records,
        "rows": account.rows,
        "dead_letters": account.dead_letters,
        "batches": account.batches,
        "last_commit_seconds_ago": None if account.committed_at is None else now - account.committed_at,
        "batch_floor_seconds": _floor(floor, account),
        "batch_seconds": account.seconds,
        "last_batch_seconds": account.last,
        "stopped": {shard_id: str(error) for shard_id, error in list(worker.stopped.items())},
        "steps": dict(worker.steps.counts),
        "shards": [_shard(shard, account) for shard in list(worker.shards.values())],
    }


def _floor(measured: float | None, account: Account) -> float | None:
    """The quickest there was: a made-up batch, or a real one."""
    least = min(account.least, math.inf if measured is None else measured)
    return None if math.isinf(least) else least


def _shard(shard: Shard, account: Account) -> dict[str, Any]:
    return {
        "shard": shard.shard_id,
        "mark": None if shard.mark is None else str(shard.mark),
        "checkpoint": str(shard.stored),
        "delivered": None if shard.delivered is None else str(shard.delivered),
        "millis_behind_latest": shard.millis_behind_latest,
        "commit_lag_seconds": account.lags.get(shard.shard_id),
        "waits_for": shard.owed,
        "stopped": None if shard.stopped is None else str(shard.stopped),
    }
