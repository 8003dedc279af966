"""A finished shard is answered for only when its lease is known to be at SHARD_END.

Otherwise the daemon believes the processor to be through, keeps the lease for ever, and the shard's children never
start, until somebody restarts it. What the processor's last checkpoint in `shard_ended` was, decides:

    asked for                             answered            then
    -----------------------------------   -----------------   ----------------------------------------------------------
    null                                  success             the end is recorded
    null, or the last record delivered    a passing error     the null checkpoint, again and again; else leave
    the last record delivered             success             the null checkpoint (a place already checkpointed is a
                                                              no-op to the daemon, and the lease not ended); else leave
    null, or the last record delivered    any other error     leave
    an earlier record                     whatever            leave: the processor says that it is not through
    nothing                               -                   leave: likewise

Leaving means: the process ends without a status, so the daemon ends too, and delivers the end again when restarted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Final

from kcl_spark.compat.conversation import Answered
from kcl_spark.compat.requests import SHARD_END
from kcl_spark.errors import KclSparkError
from kcl_spark.positions import Position
from kcl_spark.protocol import Checkpoint, Record

PASSING: Final = frozenset(
    {"ThrottlingException", "KinesisClientLibDependencyException", "KinesisClientLibIOException"}
)
"""Errors of a lease table that is busy or out of reach; every other error would be answered again."""

PATIENCE: Final = 45.0
"""Seconds of asking: longer than DynamoDB's bursts of throttling last, shorter than an operator's patience."""

FIRST_WAIT: Final = 0.25
LONGEST_WAIT: Final = 5.0

_REMEDY: Final = (
    "The shard's end is delivered again when the daemon is restarted; "
    "checkpoint without arguments in shard_ended, once all is done (docs/kclpy.md)"
)


class End(Enum):
    """How far a processor that returned from `shard_ended` has brought its shard."""

    RECORDED = auto()
    OWED = auto()
    LEFT_OPEN = auto()
    REFUSED = auto()


def standing(asked: Sequence[Answered], delivered: Record | None) -> End:
    """Read the table above.

    Args:
        asked: the processor's checkpoints in `shard_ended`.
        delivered: the last record that this process was given.
    """
    if any(_is_end(request) and error is None for request, error in asked):
        return End.RECORDED
    if not asked or not _covers(asked[-1].request, delivered):
        return End.LEFT_OPEN
    return End.OWED if asked[-1].error in (None, *PASSING) else End.REFUSED


def left(end: End, asked: Sequence[Answered]) -> KclSparkError:
    """Say why a shard is not at its end."""
    if not asked:
        cause = "the processor made no checkpoint at the shard's end"
    elif end is End.LEFT_OPEN:
        cause = "the processor's checkpoint at the shard's end named an earlier record than the last"
    else:
        cause = f"the checkpoint at the shard's end was answered {asked[-1].error or 'for a record, not for the end'}"
    return KclSparkError(cause, _REMEDY)


def record_end(
    ask: Callable[[Checkpoint], str | None], clock: Callable[[], float], sleep: Callable[[float], None]
) -> None:
    """Ask for the null checkpoint until it is had. Each exchange restarts the daemon's own timeout.

    Written out because it is a dozen lines, and a retry library weighs more than the rest of a child.

    Raises:
        KclSparkError: an error that does not pass, or no success in `PATIENCE`.
    """
    deadline, wait = clock() + PATIENCE, FIRST_WAIT
    while (error := ask(Checkpoint())) is not None:
        if error not in PASSING or clock() + wait > deadline:
            raise KclSparkError(f"the checkpoint at the shard's end was answered {error}", _REMEDY)
        sleep(wait)
        wait = min(2 * wait, LONGEST_WAIT)


def _is_end(request: Checkpoint) -> bool:
    return request.sequence_number in (None, SHARD_END)


def _covers(request: Checkpoint, delivered: Record | None) -> bool:
    """Tell whether a request passes over nothing that was delivered."""
    if _is_end(request) or delivered is None:
        return True
    return _place(request.sequence_number, request.sub_sequence_number) >= _place(
        delivered.sequence_number, delivered.sub_sequence_number
    )


def _place(sequence_number: str | None, sub_sequence_number: int | None) -> Position:
    """A place to compare by; what is no number (the lease's first value) comes before every record."""
    try:
        return Position.parse(sequence_number or "", sub_sequence_number)
    except ValueError:
        return Position(-1)
