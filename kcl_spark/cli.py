"""The command line: each command parses, calls one function, and shows what came of it.

An error is one line with the remedy and an exit code of its own; `--debug` adds the traceback. See docs/exit-codes.md.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from kcl_spark.errors import KclSparkError, UsageError

app = typer.Typer(
    name="kcl-spark",
    help="Kinesis streams into tables with PySpark, exactly once, under the KCL MultiLangDaemon.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

PipelineFile = Annotated[Path, typer.Argument(metavar="PIPELINE", help="Python file that defines `pipeline`.")]
Folder = Annotated[
    Path | None,
    typer.Option(help="Private folder of this worker: socket, spool. One per pipeline file by default."),
]
Master = Annotated[str | None, typer.Option(help="Spark master, such as local[4] or spark://host:7077.")]
Remote = Annotated[str | None, typer.Option(help="Spark Connect address, such as sc://host:15002.")]
Conf = Annotated[list[str] | None, typer.Option(help="Spark setting KEY=VALUE; may be repeated; wins over all others.")]
Stream = Annotated[str | None, typer.Option(help="The stream's name or ARN; the pipeline's own by default.")]
Application = Annotated[str | None, typer.Option(help="Names the lease table; the pipeline's name by default.")]
PropertiesFile = Annotated[Path | None, typer.Option("--properties", help="A properties file of yours, used as it is.")]
WorkerId = Annotated[str | None, typer.Option(help="Owner of the leases; made of host and folder by default.")]
Region = Annotated[str | None, typer.Option(help="AWS region; as the AWS SDK finds it by default.")]
Start = Annotated[
    str | None,
    typer.Option(help="Where shards without a checkpoint start: trim_horizon, latest, or a moment with time zone."),
]
KinesisEndpoint = Annotated[str | None, typer.Option(help="In place of the region's.")]
DynamoEndpoint = Annotated[str | None, typer.Option("--dynamodb-endpoint", help="In place of the region's.")]
Grace = Annotated[float, typer.Option(help="Seconds that SIGTERM leaves for committing what has been read.")]
Timeout = Annotated[int | None, typer.Option(help="Seconds of a child's silence after which the daemon halts.")]
FanOut = Annotated[bool, typer.Option("--fan-out", help="Enhanced fan-out, which AWS charges for.")]
Extra = Annotated[list[str] | None, typer.Option("--set", help="Daemon property KEY=VALUE; may be repeated; wins.")]
Jars = Annotated[Path | None, typer.Option(help="Folder of the daemon's jars; found where bin/fetch-daemon puts them.")]
Spool = Annotated[Path | None, typer.Option(help="Folder that batches pass through; needs room for two batches.")]
Warm = Annotated[bool, typer.Option(help="Run some Spark jobs before the first record: the first ones are slow.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


@app.callback()
def _commands() -> None:
    """Kinesis streams into tables with PySpark, exactly once, under the KCL MultiLangDaemon."""


def settings(pairs: list[str] | None, option: str = "--conf") -> dict[str, str]:
    """Read options of the form KEY=VALUE.

    Raises:
        UsageError: one has no `=`.
    """
    split = [pair.split("=", 1) for pair in pairs or []]
    for pair in split:
        if len(pair) == 1:
            raise UsageError(f"{option} {pair[0]} has no value", f"Write {option} KEY=VALUE")
    return {pair[0].strip(): pair[1] for pair in split}


@app.command()
def engine(
    pipeline: PipelineFile,
    folder: Folder = None,
    stream: Stream = None,
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
    spool: Spool = None,
    heartbeat: Annotated[float, typer.Option(help="Seconds of silence before a waiting daemon is told so.")] = 5.0,
    leave_when_idle: Annotated[bool, typer.Option(help="Leave a minute after the last child.")] = False,
    warm: Warm = True,
    notify_fd: Annotated[int | None, typer.Option(hidden=True)] = None,
    debug: Debug = False,  # noqa: ARG001 - read by `main`
) -> None:
    """Run the engine alone: for a daemon that is started by hand."""
    from kcl_spark.worker.allocation import keep_memory

    keep_memory()
    from kcl_spark.worker.assembly import EngineOptions, run_engine
    from kcl_spark.worker.child import folder_of
    from kcl_spark.worker.spark import SparkOptions

    options = EngineOptions(
        pipeline=pipeline,
        folder=folder or Path(folder_of(str(pipeline))),
        spark=SparkOptions(master, remote, settings(conf)),
        stream=stream,
        spool=spool,
        heartbeat=heartbeat,
        leave_when_idle=leave_when_idle,
        warm=warm,
        notify_fd=notify_fd,
    )
    run_engine(options)


@app.command()
def simulate(
    pipeline: PipelineFile,
    source: Annotated[Path, typer.Option("--input", help="Records, one a line.")],
    shards: Annotated[int, typer.Option(min=1, help="Shards that the stream begins with.")] = 4,
    split: Annotated[
        float, typer.Option(help="Split a shard after this share of the input; negative: never.", show_default="1/3")
    ] = 1 / 3,
    merge: Annotated[
        float, typer.Option(help="Merge two shards after this share; negative: never.", show_default="2/3")
    ] = 2 / 3,
    key: Annotated[str | None, typer.Option(help="JSON field that is the partition key.")] = None,
    log: Annotated[Path | None, typer.Option(help="File for what engine and children say; stderr by default.")] = None,
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
    warm: Warm = False,
    debug: Debug = False,  # noqa: ARG001 - read by `main`
) -> None:
    """Run a pipeline on a file of records, with no AWS: real engine, real children, a stream in memory."""
    from kcl_spark.simulator.show import show
    from kcl_spark.simulator.simulation import Plan

    plan = Plan(
        pipeline=pipeline,
        source=source,
        shards=shards,
        split_at=None if split < 0 else split,
        merge_at=None if merge < 0 else merge,
        key=key,
        log=log,
        engine=("--warm" if warm else "--no-warm", *_engine_options(master, remote, conf)),
    )
    sys.exit(show(plan))


@app.command()
def run(
    pipeline: PipelineFile,
    stream: Stream = None,
    application: Application = None,
    properties_file: PropertiesFile = None,
    worker_id: WorkerId = None,
    region: Region = None,
    start: Start = None,
    kinesis_endpoint: KinesisEndpoint = None,
    dynamodb_endpoint: DynamoEndpoint = None,
    grace: Grace = 30.0,
    timeout: Timeout = None,
    fan_out: FanOut = False,
    extra: Extra = None,
    jars: Jars = None,
    heap: Annotated[str, typer.Option(help="The most memory for the daemon's objects.")] = "512m",
    warm: Warm = True,
    folder: Folder = None,
    spool: Spool = None,
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
    debug: Debug = False,
) -> None:
    """Run a worker: an engine and the MultiLangDaemon, restarted when they die, drained on SIGTERM."""
    import os
    from datetime import UTC, datetime

    from rich.console import Console

    from kcl_spark import shown
    from kcl_spark.worker import running
    from kcl_spark.worker.log import Log

    log = Log(sys.stderr, lambda: datetime.now(UTC))
    options = running.RunOptions(
        **_daemon_options(locals()),
        heap=heap,
        warm=warm,
        engine=_engine_options(master, remote, conf, spool),
    )
    planned = running.plan(options, os.environ)
    if properties_file is None:
        log.info("the daemon's properties:\n" + _without_comments(planned.text))
    console = Console(stderr=True)
    for found in planned.findings:
        console.print(shown.finding(found))
    sys.exit(running.run(options, planned, os.environ, log.info))


@app.command()
def status(
    pipeline: PipelineFile,
    folder: Folder = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document in place of tables.")] = False,
    debug: Debug = False,  # noqa: ARG001 - read by `main`
) -> None:
    """Show what the worker of a pipeline does on this machine: shards, lag, marks, dead letters, where time goes."""
    from rich.console import Console

    from kcl_spark import shown
    from kcl_spark.worker import handover
    from kcl_spark.worker.child import folder_of

    account = handover.status(folder or Path(folder_of(str(pipeline))))
    if as_json:
        print(json.dumps(account, indent=2))  # noqa: T201 - the command's output
    else:
        Console().print(shown.status(account))


@app.command()
def doctor(
    pipeline: Annotated[Path | None, typer.Argument(metavar="[PIPELINE]", help="What would be run.")] = None,
    stream: Stream = None,
    application: Application = None,
    properties_file: PropertiesFile = None,
    worker_id: WorkerId = None,
    region: Region = None,
    start: Start = None,
    kinesis_endpoint: KinesisEndpoint = None,
    dynamodb_endpoint: DynamoEndpoint = None,
    grace: Grace = 30.0,
    timeout: Timeout = None,
    fan_out: FanOut = False,
    extra: Extra = None,
    jars: Jars = None,
    folder: Folder = None,
    debug: Debug = False,
) -> None:
    """Check the machine, and with a PIPELINE all that `run` with the same options would need. Exits 1 on an error."""
    import os

    from rich.console import Console

    from kcl_spark import shown
    from kcl_spark.doctor import examine
    from kcl_spark.worker.running import RunOptions

    options = None if pipeline is None else RunOptions(**_daemon_options(locals()))
    console = Console()
    worst = False
    for check in examine(options, os.environ):
        console.print(shown.check(check))
        worst = worst or check.level == "error"
    sys.exit(int(worst))


@app.command()
def properties(
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="A properties file of yours.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say what each line does.")] = False,
    pipeline: Annotated[Path | None, typer.Option(help="Print what `run` would write for this pipeline.")] = None,
    stream: Stream = None,
    application: Application = None,
    worker_id: WorkerId = None,
    region: Region = None,
    start: Start = None,
    kinesis_endpoint: KinesisEndpoint = None,
    dynamodb_endpoint: DynamoEndpoint = None,
    grace: Grace = 30.0,
    timeout: Timeout = None,
    fan_out: FanOut = False,
    extra: Extra = None,
    jars: Jars = None,
    folder: Folder = None,
    debug: Debug = False,
) -> None:
    """Check a properties FILE of the daemon, or print one for a pipeline. Exits 1 where a line is an error."""
    from rich.console import Console

    from kcl_spark import shown
    from kcl_spark.daemon.explain import explain as explained
    from kcl_spark.daemon.lint import lint
    from kcl_spark.daemon.properties import read

    properties_file = None
    if (file is None) == (pipeline is None):
        raise UsageError("name a properties file, or a pipeline to write one for", "See: kcl-spark properties --help")
    text = read(file) if file else _generated(_daemon_options(locals()))
    console = Console()
    if file is None and not explain:
        print(text, end="")  # noqa: T201 - the command's output, to be redirected
        return
    if explain:
        console.print(shown.explained(explained(text)))
    findings = lint(text)
    for found in findings:
        console.print(shown.finding(found))
    if not findings and not explain:
        console.print("nothing to find fault with")
    sys.exit(int(any(found.level == "error" for found in findings)))


@app.command()
def child(pipeline: PipelineFile) -> None:
    """Be the daemon's child: what `executableName` names. Hands its shard to the engine of PIPELINE and waits."""
    raise UsageError(f"the child of {pipeline} has to be the first word", "Run: kcl-spark child PIPELINE")


def _generated(options: dict[str, Any]) -> str:
    from kcl_spark.worker.running import RunOptions, generated

    return generated(RunOptions(**options))


def _daemon_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that `run`, `doctor` and `properties` share, as fields of `RunOptions`."""
    same = "pipeline folder stream application worker_id region kinesis_endpoint dynamodb_endpoint grace timeout"
    chosen = {name: given[name] for name in (*same.split(), "fan_out", "jars")}
    extra = settings(given["extra"], "--set")
    return {**chosen, "properties": given["properties_file"], "start": _moment(given["start"]), "extra": extra}


def _moment(start: str | None) -> datetime | str | None:
    """Read `--start`.

    Raises:
        UsageError: no known place and no moment.
    """
    if start is None or start in ("trim_horizon", "latest"):
        return start
    try:
        return datetime.fromisoformat(start)
    except ValueError:
        raise UsageError(f"--start {start} is no place", "Write trim_horizon or 2025-01-31T00:00:00Z") from None


def _engine_options(
    master: str | None, remote: str | None, conf: list[str] | None, spool: Path | None = None
) -> tuple[str, ...]:
    """Options for the engine's command line."""
    settings(conf)
    chosen = {"--master": master, "--remote": remote, "--spool": spool}
    return (*(f"{name}={value}" for name, value in chosen.items() if value), *(f"--conf={pair}" for pair in conf or []))


def _without_comments(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines() if line and not line.startswith("#"))


def main() -> None:
    """Run the command line; every foreseen error becomes one line."""
    try:
        app()
    except KclSparkError as error:
        if "--debug" in sys.argv:
            raise
        print(f"kcl-spark: {error}", file=sys.stderr)  # noqa: T201 - the interface of a command
        sys.exit(int(error.exit_code))
