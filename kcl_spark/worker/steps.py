"""The named steps of a record's life; faults, metrics, logs and tests all speak of these and of no others.

The order is the order in which a record passes them. A name is API: it stands in fault plans and in metrics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import StrEnum


class Step(StrEnum):
    """What has just become true."""

    RECEIVED = "received"
    """A whole message arrived from the daemon."""
    TRIMMED = "trimmed"
    """What the ledger already holds was dropped from it."""
    BUFFERED = "buffered"
    """Its records are in the open batch."""
    SEALED = "sealed"
    """The batch is closed and handed on."""
    SPOOLED = "spooled"
    """The batch is a file on local disk."""
    STAGED = "staged"
    """Spark has written its output below the table; nobody sees it yet."""
    DEAD_LETTERS_COMMITTED = "dead_letters_committed"
    """The batch's dead letters are durable."""
    COMMITTED = "committed"
    """Data and marks are durable and visible, in one transaction."""
    CHECKPOINT_SENT = "checkpoint_sent"
    """The daemon was asked to store a place."""
    CHECKPOINT_ANSWERED = "checkpoint_answered"
    """It answered, one way or the other."""
    STATUS_SENT = "status_sent"
    """The daemon may send the shard's next message."""


Listener = Callable[[Step], None]


class Steps:
    """Counts the steps and tells each listener; a listener may end the process, which is what fault plans do."""

    def __init__(self, *listeners: Listener) -> None:
        self.counts: Counter[Step] = Counter()
        self._listeners = listeners

    def reached(self, step: Step) -> None:
        """Say that `step` has just become true; returns after every listener has."""
        self.counts[step] += 1
        for listener in self._listeners:
            listener(step)
