"""A pipeline from an input file to its table with no AWS: engine, children and pipes are real, stream and daemon ours.

It feeds the stream from the file, reshards it on the way, runs the engine as a process of its own, and ends by itself:
when all is delivered the daemon shuts down gracefully, which commits everything, and the engine's account is compared
with what was fed.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from kcl_spark.errors import DaemonFailed, EngineGone, ExitCode, UsageError
from kcl_spark.positions import Position
from kcl_spark.simulator.daemon import FakeDaemon
from kcl_spark.simulator.lease import Lease
from kcl_spark.simulator.stream import Stream
from kcl_spark.worker import child, handover

AHEAD: Final = 50_000
"""Records that are fed ahead of the children: enough to keep them busy, few enough to hold in memory."""

_INPUT: Final = "Name a file with one record a line"

_LOOK: Final = 1_000
"""Lines between two looks at how far ahead the feed is."""

_ROOM: Final = 60
"""Characters of a temporary folder's path that leave room for a socket below it (its path may have 107 bytes)."""

STOP_SECONDS: Final = 10.0


@dataclass(frozen=True)
class Plan:
    """What to simulate.

    Attributes:
        pipeline: the user's file.
        source: the input, one record a line.
        shards: how many shards the stream begins with.
        split_at: when a shard splits, as a share of the input; None: never.
        merge_at: when two shards merge, likewise.
        key: the JSON field that is the partition key; None: each line has a key of its own.
        log: where engine and children write; None: stderr.
        engine: options for the engine's command line.
    """

    pipeline: Path
    source: Path
    shards: int = 4
    split_at: float | None = 1 / 3
    merge_at: float | None = 2 / 3
    key: str | None = None
    log: Path | None = None
    engine: Sequence[str] = ()


@dataclass
class Result:
    """What came of it; rows in = records that became rows + dead letters."""

    fed: int = 0
    records: int = 0
    dead_letters: int = 0
    rows: int = 0
    batches: int = 0
    seconds: float = 0.0
    latencies: list[tuple[float, int]] = field(default_factory=list)
    stopped: str | None = None

    @property
    def complete(self) -> bool:
        """Whether every record fed is accounted for."""
        return self.records == self.fed

    def percentile(self, share: float) -> float | None:
        """Seconds from delivery to a durable checkpoint that this share of the records stayed under."""
        total = sum(count for _, count in self.latencies)
        seen = 0
        for seconds, count in sorted(self.latencies):
            seen += count
            if seen >= share * total:
                return seconds
        return None


Progress = Callable[[str, int, int, int], None]
"""Told what is going on: a phase in words, bytes fed, bytes in all, records committed."""


class Simulation:
    """One run.

    Args:
        plan: what to simulate.
        clock: monotonic seconds, for latencies and idle ticks.
        now_millis: what time records arrive at, in epoch milliseconds.
        progress: told what is going on.
    """

    def __init__(
        self, plan: Plan, clock: Callable[[], float], now_millis: Callable[[], int], progress: Progress
    ) -> None:
        self._plan = plan
        self._clock = clock
        self._now_millis = now_millis
        self._progress = progress
        self.stream = Stream(plan.shards)
        self.leases: dict[str, Lease] = {}
        self._result = Result()
        self._underway: dict[str, deque[tuple[Position, int, float]]] = {}
        self._committed = 0

    def run(self) -> Result:
        """Run to the end of the input. Blocks.

        Raises:
            UsageError: the input or the pipeline can't be used.
            KclSparkError: the engine or a child failed.
        """
        size = _size_of(self._plan.source)
        with tempfile.TemporaryDirectory(prefix="kcl-spark-", dir=_short_folder()) as name:
            folder = Path(name) / "worker"
            environment = {**os.environ, child.FOLDER: str(folder)}
            with self._engine(folder, environment) as engine:
                self._progress("starting Spark", 0, size, 0)
                engine.wait_for("ready")
                self._drive(engine, folder, environment, size)
                self._account(handover.status(folder))
        return self._result

    @contextmanager
    def _engine(self, folder: Path, environment: Mapping[str, str]) -> Iterator[EngineProcess]:
        command = [sys.executable, "-m", "kcl_spark", "engine", str(self._plan.pipeline), "--folder", str(folder)]
        with ExitStack() as stack:
            said = stack.enter_context(self._plan.log.open("ab")).fileno() if self._plan.log else 2
            engine = EngineProcess([*command, *self._plan.engine], environment, said)
            stack.callback(engine.stop)
            yield engine

    def _drive(self, engine: EngineProcess, folder: Path, environment: Mapping[str, str], size: int) -> None:
        stub = str(Path(child.__file__))
        daemon = FakeDaemon(
            self.stream,
            [sys.executable, "-S", "-E", stub, str(self._plan.pipeline)],
            environment,
            self._clock,
            leases=self.leases,
            delivered=self._delivered,
            checkpointed=self._checkpointed,
        )
        began = self._clock()
        feed = self._feed(size)
        fed, draining = 0, False
        try:
            while not draining or daemon.children:
                fed = next(feed, size)
                self._progress("streaming", fed, size, self._committed)
                daemon.step()
                engine.check()
                if not draining and (engine.heard("stopped") or (fed >= size and self._all_delivered(daemon))):
                    draining = True
                    handover.ask(folder, "drain")
                    daemon.shut_down()
        except DaemonFailed as error:
            # A stopped shard that was read to its end leaves without a word, which ends the daemon: the real one too.
            if error.exit_code != ExitCode.SHARD_STOPPED:
                raise
        finally:
            daemon.kill()
        self._result.seconds = self._clock() - began

    def _all_delivered(self, daemon: FakeDaemon) -> bool:
        shards = self.stream.shards.values()
        finished = all(daemon.leases[s.shard_id].ended for s in shards if s.closed and s.shard_id in daemon.leases)
        return finished and all(s.shard_id in daemon.leases and not s.unread for s in shards)

    # -------------------------------------------------------------------------------------------- feeding

    def _feed(self, size: int) -> Iterator[int]:
        """Put lines into the stream, a few thousand at a time; yields how many bytes of the input that were so far."""
        fed = 0
        reshards = self._reshards()
        with self._plan.source.open("rb") as lines:
            for number, line in enumerate(lines):
                fed += len(line)
                self._put(line.rstrip(b"\r\n"), number)
                while reshards and fed >= reshards[0][0] * size:
                    reshards.pop(0)[1]()
                while number % _LOOK == 0 and self.stream.unread >= AHEAD:
                    yield fed
        for _, reshard in reshards:
            reshard()
        while True:
            yield size

    def _put(self, payload: bytes, number: int) -> None:
        if payload:
            self.stream.put(payload, self._key_of(payload, number), self._now_millis())
            self._result.fed += 1

    def _key_of(self, payload: bytes, number: int) -> str:
        if self._plan.key is None:
            return str(number)
        try:
            return str(msgspec.json.decode(payload)[self._plan.key])
        except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError):
            return str(number)

    def _reshards(self) -> list[tuple[float, Callable[[], None]]]:
        planned = [(self._plan.split_at, self._split), (self._plan.merge_at, self._merge)]
        return sorted(((at, act) for at, act in planned if at is not None), key=lambda pair: pair[0])

    def _split(self) -> None:
        self.stream.split(self.stream.open_shards()[0].shard_id)

    def _merge(self) -> None:
        shards = self.stream.open_shards()
        if len(shards) > 1:
            self.stream.merge(shards[-2].shard_id, shards[-1].shard_id)

    # -------------------------------------------------------------------------------------------- accounting

    def _delivered(self, lease: Lease, records: int, now: float) -> None:
        assert lease.delivered is not None
        self._underway.setdefault(lease.shard_id, deque()).append((lease.delivered, records, now))

    def _checkpointed(self, lease: Lease, now: float) -> None:
        underway = self._underway.get(lease.shard_id, deque())
        reached = lease.checkpoint if isinstance(lease.checkpoint, Position) else None
        while underway and (lease.ended or (reached is not None and underway[0][0] <= reached)):
            _, records, then = underway.popleft()
            self._committed += records
            self._result.latencies.append((now - then, records))

    def _account(self, status: Mapping[str, Any]) -> None:
        for name in ("records", "rows", "dead_letters", "batches"):
            setattr(self._result, name, status[name])
        self._result.stopped = next(iter(status["stopped"].values()), None)


class EngineProcess:
    """An engine that we started, and what it says about itself.

    Args:
        command: its command line.
        environment: its environment.
        log: the descriptor that it writes to.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: int = 2) -> None:
        self._notices, notify = os.pipe2(os.O_CLOEXEC)
        self._said: set[str] = set()
        self._process = subprocess.Popen(
            [*command, "--notify-fd", str(notify)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(notify,),
            env=dict(environment),
            start_new_session=True,
        )
        os.close(notify)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._notices, selectors.EVENT_READ)

    def wait_for(self, word: str) -> None:
        """Block until the engine says it.

        Raises:
            KclSparkError: it ended instead; its own message stands in the log.
        """
        while word not in self._said:
            self._listen(None)
            self.check()

    def heard(self, word: str) -> bool:
        """Whether the engine has said it by now."""
        self._listen(0)
        return word in self._said

    def check(self) -> None:
        """Raise if the engine has ended."""
        code = self._process.poll()
        if code is not None:
            known = code in set(ExitCode)
            error = EngineGone(f"the engine ended with exit code {code}", "Its own message is in its log")
            error.exit_code = ExitCode(code) if known else ExitCode.ENGINE_GONE
            raise error

    def stop(self) -> None:
        """Let it end, and see to it that it does."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._selector.close()
        os.close(self._notices)

    def _listen(self, timeout: float | None) -> None:
        if self._selector.select(timeout):
            words = os.read(self._notices, 256).decode().split()
            self._said |= set(words)
            if not words:  # it has closed its end, so it is ending
                self._process.wait()


def _size_of(source: Path) -> int:
    try:
        size = source.stat().st_size
    except OSError as error:
        raise UsageError(f"the input {source} can't be read: {error.strerror}", _INPUT) from None
    if not source.is_file() or not _holds_records(source):
        raise UsageError(f"the input {source} holds no records", _INPUT)
    return size


def _holds_records(source: Path) -> bool:
    with source.open("rb") as lines:
        return any(line.rstrip(b"\r\n") for line in lines)


def _short_folder() -> str | None:
    """Where to put the worker's folder: None for the usual place, which a long TMPDIR rules out."""
    return None if len(tempfile.gettempdir()) < _ROOM else "/tmp"  # noqa: S108 - a folder of its own, mode 0700
