"""What dies, what is restarted, and in which order: a real supervisor over two stand-ins that do as they are told."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from kcl_spark.errors import ExitCode
from tests.process.supervised import GRACE
from tests.process.worker import eventually

pytestmark = pytest.mark.process


class Supervised:
    """A supervisor that runs, and the events so far."""

    def __init__(self, folder: Path, engine: str, daemon: str, grace: float) -> None:
        self.folder = folder
        command = [sys.executable, "-m", "tests.process.supervised", str(folder), "run", engine, daemon, str(grace)]
        self.process = subprocess.Popen(command)

    @property
    def events(self) -> list[str]:
        with suppress(FileNotFoundError):
            return (self.folder / "events").read_text().splitlines()
        return []

    def started(self, name: str) -> list[int]:
        """Process ids of every engine or daemon so far."""
        return [int(line.split()[1]) for line in self.events if re.fullmatch(rf"{name} \d+ starts", line)]

    def wait_for(self, name: str, times: int = 1) -> int:
        """Wait until so many were started; returns the last one's process id."""
        eventually(f"{name} was started {times} times", lambda: len(self.started(name)) >= times)
        return self.started(name)[-1]

    def code(self) -> int:
        return self.process.wait(60)


Start = Callable[..., Supervised]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    running: list[Supervised] = []

    def make(engine: str = "-", daemon: str = "-", grace: float = GRACE) -> Supervised:
        running.append(Supervised(tmp_path, engine, daemon, grace))
        return running[-1]

    yield make
    for each in running:
        each.process.kill()
        each.process.wait()


def alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_the_daemon_is_started_when_the_engine_is_ready(start: Start) -> None:
    worker = start()
    worker.wait_for("daemon")
    starts = [line.split()[0] for line in worker.events if line.endswith("starts")]
    assert starts == ["engine", "daemon"]


@pytest.mark.parametrize("code", [ExitCode.USAGE, ExitCode.DATA_LOSS, ExitCode.SINK, ExitCode.TRANSFORM_BROKEN])
def test_an_engine_that_ends_for_good_reason_ends_the_worker(start: Start, code: ExitCode) -> None:
    worker = start(engine=f"exit={int(code)}")
    assert worker.code() == code
    assert worker.started("daemon") == []
    assert len(worker.started("engine")) == 1


def test_an_engine_that_dies_takes_the_daemon_along_and_both_start_anew(start: Start) -> None:
    worker = start()
    daemon = worker.wait_for("daemon")
    engine = worker.wait_for("engine")
    os.kill(engine, signal.SIGKILL)
    worker.wait_for("engine", 2)
    worker.wait_for("daemon", 2)
    assert not alive(daemon)
    assert f"daemon {daemon} SIGTERM" not in worker.events, "its grace period would be waited for"


def test_a_daemon_that_dies_is_started_anew_and_the_engine_stays(start: Start) -> None:
    worker = start()
    os.kill(worker.wait_for("daemon"), signal.SIGKILL)
    worker.wait_for("daemon", 2)
    assert len(worker.started("engine")) == 1


def test_a_daemon_that_dies_again_and_again_ends_the_worker(start: Start) -> None:
    worker = start(daemon="exit=1")
    assert worker.code() == ExitCode.DAEMON_FAILED
    assert len(worker.started("daemon")) == 5
    assert not alive(worker.started("engine")[0])


def test_an_engine_that_dies_again_and_again_ends_the_worker(start: Start) -> None:
    worker = start()
    for times in range(1, 6):
        worker.wait_for("daemon", times)
        os.kill(worker.wait_for("engine", times), signal.SIGKILL)
    assert worker.code() == ExitCode.ENGINE_GONE


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_daemon_first_and_the_engine_last(start: Start, number: signal.Signals) -> None:
    worker = start()
    daemon, engine = worker.wait_for("daemon"), worker.wait_for("engine")
    worker.process.send_signal(number)
    assert worker.code() == ExitCode.OK
    told = [line for line in worker.events if line.endswith(("SIGTERM", "ends"))]
    assert told == [
        f"daemon {daemon} SIGTERM", f"daemon {daemon} ends", f"engine {engine} SIGTERM", f"engine {engine} ends",
    ]  # fmt: skip
    assert not alive(daemon)
    assert not alive(engine)
    assert len(worker.started("engine")) == 1, "what ends because it has to is not started anew"


def test_a_daemon_that_does_not_end_is_killed_after_its_grace(start: Start) -> None:
    worker = start(daemon="deaf", grace=0.3)
    daemon = worker.wait_for("daemon")
    worker.process.terminate()
    assert worker.code() == ExitCode.OK
    assert f"daemon {daemon} SIGTERM" in worker.events
    assert not alive(daemon)
    assert any("grace" in line and "killed" in line for line in worker.events)


def test_nothing_is_waited_for_once_the_engine_has_given_up_its_last_shard(start: Start) -> None:
    """KCL takes its own leases again while it shuts down; nothing of that is wanted."""
    worker = start(daemon="deaf,idle-on-term", grace=10_000)
    daemon = worker.wait_for("daemon")
    worker.process.terminate()
    assert worker.code() == ExitCode.OK
    assert not alive(daemon)


def test_a_second_signal_ends_at_once(start: Start) -> None:
    worker = start(engine="deaf", daemon="deaf", grace=10_000)
    daemon, engine = worker.wait_for("daemon"), worker.wait_for("engine")
    worker.process.terminate()
    eventually("the daemon is told", lambda: f"daemon {daemon} SIGTERM" in worker.events)
    worker.process.terminate()
    worker.code()
    assert not alive(daemon)
    assert not alive(engine)


def test_a_signal_before_the_engine_is_ready(start: Start) -> None:
    worker = start(engine="never-ready")
    engine = worker.wait_for("engine")
    worker.process.terminate()
    assert worker.code() == ExitCode.OK
    assert worker.started("daemon") == []
    assert not alive(engine)


def test_a_stopped_shard_is_told_by_the_exit_code(start: Start) -> None:
    worker = start(engine="stopped")
    worker.wait_for("daemon")
    worker.process.terminate()
    assert worker.code() == ExitCode.SHARD_STOPPED


def test_without_its_supervisor_a_worker_does_not_live_on(start: Start) -> None:
    worker = start()
    daemon, engine = worker.wait_for("daemon"), worker.wait_for("engine")
    worker.process.kill()
    worker.process.wait()
    eventually("both are gone", lambda: not alive(daemon) and not alive(engine))
