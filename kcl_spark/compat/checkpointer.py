"""A checkpoint is checked, sent in turn, and answered before anything else is said; whoever asks, from whatever thread.

One checkpointer serves a process's whole life, as amazon_kclpy's does, so that a processor may keep it; what it may do
depends on the action that is open, not on where it was taken from.
"""

from __future__ import annotations

from collections.abc import Callable

from kcl_spark.compat.checkpoint_error import CheckpointError, refused
from kcl_spark.compat.conversation import Conversation
from kcl_spark.compat.requests import SHARD_END, checked
from kcl_spark.errors import ProtocolError


class Checkpointer:
    """Made by `KCLProcess`, and handed to the processor with each action that has a checkpoint."""

    def __init__(self, conversation: Conversation, say: Callable[[str], None]) -> None:
        self._conversation = conversation
        self._say = say

    def checkpoint(
        self, sequence_number: str | int | None = None, sub_sequence_number: int | str | None = None
    ) -> None:
        """Store a place as done, inclusive; blocks until the daemon has answered.

        Args:
            sequence_number: of the last record done; None means all that was delivered, or the end of the shard.
            sub_sequence_number: of the last record done, within an aggregated record; None means 0.

        Raises:
            CheckpointError: not stored. IllegalArgumentException: no such place. InvalidStateException: no action is
                open that has a checkpoint. Else what the daemon answered.
        """
        try:
            request = checked(sequence_number, sub_sequence_number, self._known_words())
            error = self._conversation.ask(request)
        except CheckpointError as refusal:
            self._say(f"checkpoint refused: {' '.join(refusal.__notes__)}")
            raise
        except ProtocolError as out_of_turn:
            self._say(f"checkpoint refused: {out_of_turn}")
            raise refused("InvalidStateException", str(out_of_turn)) from None
        if error is not None:
            raise CheckpointError(error)

    def _known_words(self) -> set[str | None]:
        began = self._conversation.began
        known = {began.sequence_number} if began else set()
        return known | {SHARD_END} if self._conversation.at_shard_end else known
