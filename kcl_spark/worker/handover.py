"""The engine's front door: a Unix socket in a private folder, on which children hand over their pipes.

One line comes in on a connection, and what it is decides the rest:

    child PID PIPELINE     with two descriptors: the daemon's pipe to and from that shard's child; answered with
                           `exit N` or `exit N REASON` when the shard is over
    status                 answered with one line of JSON
    drain                  the daemon is about to be ended; answered with `ok`

Descriptors are passed and not relayed: one Python engine reads 1.0 to 1.4 GB/s that way from 1 to 64 children.
Only processes of the same user are listened to (SO_PEERCRED), in a folder that only that user can enter.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kcl_spark.errors import EngineGone, UsageError
from kcl_spark.worker.child import SOCKET, connect, make_private

_LINE: Final = 8192
"""Longest line accepted: a path and little else. Whoever sends more is not of us."""

_LEAVING: Final = 20.0
"""Seconds to wait for an engine whose door is closed already: it ends its Spark."""

_PATH: Final = 107
"""Longest path of a Unix socket on Linux, in bytes."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody at the door: the connection, its line in words, and descriptors that came along."""

    connection: socket.socket
    words: tuple[str, ...]
    descriptors: tuple[int, ...] = ()

    def answer(self, line: str) -> None:
        """Say one line; a caller that is gone is no matter."""
        with suppress(OSError):
            self.connection.sendall(line.encode() + b"\n")


def claim(folder: Path) -> socket.socket:
    """Take the folder: one engine holds its lock for as long as it lives, and replaces a dead one's socket.

    Nobody can come in before the engine runs: until then a child waits, and an engine that refuses to start says why.

    Raises:
        UsageError: the folder can't be used, or another engine listens there.
    """
    path = folder / SOCKET
    if len(os.fsencode(path)) > _PATH:
        raise UsageError(f"the socket's path {path} is longer than {_PATH} bytes", "Name a shorter --folder")
    try:
        make_private(str(folder))
        _lock(folder)
        path.unlink(missing_ok=True)
        door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        door.bind(str(path))
        path.chmod(0o600)
    except OSError as error:
        raise UsageError(f"the worker's folder can't be used: {error}", "Name another one with --folder") from error
    return door


def _lock(folder: Path) -> None:
    lock = os.open(folder / "engine.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    end = time.monotonic() + _LEAVING
    while not _locked(lock):
        if _is_open(folder) or time.monotonic() > end:
            os.close(lock)
            raise UsageError(f"another engine already runs in {folder}", "Stop it, or name another --folder")
        time.sleep(0.05)


def _is_open(folder: Path) -> bool:
    other = connect(str(folder))
    if other is not None:
        other.close()
    return other is not None


def _locked(lock: int) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # held until the process ends, however it ends
        return True
    return False


def admit(door: socket.socket) -> Caller | None:
    """Take the next caller in; None for one that is not of this user or does not speak."""
    connection, _ = door.accept()
    connection.settimeout(5.0)
    try:
        line, descriptors = _receive(connection)
    except OSError:
        connection.close()
        return None
    if _user_of(connection) != os.getuid() or not line.endswith(b"\n"):
        connection.close()
        for descriptor in descriptors:
            os.close(descriptor)
        return None
    connection.settimeout(None)
    return Caller(connection, tuple(line.decode("utf-8", "replace").rstrip("\n").split(" ", 2)), tuple(descriptors))


def _receive(connection: socket.socket) -> tuple[bytes, list[int]]:
    """Receive a line and two descriptors at most, close-on-exec: what user code starts must not keep the daemon's pipe.

    `socket.recv_fds` takes flags and ignores them.
    """
    room = socket.CMSG_LEN(2 * struct.calcsize("i"))
    line, ancillary, _, _ = connection.recvmsg(_LINE, room, socket.MSG_CMSG_CLOEXEC)
    rights = b"".join(
        data for level, kind, data in ancillary if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
    )
    return line, [number for (number,) in struct.iter_unpack("i", rights)]


def _user_of(connection: socket.socket) -> int:
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[1])


def ask(folder: Path, word: str, timeout: float = 10.0) -> str:
    """Say one word to the engine and return its answer.

    Raises:
        EngineGone: no engine listens, or it does not answer.
    """
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(timeout)
            client.connect(str(folder / SOCKET))
            client.sendall(word.encode() + b"\n")
            with client.makefile() as answer:
                line = answer.readline()
    except OSError as error:
        raise EngineGone(
            f"no engine answers in {folder}: {error.strerror or error}", "Start one: kcl-spark run"
        ) from None
    if not line:
        raise EngineGone(f"the engine in {folder} ended", "Look at its log")
    return line.rstrip("\n")


def status(folder: Path) -> dict[str, Any]:
    """The engine's own account of itself; raises as `ask`."""
    answer: dict[str, Any] = json.loads(ask(folder, "status"))
    return answer
