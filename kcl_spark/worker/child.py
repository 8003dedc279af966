"""The daemon's child: it hands its pipes to the engine, waits for the engine's word, and exits with it.

One runs per shard, so it must weigh nothing: standard library only, no `site`, and of the standard library hardly more
than the interpreter has loaded anyway (`socket` and `signal` instead of the modules below add 1.1 MB to each child). It
is started as `kcl-spark child PIPELINE`, which becomes `python -S -E child.py PIPELINE` before anything is imported.

The first thing it does is to make the protocol private: fds 0 and 1 move to copies that no other program inherits, fd 0
becomes /dev/null and fd 1 becomes stderr. A Spark JVM that inherited the daemon's pipe would hang the daemon, which
reads to the pipe's end; a `print` would be a line of the protocol.

It ignores SIGINT and SIGTERM, which reach it as a member of the daemon's process group: only the daemon says when a
shard ends. Once the pipes are handed over and closed here, the engine's death closes them, and the daemon notices.

Exit codes: as `ExitCode` in kcl_spark/errors.py: the engine's word, or what an engine that refused to start ended with;
of the child's own 2 (no usable folder) and 71 (the engine ended without a word).
"""

# Not `from __future__ import annotations`: nothing here is evaluated late, and every import counts.
import _signal
import _socket
import os
import sys
from binascii import crc32

FOLDER = "KCL_SPARK_FOLDER"
"""Names the folder of a worker's socket; set by `kcl-spark run` for everything that it starts."""

SOCKET = "engine.sock"
USAGE, ENGINE_GONE = 2, 71

PATIENCE = 60.0
"""Seconds to wait for an engine to listen: it binds its socket within half a second of being started, before Spark."""


def folder_of(pipeline: str) -> str:
    """The folder of the worker that runs a pipeline file: named by the environment, or one for each file and user."""
    given = os.environ.get(FOLDER)
    if given:
        return given
    base = os.environ.get("XDG_RUNTIME_DIR") or "/tmp"  # noqa: S108 - made 0700 and checked below
    name = os.path.basename(pipeline).removesuffix(".py")[:24]  # noqa: PTH119 - pathlib weighs two megabytes
    path = os.path.realpath(pipeline)
    return f"{base}/kcl-spark-{os.getuid()}/{name}-{crc32(path.encode()):08x}"


def make_private(folder: str) -> None:
    """Make the folder, and the one above it where that is ours to make, for this user alone.

    Raises:
        OSError: it can't be made, or it is somebody else's.
    """
    above = os.path.dirname(folder)  # noqa: PTH120
    if os.path.basename(above).startswith("kcl-spark-"):  # noqa: PTH119
        _own(above)
    _own(folder)


def _own(folder: str) -> None:
    try:
        os.mkdir(folder, 0o700)  # noqa: PTH102
    except FileExistsError:
        found = os.stat(folder, follow_symlinks=False)  # noqa: PTH116
        if found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise PermissionError(f"{folder} is not a folder of this user alone (mode 0700)") from None


def connect(folder: str) -> "_socket.socket | None":
    """Connect to the engine, or return None where none listens."""
    client = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    try:
        client.connect(f"{folder}/{SOCKET}")
    except OSError:
        client.close()
        return None
    return client


def main(arguments: "list[str]") -> int:
    """Hand over and wait. Returns the exit code."""
    incoming, outgoing = _private_pipes()
    for signal in (_signal.SIGINT, _signal.SIGTERM):
        _signal.signal(signal, _signal.SIG_IGN)
    pipeline = arguments[0]
    folder = folder_of(pipeline)
    try:
        make_private(folder)
    except OSError as error:
        return _say(f"the worker's folder can't be used: {error}", USAGE)
    engine = connect(folder) or _wait_for_engine(folder, arguments)
    if engine is None:
        return _say(f"no engine listens in {folder}; its log is {folder}/engine.log", ENGINE_GONE)
    if not _hand_over(engine, pipeline, incoming, outgoing):
        return _say("the engine ended before it took the shard", ENGINE_GONE)
    os.close(incoming)
    os.close(outgoing)
    return _obey(engine)


def _private_pipes() -> "tuple[int, int]":
    import fcntl

    # Above 2, so that neither copy takes the place of stderr where that is closed.
    incoming = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3)
    outgoing = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3)
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    return incoming, outgoing


def _wait_for_engine(folder: str, arguments: "list[str]") -> "_socket.socket | None":
    """Start an engine if nobody else is at it, and wait until one listens.

    Under `kcl-spark run` the supervisor starts engines, so the children only wait.
    """
    import fcntl
    import time

    deadline = time.monotonic() + PATIENCE
    lock = os.open(f"{folder}/start.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)  # held until this child ends or the engine listens: one start at a time
    engine = connect(folder)
    started = None if engine or FOLDER in os.environ else _start_engine(folder, arguments)
    while engine is None and time.monotonic() < deadline:
        if started is not None:
            _leave_if_refused(started, f"{folder}/engine.log")
        time.sleep(0.02)
        engine = connect(folder)
    os.close(lock)
    return engine


def _start_engine(folder: str, arguments: "list[str]") -> int:
    """Start an engine in a session of its own, with none of our pipes, and its output in a log file."""
    log = f"{folder}/engine.log"
    command = [sys.executable, "-m", "kcl_spark", "engine", *arguments, "--leave-when-idle"]
    flags = os.O_CREAT | os.O_WRONLY | os.O_APPEND
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, log, flags, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    environment = {**os.environ, FOLDER: folder}
    return os.posix_spawn(sys.executable, command, environment, file_actions=actions, setsid=True)


def _leave_if_refused(started: int, log: str) -> None:
    """End as the engine that we started did, and with its last words, which the daemon's log would not have."""
    pid, status = os.waitpid(started, os.WNOHANG)
    if pid:
        with open(log, "rb") as lines:  # noqa: PTH123
            lines.seek(max(0, os.fstat(lines.fileno()).st_size - 4096))
            last = [line for line in lines.read().decode("utf-8", "replace").splitlines() if line.strip()][-1:]
        code = os.waitstatus_to_exitcode(status)
        sys.exit(_say("".join(last).removeprefix("kcl-spark: "), code if code > 0 else ENGINE_GONE))


def _hand_over(engine: "_socket.socket", pipeline: str, incoming: int, outgoing: int) -> bool:
    descriptors = incoming.to_bytes(4, sys.byteorder) + outgoing.to_bytes(4, sys.byteorder)
    rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, descriptors)]
    try:
        engine.sendmsg([f"child {os.getpid()} {os.path.realpath(pipeline)}\n".encode()], rights)
    except OSError:
        return False
    return True


def _obey(engine: "_socket.socket") -> int:
    """Wait for the engine's `exit N` or `exit N REASON`, or for its end."""
    word = b""
    while not word.endswith(b"\n"):
        try:
            received = engine.recv(4096)
        except OSError:
            received = b""
        if not received:
            return _say("the engine ended", ENGINE_GONE)
        word += received
    _, code, *reason = word.decode("utf-8", "replace").split(None, 2)
    return _say(reason[0].rstrip(), int(code)) if reason else int(code)


def _say(text: str, code: int) -> int:
    sys.stderr.write(f"kcl-spark child: {text}\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
