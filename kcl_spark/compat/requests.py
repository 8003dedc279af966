"""Which checkpoints may be asked for; the others are refused here, with the error that the daemon would answer.

    sequence_number                       sent
    -----------------------------------   --------------------------------------------------------------------------
    None                                  null: all that was delivered, or the shard's end
    digits, as text or int                as text (the daemon reads a number as one too)
    what the lease said at `initialize`   unchanged: an exchange without effect
    "SHARD_END", in shard_ended           as it is: the daemon takes it for the null
    anything else                         refused: IllegalArgumentException

The daemon itself would take LATEST for a lease at TRIM_HORIZON, so that the next start skips the stream without a word.
Whether digits lie between the last checkpoint and the last record delivered is left to the daemon, which knows.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from kcl_spark.compat.checkpoint_error import refused
from kcl_spark.positions import is_sequence_number
from kcl_spark.protocol import Checkpoint

SHARD_END: Final = "SHARD_END"
ILLEGAL: Final = "IllegalArgumentException"


def checked(sequence_number: object, sub_sequence_number: object, known: Container[str | None]) -> Checkpoint:
    """Return the message to send.

    Args:
        sequence_number: as the processor gave it.
        sub_sequence_number: as the processor gave it; None means 0 beside a sequence number.
        known: the words, other than digits, that may pass now.

    Raises:
        CheckpointError: IllegalArgumentException.
    """
    return Checkpoint(_sequence(sequence_number, known), _sub(sub_sequence_number))


def _sequence(given: object, known: Container[str | None]) -> str | None:
    if given is None:
        return None
    text = given if isinstance(given, str) else _digits(given)
    if text is None or not (is_sequence_number(text) or text in known):
        raise refused(ILLEGAL, f"{given!r} is no sequence number that can be checkpointed; nothing was sent")
    return text


def _digits(given: object) -> str | None:
    """Write a number in digits; a bool is none, although Python says so."""
    return str(given) if isinstance(given, int) and not isinstance(given, bool) else None


def _sub(given: object) -> int | None:
    if given is None:
        return None
    text = given if isinstance(given, str) else _digits(given)
    if text is None or not is_sequence_number(text):
        raise refused(ILLEGAL, f"{given!r} is no sub-sequence number; nothing was sent")
    return int(text)
