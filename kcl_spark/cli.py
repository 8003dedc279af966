"""The command line: each command parses, calls one function, and shows what came of it.

An error is one line with the remedy and an exit code of its own; `--debug` adds the traceback. See docs/exit-codes.md.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

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
    typer.Option(help="Private folder of this worker: socket, spool, log. One per pipeline file by default."),
]
Master = Annotated[str | None, typer.Option(help="Spark master, such as local[4] or spark://host:7077.")]
Remote = Annotated[str | None, typer.Option(help="Spark Connect address, such as sc://host:15002.")]
Conf = Annotated[list[str] | None, typer.Option(help="Spark setting KEY=VALUE; may be repeated; wins over all others.")]
Stream = Annotated[str | None, typer.Option(help="The stream's name.")]
Spool = Annotated[Path | None, typer.Option(help="Folder that batches pass through; needs room for two batches.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


@app.callback()
def _commands() -> None:
    """Kinesis streams into tables with PySpark, exactly once, under the KCL MultiLangDaemon."""


def settings(conf: list[str] | None) -> dict[str, str]:
    """Read `--conf KEY=VALUE` options.

    Raises:
        UsageError: one has no `=`.
    """
    pairs = [pair.split("=", 1) for pair in conf or []]
    for pair in pairs:
        if len(pair) == 1:
            raise UsageError(f"--conf {pair[0]} has no value", "Write --conf KEY=VALUE")
    return {pair[0].strip(): pair[1] for pair in pairs}


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
    warm: Annotated[bool, typer.Option(help="Run some jobs before reporting ready.")] = True,
    notify_fd: Annotated[int | None, typer.Option(hidden=True)] = None,
    debug: Debug = False,  # noqa: ARG001 - read by `main`
) -> None:
    """Run the engine alone: for a daemon that is started by hand."""
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
    split: Annotated[float, typer.Option(help="Split a shard after this share of the input; negative: never.")] = 1 / 3,
    merge: Annotated[float, typer.Option(help="Merge two shards after this share; negative: never.")] = 2 / 3,
    key: Annotated[str | None, typer.Option(help="JSON field that is the partition key.")] = None,
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
    warm: Annotated[bool, typer.Option(help="Run some Spark jobs before the first record.")] = False,
    debug: Debug = False,  # noqa: ARG001 - read by `main`
) -> None:
    """Run a pipeline on a file of records, with no AWS: real engine, real children, a stream in memory."""
    from kcl_spark.simulator.show import show
    from kcl_spark.simulator.simulation import Plan

    settings(conf)
    engine_options = ["--warm" if warm else "--no-warm"]
    chosen = {"--master": master, "--remote": remote}
    engine_options += [f"{name}={value}" for name, value in chosen.items() if value]
    engine_options += [f"--conf={pair}" for pair in conf or []]
    plan = Plan(
        pipeline=pipeline,
        source=source,
        shards=shards,
        split_at=None if split < 0 else split,
        merge_at=None if merge < 0 else merge,
        key=key,
        engine=tuple(engine_options),
    )
    sys.exit(show(plan))


def main() -> None:
    """Run the command line; every foreseen error becomes one line."""
    try:
        app()
    except KclSparkError as error:
        if "--debug" in sys.argv:
            raise
        print(f"kcl-spark: {error}", file=sys.stderr)  # noqa: T201 - the interface of a command
        sys.exit(int(error.exit_code))
