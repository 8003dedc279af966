"""Where a conversation's bytes come from and go to: the daemon's pipes, or text files that the caller gives.

A file that lies on the descriptor which the daemon started this process with *is* the daemon's pipe, whatever it is
wrapped in, and is replaced by the private copy: scripts pass `sys.stdin`, or wrap its buffer to choose an encoding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

from kcl_spark.compat.pipes import private_pipes


def is_the_daemons(file: TextIO | None, descriptor: int) -> bool:
    """Tell whether a file, or the lack of one, means the daemon's pipe."""
    if file is None:
        return True
    try:
        return file.fileno() == descriptor
    except (AttributeError, OSError, ValueError):  # no descriptor, or closed
        return False


def reader(file: TextIO | None) -> Callable[[], bytes]:
    """Return what waits for more bytes. The pipes are not touched before it is called."""
    if file is None or is_the_daemons(file, 0):
        return lambda: private_pipes().read()
    return lambda: file.readline().encode()


def writer(file: TextIO | None) -> Callable[[bytes], None]:
    """Return what writes bytes, all of them. The pipes are not touched before it is called."""
    if file is None or is_the_daemons(file, 1):
        return lambda data: private_pipes().write(data)

    def write(data: bytes) -> None:
        file.write(data.decode())
        file.flush()

    return write
