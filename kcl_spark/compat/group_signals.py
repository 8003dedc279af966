"""Only the daemon says when a shard ends: SIGINT and SIGTERM, which its whole process group gets, end nothing here.

A handler that does nothing, and not SIG_IGN: an ignored signal stays ignored in every program that is started later, so
that a processor could no longer terminate its own subprocesses. For the same reason forked workers get the default back
(a pool ends its workers by SIGTERM); the two are held back across the fork, or one that comes before the default is
back would be lost. A handler that the script has installed itself is left alone.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from functools import cache
from types import FrameType
from typing import Final

_DEFAULTS: Final[dict[signal.Signals, Callable[[int, FrameType | None], None] | signal.Handlers]] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
}

_forking: Final = threading.local()
"""Holds the signal mask of a thread that is forking."""


def pass_over_group_signals() -> None:
    """Let SIGINT and SIGTERM do nothing, where nobody has given them a meaning.

    Does nothing outside the main thread, where Python allows no handlers.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number, default in _DEFAULTS.items():
        if signal.getsignal(number) == default:
            signal.signal(number, _pass_over)
    _watch_forks()


@cache
def _watch_forks() -> None:
    os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_restore)


def _pass_over(_number: int, _frame: FrameType | None) -> None:
    """Do nothing; an interrupted read or write is resumed by Python."""


def _hold() -> None:
    _forking.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _DEFAULTS)


def _release() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _forking.mask)


def _restore() -> None:
    for number, default in _DEFAULTS.items():
        if signal.getsignal(number) is _pass_over:
            signal.signal(number, default)
    _release()
