"""The child: it hands its pipes over, weighs next to nothing, obeys the engine alone, and says why it can't go on."""

import fcntl
import os
import re
import signal
import sys
from binascii import crc32
from pathlib import Path

import psutil
import pytest

from kcl_spark.errors import ExitCode
from kcl_spark.protocol import Initialize, Status
from kcl_spark.worker import child as stub
from kcl_spark.worker.assembly import TEST_IDLE
from tests.process.daemon_end import DaemonEnd
from tests.process.worker import STUB, Worker, eventually, ids

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("process-child")]

COMMAND = (str(Path(sys.executable).with_name("kcl-spark")), "child")


def pipe_of(end: DaemonEnd) -> set[str]:
    """What the kernel calls the two pipes."""
    return {f"pipe:[{os.fstat(stream.fileno()).st_ino}]" for stream in (end.stdin, end.stdout)}


def descriptors(pid: int) -> dict[int, str]:
    folder = Path(f"/proc/{pid}/fd")
    return {int(path.name): str(path.readlink()) for path in folder.iterdir()}


def held(pid: int) -> set[str]:
    return set(descriptors(pid).values())


def is_close_on_exec(pid: int, descriptor: int) -> bool:
    flags = re.search(r"flags:\s*(\d+)", Path(f"/proc/{pid}/fdinfo/{descriptor}").read_text())
    return flags is not None and bool(int(flags[1], 8) & os.O_CLOEXEC)


def pss_kib(pid: int) -> int:
    found = re.search(r"^Pss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    assert found
    return int(found[1])


def engines(worker: Worker) -> list[psutil.Process]:
    return [process for process in worker.processes() if "engine" in process.info["cmdline"]]


@pytest.fixture
def alone(worker: Worker) -> Worker:
    """A worker that nobody supervises: its children start the engine."""
    del worker.environment[stub.FOLDER]
    worker.environment["XDG_RUNTIME_DIR"] = str(worker.root)
    worker.folder = Path(worker.root, f"kcl-spark-{os.getuid()}")
    return worker


@pytest.mark.parametrize("command", [STUB, COMMAND], ids=["stub", "command"])
def test_a_shard_is_handed_over_to_the_running_engine(worker: Worker, command: tuple[str, ...]) -> None:
    worker.engine()
    end = worker.child(command)
    end.open()
    end.deliver(1, 2, 3)
    end.until_checkpoint(3)
    assert ids(worker) == {1: 1, 2: 1, 3: 1}
    end.close()
    assert end.exit_code() == ExitCode.OK


def test_a_child_of_another_pipeline_is_turned_away(worker: Worker) -> None:
    engine = worker.engine()
    ours, worker.pipeline = worker.pipeline, worker.root / "other.py"
    worker.pipeline.write_text(ours.read_text())
    end = worker.child()
    assert end.exit_code() == ExitCode.USAGE
    assert f"is of {worker.pipeline}, and this engine of {ours}" in engine.log


def test_a_waiting_child_weighs_next_to_nothing_and_holds_no_pipe(worker: Worker) -> None:
    worker.engine()
    end = worker.child()
    end.open()
    eventually("the child let go of its pipes", lambda: not pipe_of(end) & held(end.process.pid))
    left = descriptors(end.process.pid)
    assert left[0] == "/dev/null"
    assert left[1] == left[2]
    assert pss_kib(end.process.pid) <= 6 * 1024


def test_the_pipes_are_private_from_the_first(worker: Worker) -> None:
    """No engine is there yet, so the child still has them: away from 0 and 1, and for no other program to inherit."""
    end = worker.child()
    eventually("the child waits", (worker.folder / "start.lock").exists)
    numbers = descriptors(end.process.pid)
    copies = [number for number, name in numbers.items() if name in pipe_of(end)]
    assert len(copies) == 2
    assert min(copies) > 2
    assert all(is_close_on_exec(end.process.pid, number) for number in numbers if number > 2)


def test_signals_to_the_group_are_not_for_the_child(worker: Worker) -> None:
    worker.engine()
    end = worker.child()
    end.open()
    for number in (signal.SIGINT, signal.SIGTERM):
        end.process.send_signal(number)
    end.deliver(1)
    end.until_checkpoint(1)
    assert end.process.poll() is None


def test_children_with_no_engine_start_one_which_leaves_when_idle(alone: Worker) -> None:
    ends = [alone.child(options=("--no-warm", *alone.spark), **{TEST_IDLE: "1"}) for _ in range(2)]
    for number, end in enumerate(ends):
        end.open(f"shard-{number}")
        end.deliver(number)
    assert len(engines(alone)) == 1
    (engine,) = engines(alone)
    # Its pipes are those handed over, which no program that it starts inherits.
    theirs = set().union(*map(pipe_of, ends))
    shared = [number for number, name in descriptors(engine.pid).items() if name in theirs]
    assert len(shared) == 4
    assert all(is_close_on_exec(engine.pid, number) for number in shared)
    for number, end in enumerate(ends):
        end.until_checkpoint(number)
        end.close()
        assert end.exit_code() == ExitCode.OK
    eventually("the engine left", lambda: engines(alone) == [])
    assert ids(alone) == {0: 1, 1: 1}


def test_a_child_that_comes_while_an_engine_leaves_gets_the_next_one(alone: Worker) -> None:
    """The old engine's door is closed and its lock still held, while its Spark ends."""
    folder = alone.folder / f"pipeline-{crc32(bytes(alone.pipeline)):08x}"
    stub.make_private(str(folder))
    with (folder / "engine.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        end = alone.child(options=("--no-warm", *alone.spark))
        eventually("the next engine waits for the lock", lambda: any(lock.name in held(e.pid) for e in engines(alone)))
    end.open()


def test_the_engine_dies_and_the_daemon_sees_the_pipe_close(worker: Worker) -> None:
    engine = worker.engine()
    end = worker.child()
    end.open()
    engine.kill()
    assert end.sees_the_end()
    assert end.exit_code() == ExitCode.ENGINE_GONE
    assert "the engine ended" in end.log


BAD = {
    "missing": (None, "there is no pipeline file {file}"),
    "does-not-import": ("x = 1\nimport no_such_module\n", "{file}:2: ModuleNotFoundError: No module named 'no_such"),
    "syntax": ("x = 1\ny = = 2\n", "{file}:2: SyntaxError: invalid syntax"),
    "no-pipeline": ("x = 1\n", "{file} has no `pipeline`"),
    "refused": (
        "from kcl_spark import *\nfrom kcl_spark import Trigger\n\nTrigger('soon')\n",
        "{file}:4: 'soon' is no duration",
    ),
}


@pytest.mark.parametrize(("text", "reason"), BAD.values(), ids=BAD)
def test_a_bad_pipeline_file_is_one_line(alone: Worker, text: str | None, reason: str) -> None:
    alone.pipeline.unlink()
    if text is not None:
        alone.pipeline.write_text(text)
    end = alone.child()
    assert end.exit_code() == ExitCode.USAGE
    (line,) = end.log.splitlines()
    assert reason.format(file=alone.pipeline) in line


def test_a_folder_of_somebody_else_is_refused(worker: Worker) -> None:
    worker.folder.mkdir(mode=0o755)
    worker.folder.chmod(0o755)
    end = worker.child()
    assert end.exit_code() == ExitCode.USAGE
    (line,) = end.log.splitlines()
    assert f"{worker.folder} is not a folder of this user alone (mode 0700)" in line


def test_the_engine_could_not_start_after_the_shard_was_taken(worker: Worker) -> None:
    """The transform is only looked at once Spark is there; the child was waiting by then, and is told why."""
    worker.declare(transform="lambda df: df.where('no_such_column > 1')")
    engine = worker.engine(ready=False)
    end = worker.child()
    end.say(Initialize("shard", "TRIM_HORIZON", 0))
    assert end.hear() == Status("initialize")
    assert end.exit_code() == ExitCode.TRANSFORM_BROKEN
    assert engine.exit_code() == ExitCode.TRANSFORM_BROKEN
    assert "no_such_column" in end.log
