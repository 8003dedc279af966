"""Where a shard's new life begins: the ledger's mark is the truth, the lease's checkpoint a hint (rules 1 and 2).

    lease says                     ledger says     the shard starts
    ----------------------------   -------------   ---------------------------------------------------------
    TRIM_HORIZON, AT_TIMESTAMP     no mark         with the first record delivered
    LATEST                         no mark         with the first record delivered
    TRIM_HORIZON, AT_TIMESTAMP     mark            after the mark (what comes again is dropped)
    LATEST                         mark            refused: what lies between the mark and now would be skipped
    checkpoint                     no mark         refused, unless the pipeline adopts checkpoints: after the checkpoint
    checkpoint                     mark >= it      after the mark
    checkpoint                     mark <  it      refused: what lies between them would be skipped

Refusing is the whole point: a consumer that starts where it can't prove it should loses data without a word.
"""

from __future__ import annotations

from kcl_spark.errors import DataLossError
from kcl_spark.positions import Checkpoint, Position, Sentinel

_TABLE_REMEDY = (
    "If the table was deleted or replaced on purpose, delete the application's lease table too, so that the stream is "
    "read again from its start; else restore the table"
)
_ADOPT_REMEDY = (
    "If another consumer got this far and its work is not to be repeated, set adopt_checkpoints=True; "
    "if the table was deleted, restore it, or delete the lease table to read the stream again"
)
_LATEST_REMEDY = (
    "Start from a time instead of LATEST: set initialPositionInStreamExtended (epoch seconds) to one before the mark's "
    "record arrived"
)


def last_done(shard_id: str, lease: Checkpoint, mark: Position | None, *, adopt_checkpoints: bool) -> Position | None:
    """Return the last position that is already done; records up to it are dropped. None: nothing is done yet.

    Raises:
        DataLossError: going on would skip records silently; see the table above.
    """
    if isinstance(lease, Position):
        return _from_checkpoint(shard_id, lease, mark, adopt_checkpoints=adopt_checkpoints)
    if lease is Sentinel.LATEST and mark is not None:
        raise DataLossError(
            f"shard {shard_id}: the lease starts at LATEST but the table holds records up to {mark}; "
            "what came in between would be skipped",
            _LATEST_REMEDY,
        )
    return mark


def _from_checkpoint(
    shard_id: str, lease: Position, mark: Position | None, *, adopt_checkpoints: bool
) -> Position | None:
    if mark is not None and mark >= lease:
        return mark
    if mark is not None:
        raise DataLossError(
            f"shard {shard_id}: the table's mark {mark} is behind the lease's checkpoint {lease}; "
            "the records in between would be skipped",
            _TABLE_REMEDY,
        )
    if not adopt_checkpoints:
        raise DataLossError(
            f"shard {shard_id}: the lease has the checkpoint {lease} but the table has no mark for the shard; "
            "whether the records before it are in the table can't be told",
            _ADOPT_REMEDY,
        )
    return lease
