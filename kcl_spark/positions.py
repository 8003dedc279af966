"""A record's place in its shard: (sequence number, sub-sequence number), always compared as integers.

Rule 1 of the design: identity is (stream, shard, sequence number, sub-sequence number); never a run, host, worker or
batch number. Sequence numbers are decimal strings of up to 129 digits (the Kinesis API's bound), so text order is wrong
as soon as two of them differ in length, and no machine integer holds one. Records of one KPL aggregate share the
sequence number and differ in the sub-sequence number.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

MAX_DIGITS = 129
"""Longest sequence number the Kinesis API accepts (pattern `0|([1-9]\\d{0,128})`)."""

LIMB_BITS = 62
"""A Delta `txn` version is a signed 64-bit number; 62 bits keep clear of the sign and of any reader's off-by-one."""


class Position(NamedTuple):
    """The place of one user record; greater means later within a shard."""

    sequence: int
    sub: int = 0

    @classmethod
    def parse(cls, sequence_number: str, sub_sequence_number: int | None = 0) -> Position:
        """Read a position as the daemon writes it.

        Raises:
            ValueError: not a decimal number of at most 129 digits, or a negative sub-sequence number.
        """
        sub = sub_sequence_number or 0
        if not is_sequence_number(sequence_number):
            raise ValueError(f"{sequence_number[:140]!r} is no sequence number")
        if sub < 0:
            raise ValueError(f"sub-sequence number {sub} is negative")
        return cls(int(sequence_number), sub)

    @property
    def sequence_number(self) -> str:
        """The decimal string that the daemon knows this sequence number by."""
        return str(self.sequence)

    def __str__(self) -> str:
        return f"{self.sequence}:{self.sub}"


class Sentinel(StrEnum):
    """Where a lease starts that has no checkpoint yet. Never sent back as a checkpoint to move it (see `shard`)."""

    TRIM_HORIZON = "TRIM_HORIZON"
    LATEST = "LATEST"
    AT_TIMESTAMP = "AT_TIMESTAMP"


Checkpoint = Position | Sentinel
"""What a lease says about a shard: a place already done, or where to begin."""


def is_sequence_number(text: str) -> bool:
    """Tell whether `text` is a sequence number: ASCII digits only, at most 129 of them."""
    return 0 < len(text) <= MAX_DIGITS and text.isascii() and text.isdigit()


def parse_checkpoint(sequence_number: str | None, sub_sequence_number: int | None) -> Checkpoint:
    """Read the lease's checkpoint from an `initialize` message; null means the beginning of the shard.

    Raises:
        ValueError: neither a sentinel nor a sequence number.
    """
    if sequence_number is None:
        return Sentinel.TRIM_HORIZON
    if sequence_number in Sentinel.__members__:
        return Sentinel[sequence_number]
    return Position.parse(sequence_number, sub_sequence_number)


def to_limbs(number: int) -> list[int]:
    """Cut a sequence number into 62-bit limbs, least significant first; at least one.

    A 56-digit number needs three or four. Lossless: `from_limbs(to_limbs(n)) == n`.
    """
    limbs = [number & ((1 << LIMB_BITS) - 1)]
    while number := number >> LIMB_BITS:
        limbs.append(number & ((1 << LIMB_BITS) - 1))
    return limbs


def from_limbs(limbs: list[int]) -> int:
    """Join what `to_limbs` cut."""
    return sum(limb << (LIMB_BITS * index) for index, limb in enumerate(limbs))


class Span(NamedTuple):
    """A closed range of positions of one shard: what a batch holds of it, first to last, and how many records."""

    first: Position
    last: Position
    records: int
