"""One worker under the real daemon: its properties, its folder, the two command lines, and the supervisor over them.

Everything that can be refused is refused here, before a process is started: the pipeline file, the properties, Java,
the jars, the folder.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from binascii import crc32
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, Literal

from kcl_spark.daemon import jars, properties
from kcl_spark.daemon.command import daemon_command, find_java
from kcl_spark.daemon.generate import ARN, DaemonOptions, generate
from kcl_spark.daemon.lint import Finding, lint
from kcl_spark.errors import UsageError
from kcl_spark.worker import child
from kcl_spark.worker.declared import Declared, declared
from kcl_spark.worker.supervisor import Process, Supervisor

BEATS: Final = 3.0
"""Heartbeats in one `timeoutInSeconds`: two may be lost before the daemon halts."""

PROPERTIES: Final = "kcl.properties"


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How to run a worker.

    Attributes:
        pipeline: the user's file.
        folder: private folder of the worker: socket, spool, properties. None: one for each pipeline file.
        stream: name or ARN; None: the pipeline's own.
        application: names the lease table; None: the pipeline's name.
        properties: a file of the user's, taken as it is; the daemon's other options are then of no use.
        worker_id: owner of the leases; None: made of host and folder, so the same after a restart.
        region: None leaves it to the ARN and to the AWS SDK.
        start: where shards without a checkpoint start; None: at the oldest record, a best-effort pipeline at LATEST.
        kinesis_endpoint: in place of the region's.
        dynamodb_endpoint: in place of the region's.
        grace: seconds that SIGTERM leaves for what has been read to be committed.
        timeout: seconds of a child's silence after which the daemon halts; None: for ever.
        fan_out: enhanced fan-out, which costs extra.
        extra: daemon properties that win over all of these.
        jars: folder of the daemon's jars.
        heap: the most memory for the daemon's objects.
        warm: run some Spark jobs before the daemon is started.
        engine: more options for the engine's command line (Spark's, the spool's).
    """

    pipeline: Path
    folder: Path | None = None
    stream: str | None = None
    application: str | None = None
    properties: Path | None = None
    worker_id: str | None = None
    region: str | None = None
    start: Literal["trim_horizon", "latest"] | datetime | None = None
    kinesis_endpoint: str | None = None
    dynamodb_endpoint: str | None = None
    grace: float = 30.0
    timeout: int | None = None
    fan_out: bool = False
    extra: Mapping[str, str] = field(default_factory=dict)
    jars: Path | None = None
    heap: str | None = "512m"
    warm: bool = True
    engine: Sequence[str] = ()


@dataclass(frozen=True)
class Planned:
    """What a worker would run.

    Attributes:
        text: the daemon's properties.
        findings: what the lint says about them.
        exactly_once: whether the pipeline keeps marks.
        folder: the worker's folder.
        daemon: the version of the daemon.
    """

    text: str
    findings: list[Finding]
    exactly_once: bool
    folder: Path
    daemon: jars.Jars


def generated(options: RunOptions) -> str:
    """The properties that a worker would write, for a reader.

    Raises:
        UsageError: something is missing or can't be used.
    """
    found = declared(options.pipeline)
    return generate(daemon_options(options, found, _folder(options)), exactly_once=found.keeps_marks)


def _folder(options: RunOptions) -> Path:
    return (options.folder or Path(child.folder_of(str(options.pipeline)))).absolute()


def plan(options: RunOptions, environment: Mapping[str, str]) -> Planned:
    """Make or read the properties, and lint them. Starts nothing but the loading of the pipeline file.

    Raises:
        UsageError: something is missing or can't be used.
    """
    found = declared(options.pipeline)
    folder = _folder(options)
    daemon = jars.find(options.jars, environment)
    if options.properties is not None:
        text = properties.read(options.properties)
    else:
        text = generate(daemon_options(options, found, folder), exactly_once=found.keeps_marks)
    findings = lint(text, exactly_once=found.keeps_marks, version=daemon.version)
    return Planned(text, findings, found.keeps_marks, folder, daemon)


def daemon_options(options: RunOptions, found: Declared, folder: Path) -> DaemonOptions:
    """What the properties are generated from.

    Raises:
        UsageError: no stream is named, or an option can't be used.
    """
    stream = options.stream or found.stream
    if stream is None:
        raise UsageError("no stream is named", "Name it with --stream, or in the pipeline: Pipeline(stream=...)")
    stub = (sys.executable, "-S", "-E", child.__file__, str(options.pipeline.absolute()))
    return DaemonOptions(
        application=options.application or found.name,
        stream=stream,
        executable=stub,
        worker_id=options.worker_id or f"{socket.gethostname()}-{crc32(os.fsencode(folder)):08x}",
        region=options.region,
        start=options.start or ("trim_horizon" if found.keeps_marks else "latest"),
        kinesis_endpoint=options.kinesis_endpoint,
        dynamodb_endpoint=options.dynamodb_endpoint,
        shutdown_grace=options.grace,
        timeout=options.timeout,
        fan_out=options.fan_out,
        extra=options.extra,
    )


def run(options: RunOptions, planned: Planned, environment: Mapping[str, str], log: Callable[[str], None]) -> int:
    """Run the worker until it is told to stop; returns the exit code. Blocks; must be called in the main thread.

    Raises:
        UsageError: the properties have errors, or something is missing.
    """
    errors = [finding for finding in planned.findings if finding.level == "error"]
    if errors:
        raise UsageError(
            f"the daemon's properties have {len(errors)} errors, the first: {errors[0]}", "See: kcl-spark properties"
        )
    file = _properties_file(options, planned)
    heap = options.heap
    daemon = daemon_command(find_java(environment), planned.daemon, file, heap=heap)
    supervisor = Supervisor(
        engine=Process("engine", engine_command(options, planned)),
        daemon=Process("daemon", daemon),
        folder=planned.folder,
        grace=_number(planned.text, "shutdownGraceMillis", 0) / 1000,
        environment=environment,
        clock=time.monotonic,
        log=log,
        warm=options.warm,
    )
    return supervisor.run()


def engine_command(options: RunOptions, planned: Planned) -> list[str]:
    """The engine's command line."""
    command = [sys.executable, "-m", "kcl_spark", "engine", str(options.pipeline.absolute())]
    command += ["--folder", str(planned.folder), *options.engine]
    stream = stream_of(planned.text)
    if stream:
        command += ["--stream", stream]
    timeout = _number(planned.text, "timeoutInSeconds", 0)
    if timeout:
        command += ["--heartbeat", f"{timeout / BEATS:g}"]
    return command


def stream_of(text: str) -> str | None:
    """The stream's name in a properties text."""
    values = {key: entry.value for key, entry in properties.effective(properties.parse(text)).items()}
    arn = ARN.fullmatch(values.get("streamArn", ""))
    return arn["name"] if arn else values.get("streamName") or None


def _number(text: str, key: str, default: int) -> int:
    entry = properties.effective(properties.parse(text)).get(key)
    return int(entry.value) if entry is not None and entry.value.strip().isdigit() else default


def _properties_file(options: RunOptions, planned: Planned) -> Path:
    """The user's file as it is, or ours in the worker's folder, for this user alone."""
    if options.properties is not None:
        return options.properties
    child.make_private(str(planned.folder))
    file = planned.folder / PROPERTIES
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as opened:
        opened.write(planned.text)
    return file
