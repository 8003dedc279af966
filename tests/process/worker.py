"""Real processes for tests: a worker's folder, its pipeline file, its engine, its daemon, and what came of it."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final, TypeVar

import psutil

from kcl_spark.errors import EngineGone
from kcl_spark.simulator.daemon import FakeDaemon
from kcl_spark.simulator.lease import Lease
from kcl_spark.simulator.stream import Stream
from kcl_spark.worker import child, handover
from kcl_spark.worker.assembly import TEST_DEATH
from kcl_spark.worker.steps import Step
from tests.process.daemon_end import DaemonEnd

T = TypeVar("T")

STUB: Final = (sys.executable, "-S", "-E", child.__file__)
"""A child, as `kcl-spark child` becomes it."""

BAD_EVERY: Final = 10
"""Each tenth record fed is a dead letter."""

_DECLARED: Final = {
    "name": "'test'",
    "source": "formats.json('id bigint NOT NULL')",
    "sink": "sinks.delta(f'{here}/rows')",
    "dead_letter": "sinks.delta(f'{here}/dead')",
    "trigger": "Trigger('100ms')",
    # Every tenth record is bad on purpose.
    "dead_letter_limit": "DeadLetterLimit(1.0)",
}


def eventually(what: str, holds: Callable[[], T], seconds: float = 60.0) -> T:
    """Wait until something holds, and return it."""
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.02)
    return found


@dataclass
class Engine:
    """An engine process and its log."""

    process: subprocess.Popen[bytes]
    folder: Path
    log_file: Path

    @property
    def log(self) -> str:
        return self.log_file.read_text()

    def status(self) -> dict[str, Any]:
        return handover.status(self.folder)

    def is_ready(self) -> bool:
        assert self.process.poll() is None, f"the engine ended with {self.process.returncode}:\n{self.log}"
        try:
            return bool(self.status()["ready"])
        except EngineGone:
            return False

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def exit_code(self, seconds: float = 60.0) -> int:
        """Wait for its end; negative is a signal."""
        return self.process.wait(seconds)


@dataclass
class Worker:
    """A folder with a pipeline file and its tables, and every process that runs there.

    Attributes:
        root: the folder; short, for a socket lies below it.
        spark: options that say where Spark runs.
    """

    root: Path
    spark: Sequence[str]
    engines: list[Engine] = field(default_factory=list)
    daemons: list[FakeDaemon] = field(default_factory=list)
    children: list[DaemonEnd] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pipeline = self.root / "pipeline.py"
        self.folder = self.root / "worker"
        self.rows = self.root / "rows"
        self.dead = self.root / "dead"
        self.environment = {**os.environ, child.FOLDER: str(self.folder)}
        self.declare()

    def declare(self, before: str = "", **fields: str) -> None:
        """Write the pipeline file: `before` stands above the pipeline, and fields replace the usual ones."""
        declared = ", ".join(f"{name}={value}" for name, value in (_DECLARED | fields).items())
        self.pipeline.write_text(
            "import os, sys, time\n"
            "from pathlib import Path\n"
            "from kcl_spark import Pipeline, Trigger, formats, sinks\n"
            "from kcl_spark.pipeline import DeadLetterLimit\n"
            "here = Path(__file__).parent\n"
            f"{before}\n"
            f"pipeline = Pipeline({declared})\n"
        )

    def engine(self, *options: str, death: tuple[Step, int] | None = None, ready: bool = True) -> Engine:
        """Start an engine; `death` is the step, and which time of it, at which it kills itself."""
        log = self.root / f"engine-{len(self.engines)}.log"
        command = [sys.executable, "-m", "kcl_spark", "engine", str(self.pipeline), "--folder", str(self.folder)]
        environment = self.environment | ({TEST_DEATH: f"{death[0]}:{death[1]}"} if death else {})
        with log.open("wb") as target:
            process = subprocess.Popen(
                [*command, "--no-warm", *self.spark, *options],
                stdin=subprocess.DEVNULL,
                stdout=target,
                stderr=target,
                env=environment,
                start_new_session=True,
            )
        engine = Engine(process, self.folder, log)
        self.engines.append(engine)
        if ready:
            eventually("the engine is ready", engine.is_ready, 120)
        return engine

    def child(self, command: Sequence[str] = STUB, options: Sequence[str] = (), **environment: str) -> DaemonEnd:
        """A child with the daemon's end of its pipes in the test's hands."""
        self.children.append(
            DaemonEnd(
                [*command, str(self.pipeline), *options],
                self.environment | environment,
                self.root / f"child-{len(self.children)}.log",
            )
        )
        return self.children[-1]

    def daemon(self, stream: Stream, leases: dict[str, Lease] | None = None, **options: Any) -> FakeDaemon:
        """A daemon that knows the leases of the one before it."""
        command = [*STUB, str(self.pipeline)]
        known = {} if leases is None else leases
        daemon = FakeDaemon(stream, command, self.environment, time.monotonic, leases=known, **options)
        self.daemons.append(daemon)
        return daemon

    def finish(self, daemon: FakeDaemon) -> None:
        """Let everything be committed, then shut down in order."""
        drive(daemon, lambda: all_committed(daemon))
        handover.ask(self.folder, "drain")
        daemon.shut_down()
        drive(daemon, lambda: not daemon.children)

    def processes(self) -> list[psutil.Process]:
        """Everything alive that runs here, by its command line."""
        alive = psutil.process_iter(["cmdline", "status"])
        return [
            p for p in alive if p.info["status"] != "zombie" and str(self.root) in " ".join(p.info["cmdline"] or ())
        ]

    def clean_up(self) -> None:
        for child_ in self.children:
            child_.end()
        for daemon in self.daemons:
            for shard in daemon.children.values():
                shard.process.kill()
            daemon.kill()
        for engine in self.engines:
            _kill_group(engine.process)
        for process in self.processes():
            process.kill()


def _kill_group(leader: subprocess.Popen[bytes]) -> None:
    """An engine leads a session, and its JVM is in it."""
    try:
        os.killpg(leader.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        leader.wait()


# ------------------------------------------------------------------------------------------------------- the stream


class Feed:
    """Puts records into a stream: ids in order, each tenth one no JSON."""

    def __init__(self, stream: Stream, padding: int = 0) -> None:
        self.stream = stream
        self.fed = 0
        self._ids = count()
        self._padding = " " * padding

    def put(self, records: int) -> None:
        for _, number in zip(range(records), self._ids, strict=False):
            bad = number % BAD_EVERY == BAD_EVERY - 1
            payload = f"bad {number}" if bad else f'{{"id": {number}{self._padding}}}'
            self.stream.put(payload.encode(), str(number), 1_700_000_000_000 + number)
            self.fed += 1

    @property
    def ids(self) -> Counter[int]:
        """What has to be in the tables in the end, each once."""
        return Counter(range(self.fed))


def drive(daemon: FakeDaemon, until: Callable[[], object], seconds: float = 60.0) -> None:
    """Run the daemon until something holds."""
    deadline = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < deadline, f"the daemon waited for {seconds:g} s"
        daemon.step(0.02)


def all_committed(daemon: FakeDaemon) -> bool:
    """Whether every record is behind a checkpoint, and every closed shard at its end."""
    leases, shards = daemon.leases, daemon.stream.shards
    return all(
        name in leases and (leases[name].ended if shard.closed else not shard.records) for name, shard in shards.items()
    )


# ------------------------------------------------------------------------------------------------------- the tables


def ids(worker: Worker) -> Counter[int]:
    """Every id in the table and among the dead letters, as often as it is there."""
    good = (row["id"] for row in rows_of(worker.rows))
    bad = (int(row["payload"].decode().removeprefix("bad ")) for row in rows_of(worker.dead))
    return Counter(good) + Counter(bad)


def rows_of(table: Path) -> list[dict[str, Any]]:
    from deltalake import DeltaTable

    if not DeltaTable.is_deltatable(str(table)):
        return []
    return list(DeltaTable(str(table)).to_pyarrow_table().to_pylist())


def in_order(table: Path) -> bool:
    """Whether each commit holds, for each of its shards, only records behind those of all commits before it."""
    latest: dict[str, int] = {}
    for rows in _commits(table):
        for shard, numbers in rows.items():
            if min(numbers) <= latest.get(shard, 0):
                return False
            latest[shard] = max(numbers)
    return True


def _commits(table: Path) -> Iterator[Mapping[str, list[int]]]:
    """Sequence numbers by shard of the rows that each version added."""
    import json

    import pyarrow.parquet as pq

    for entry in sorted((table / "_delta_log").glob("*.json")):
        found: dict[str, list[int]] = {}
        for path in _added(json.loads(line) for line in entry.read_text().splitlines()):
            columns = pq.read_table(table / path, columns=["_shard_id", "_sequence_number"]).to_pylist()
            for row in columns:
                found.setdefault(row["_shard_id"], []).append(int(row["_sequence_number"]))
        yield found


def _added(actions: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    return (action["add"]["path"] for action in actions if "add" in action)
