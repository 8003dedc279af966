"""The one place that knows every part: a pipeline and some options become an engine that runs.

Nothing here decides anything. What can be refused is refused in this order, before a daemon is started: the folder, the
pipeline file, the tables, Spark, the schema, the transform's plan.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from socket import socket
from threading import Event as Flag
from threading import Thread
from typing import Any

from kcl_spark.pipeline import Pipeline
from kcl_spark.sinks.base import Entry, OpenSink
from kcl_spark.worker import handover, progress, report, spark
from kcl_spark.worker.commit import Flusher
from kcl_spark.worker.compute import Computation
from kcl_spark.worker.engine import Engine
from kcl_spark.worker.loading import load
from kcl_spark.worker.log import Log
from kcl_spark.worker.spark import SparkOptions
from kcl_spark.worker.spool import Spool
from kcl_spark.worker.steps import Listener, Step, Steps
from kcl_spark.worker.warmup import warm_up
from kcl_spark.worker.worker import Worker

HEARTBEAT = 5.0
"""Seconds of silence before a heartbeat where the daemon's `timeoutInSeconds` is not known; under `kcl-spark run` it is
a third of that setting. Each costs the daemon one comparison and no write."""

IDLE = 60.0
"""Seconds without a child after which an engine that a child started leaves: longer than a daemon takes to restart."""

TEST_IDLE = "KCL_SPARK_TEST_IDLE_SECONDS"
"""For tests only: an environment variable with another number for `IDLE`."""

TEST_DEATH = "KCL_SPARK_TEST_DEATH"
"""For tests only: an environment variable such as `committed:2`: the engine kills itself at the second `committed`."""


@dataclass(frozen=True)
class EngineOptions:
    """How to run an engine.

    Attributes:
        pipeline: the user's file.
        folder: the worker's private folder.
        spark: where Spark runs.
        stream: the stream's name, where the daemon's properties tell it.
        spool: where batches pass; below `folder` by default.
        heartbeat: seconds of silence before a heartbeat.
        leave_when_idle: leave once there has been no child for a while.
        warm: run some jobs before reporting ready, so that the first batches are not the slow ones. Left out when an
            engine is replaced: a daemon is waiting then, and records warm it up as well as made-up ones do (measured:
            4 s sooner to the next commit).
        notify_fd: where to say `ready`, `stopped` and `idle` to a supervisor.
        listeners: told of each step.
    """

    pipeline: Path
    folder: Path
    spark: SparkOptions = field(default_factory=SparkOptions)
    stream: str | None = None
    spool: Path | None = None
    heartbeat: float = HEARTBEAT
    leave_when_idle: bool = False
    warm: bool = True
    notify_fd: int | None = None
    listeners: tuple[Listener, ...] = ()


def run_engine(options: EngineOptions) -> None:
    """Run an engine until it is told to stop. Blocks; must be called in the main thread.

    Raises:
        KclSparkError: it could not start, or could not go on.
    """
    _send_stdout_to_stderr()
    door = handover.claim(options.folder)
    pipeline = load(options.pipeline)
    log = Log(sys.stderr, lambda: datetime.now(UTC))
    engine = _engine(options, pipeline, door, log)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: engine.stop())
    engine.run()


def _tell_progress(parts: _Parts, stopping: Flag) -> None:
    """Say now and then how the work gets on; ends with the engine."""
    before, since = parts.account(), time.monotonic()
    while not stopping.wait(progress.EVERY):
        now, moment = parts.account(), time.monotonic()
        line = progress.line(before, now, moment - since)
        if line is not None:
            parts.log.info(line)
        before, since = now, moment


def _engine(options: EngineOptions, pipeline: Pipeline, door: socket, log: Log) -> Engine:
    stream = options.stream or pipeline.stream
    data = pipeline.sink.open(pipeline.name, stream)
    dead = pipeline.dead_letter.open(pipeline.name, stream) if pipeline.dead_letter else None
    steps = Steps(*options.listeners, *_planned_death(os.environ.get(TEST_DEATH)))
    worker = Worker(pipeline, options.heartbeat, steps, note=log.warning)
    parts = _Parts(options, pipeline, data, dead, worker, steps, log)
    engine = Engine(
        door,
        worker,
        pipeline=os.path.realpath(options.pipeline),
        entry=lambda shard_id: data.entries([shard_id])[shard_id] if pipeline.keeps_marks else Entry(),
        start=parts.start,
        clock=time.monotonic,
        log=log.info,
        report=lambda: json.dumps(parts.account()),
        idle=float(os.environ.get(TEST_IDLE, IDLE)) if options.leave_when_idle else None,
        notify=_notifier(options.notify_fd),
    )
    parts.engine = engine
    Thread(target=_tell_progress, args=(parts, engine.stopping), name="progress", daemon=True).start()
    return engine


@dataclass
class _Parts:
    """What the flushing thread makes, and `status` looks at."""

    options: EngineOptions
    pipeline: Pipeline
    data: OpenSink
    dead: OpenSink | None
    worker: Worker
    steps: Steps
    log: Log
    engine: Engine | None = None
    flusher: Flusher | None = None
    floor: float | None = None

    def start(self) -> Flusher:
        """Start Spark, check what can be checked without a record, and return the flusher."""
        began = time.monotonic()
        session = spark.start(self.options.spark, self.pipeline.spark)
        spool = Spool(self.options.spool or self.options.folder / "spool", os.cpu_count() or 1, self.pipeline.source)
        computation = Computation(session, self.pipeline.source, self.pipeline.transform, spool)
        self.data.check(computation.check())
        if self.dead is not None:
            self.dead.check(computation.letters_schema())
        if self.options.warm:
            self.floor = warm_up(computation.warm_plan, spool, time.monotonic)
        self.flusher = self._flusher(spool, computation)
        self.log.info(f"ready after {time.monotonic() - began:.1f} s: pipeline {self.pipeline.name}")
        return self.flusher

    def _flusher(self, spool: Spool, computation: Computation) -> Flusher:
        assert self.engine is not None
        stopping = self.engine.stopping
        return Flusher(
            spool=spool,
            compute=computation,
            data=self.data,
            dead=self.dead,
            owns=self.worker.owns,
            limit=self.pipeline.dead_letter_limit,
            source=self.pipeline.source,
            steps=self.steps,
            clock=time.monotonic,
            now=lambda: datetime.now(UTC),
            wait=lambda seconds: not stopping.wait(seconds),
            note=self.log.warning,
            keeps_marks=self.pipeline.keeps_marks,
        )

    def account(self) -> dict[str, Any]:
        """What the engine says about itself."""
        assert self.engine is not None
        account = self.flusher.account if self.flusher else None
        ready = self.engine.ready.is_set()
        return report.of(self.pipeline, self.worker, account, self.floor, time.monotonic(), ready=ready)


def _planned_death(plan: str | None) -> tuple[Listener, ...]:
    if plan is None:
        return ()
    step, times = plan.split(":")
    left = iter(range(int(times) - 1, -1, -1))

    def listener(reached: Step) -> None:
        if reached == step and next(left) == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return (listener,)


def _notifier(descriptor: int | None) -> Callable[[str], None]:
    def notify(word: str) -> None:
        if descriptor is not None:
            with suppress(OSError):  # a supervisor that is gone is no reason to stop
                os.write(descriptor, word.encode() + b"\n")

    if descriptor is not None:
        os.set_inheritable(descriptor, False)  # or Spark's JVM would keep it open
    return notify


def _send_stdout_to_stderr() -> None:
    """A print in user code, a banner, a progress bar: all of it is log, and the engine's stdout may be a protocol."""
    sys.stdout.flush()
    os.dup2(2, 1)
    sys.stdout = sys.stderr
