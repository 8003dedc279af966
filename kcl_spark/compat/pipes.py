"""The protocol's pipes are this library's alone: no print, subprocess or forked worker of a processor reaches them.

    descriptor   as started      from then on
    ----------   -------------   --------------------------------------------------------------
    0            the daemon's    /dev/null
    1            the daemon's    stderr, so that what is printed is logged
    two copies   -               the conversation; closed on exec, and in every forked process

The daemon skips a line that is no message and waits on, so one stray print can stop a shard; and it reads the pipe to
its very end, so a process that merely inherits it (a Spark JVM, a pool's worker) keeps the daemon from ending.
"""

from __future__ import annotations

import fcntl
import os
import sys
from functools import cache
from typing import Final

from kcl_spark.errors import LocalProtocolError, UsageError

_READ_SIZE: Final = 1 << 20
"""Asked for at once. A pipe gives what it holds, 64 KiB unless somebody enlarged it."""


class Pipes:
    """Private copies of the descriptors that the daemon started this process with."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    def read(self) -> bytes:
        """Wait for bytes; empty ones mean that the daemon closed its end."""
        return os.read(self._open(self._incoming), _READ_SIZE)

    def write(self, data: bytes) -> None:
        """Write all of `data`.

        Raises:
            BrokenPipeError: the daemon is gone.
        """
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._open(self._outgoing), rest) :]

    def close(self) -> None:
        """Close both, once; the daemon then knows that nothing more comes, however long this process lives on."""
        descriptors = {self._incoming, self._outgoing} - {-1}
        self._incoming = self._outgoing = -1
        for descriptor in descriptors:
            os.close(descriptor)

    @staticmethod
    def _open(descriptor: int) -> int:
        if descriptor < 0:
            raise LocalProtocolError(
                "the daemon's pipes are closed in this process", "Checkpoint in the process that the daemon started"
            )
        return descriptor


@cache
def private_pipes() -> Pipes:
    """Take the pipes out of everybody's reach; later calls return the same.

    Raises:
        UsageError: this process was started with stdin or stdout closed.
    """
    try:
        # Above 2, so that neither copy takes the place of stderr where that is closed.
        pipes = Pipes(fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3), fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3))
    except OSError as error:
        raise UsageError(
            f"stdin or stdout is closed ({error})", "The MultiLangDaemon starts a child with both"
        ) from None
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    os.register_at_fork(after_in_child=pipes.close)
    _show_prints_at_once()
    return pipes


def _show_prints_at_once() -> None:
    """A log that arrives in blocks of 8 KiB, or never after a crash, is none; nor may a log line raise."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(line_buffering=True, errors="backslashreplace")
