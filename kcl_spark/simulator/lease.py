"""What KCL keeps about one shard, and the rules by which it takes a checkpoint. Pure.

asked for                                    answer
------------------------------------------   -----------------------------------------------------------
null, while the shard's end is being told    SHARD_END
null                                         the last record delivered
a place from the last checkpoint up to the   stored; the same place again is taken without a write
last record delivered
the beginning that the lease still holds     taken without a write (a heartbeat)
anything else                                IllegalArgumentException
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kcl_spark.positions import Position, Sentinel, is_sequence_number
from kcl_spark.protocol import Checkpoint, CheckpointAnswer

OUT_OF_RANGE: Final = "IllegalArgumentException"


@dataclass
class Lease:
    """One shard's lease: where it is to begin, what has been delivered, and what is checkpointed."""

    shard_id: str
    checkpoint: Position | Sentinel = Sentinel.TRIM_HORIZON
    delivered: Position | None = None
    ended: bool = False

    @property
    def at(self) -> tuple[str, int]:
        """The checkpoint as `initialize` says it."""
        if isinstance(self.checkpoint, Position):
            return self.checkpoint.sequence_number, self.checkpoint.sub
        return self.checkpoint.value, 0

    def answer(self, asked: Checkpoint, *, at_end: bool) -> CheckpointAnswer:
        """Take or refuse a checkpoint; the answer echoes what was asked."""
        error = self._take(asked, at_end=at_end)
        return CheckpointAnswer(asked.sequence_number, asked.sub_sequence_number, error)

    def _take(self, asked: Checkpoint, *, at_end: bool) -> str | None:
        if asked.sequence_number is None:
            if at_end:
                self.ended = True
            elif self.delivered is not None:
                self.checkpoint = self.delivered
            return None
        if not is_sequence_number(asked.sequence_number):
            return None if asked.sequence_number == self.checkpoint else OUT_OF_RANGE
        place = Position.parse(asked.sequence_number, asked.sub_sequence_number)
        low = self.checkpoint if isinstance(self.checkpoint, Position) else Position(0)
        if place < low or (place > low and (self.delivered is None or place > self.delivered)):
            return OUT_OF_RANGE
        self.checkpoint = place
        return None
