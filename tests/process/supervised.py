"""A supervisor over two stand-ins, as a process of its own: `python -m tests.process.supervised FOLDER ENGINE DAEMON`.

ENGINE and DAEMON are words for what the stand-ins do; each writes its life into FOLDER/events, a line for each event.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from kcl_spark.worker import supervisor
from kcl_spark.worker.supervisor import Process, Supervisor

GRACE = 20.0


def supervise(folder: Path, engine: str, daemon: str, grace: float) -> int:
    vars(supervisor)["FIRST_WAIT"] = 0.01  # how long is not what is tested
    stand_in = [sys.executable, "-m", "tests.process.supervised", str(folder)]
    return Supervisor(
        engine=Process("engine", [*stand_in, "engine", engine]),
        daemon=Process("daemon", [*stand_in, "daemon", daemon]),
        folder=folder,
        grace=grace,
        environment=os.environ,
        clock=time.monotonic,
        log=lambda line: tell(folder, f"log {line}"),
    ).run()


def tell(folder: Path, line: str) -> None:
    descriptor = os.open(folder / "events", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, line.encode() + b"\n")
    os.close(descriptor)


def stand_in(folder: Path, name: str, what: str, notify: int | None) -> None:
    """Be the engine or the daemon; what it does on SIGTERM and at its start is in `what`."""

    def terminated(*_: object) -> None:
        tell(folder, f"{name} {os.getpid()} SIGTERM")
        if "idle-on-term" in what:
            (folder / "say-idle").touch()
        if "deaf" not in what:
            tell(folder, f"{name} {os.getpid()} ends")
            os._exit(0 if name == "engine" else 143)

    signal.signal(signal.SIGTERM, terminated)
    tell(folder, f"{name} {os.getpid()} starts")
    for word in what.split(","):
        if word.startswith("exit="):
            os._exit(int(word.removeprefix("exit=")))
    say = saying(notify)
    if "never-ready" not in what:
        say("ready")
    if "stopped" in what:
        say("stopped")
    while True:
        time.sleep(0.01)
        if notify is not None and (folder / "say-idle").exists():
            say("idle")
            (folder / "say-idle").unlink(missing_ok=True)


def saying(notify: int | None) -> Callable[[str], None]:
    def say(word: str) -> None:
        if notify is not None:
            os.write(notify, word.encode() + b"\n")

    return say


if __name__ == "__main__":
    root, *words = sys.argv[1:]
    if words[0] in ("engine", "daemon"):
        descriptor = int(words[words.index("--notify-fd") + 1]) if "--notify-fd" in words else None
        stand_in(Path(root), words[0], words[1], descriptor)
    else:
        sys.exit(supervise(Path(root), words[1], words[2], float(words[3])))
