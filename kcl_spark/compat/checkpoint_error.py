"""The one error that a processor is meant to catch: a checkpoint was not taken; `value` names why.

It is no KclSparkError: existing code compares `value`, prints `repr(value)` and expects nothing else of it.
"""

from __future__ import annotations


class CheckpointError(Exception):
    """A checkpoint was refused.

    Attributes:
        value: the daemon's word for the reason, a Java class name such as "ThrottlingException".
    """

    def __init__(self, value: str) -> None:
        self.value = value

    def __str__(self) -> str:
        return repr(self.value)


def refused(value: str, reason: str) -> CheckpointError:
    """Make the error of a checkpoint that was never sent.

    It has the value that the daemon would have answered, so that existing handlers fit; the reason is a note, which a
    traceback shows and a comparison does not see.
    """
    error = CheckpointError(value)
    error.add_note(reason)
    return error
