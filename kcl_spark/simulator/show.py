"""A simulation as a user sees it: progress while it runs, then what came of it in a few lines."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from kcl_spark.errors import ExitCode
from kcl_spark.simulator.simulation import Plan, Result, Simulation


def show(plan: Plan) -> int:
    """Run the plan on the terminal; returns the exit code."""
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[said]}"), TimeElapsedColumn(),
        console=console, transient=True,
    )  # fmt: skip
    with bar:
        task = bar.add_task("starting", total=None, said="")

        def progress(phase: str, fed: int, size: int, committed: int) -> None:
            total = None if phase.startswith("starting") else size
            bar.update(task, description=phase, completed=fed, total=total, said=f"{committed:,} records committed")

        result = Simulation(plan, time.monotonic, lambda: time.time_ns() // 1_000_000, progress).run()
    Console().print(table_of(result))
    return exit_code(result)


def exit_code(result: Result) -> ExitCode:
    """OK if every record is accounted for."""
    if result.stopped is not None:
        return ExitCode.SHARD_STOPPED
    return ExitCode.OK if result.complete else ExitCode.FAILURE


def table_of(result: Result) -> Table:
    """What a run came to, one figure a line."""
    table = Table(show_header=False, box=None)
    for name, value in figures(result):
        table.add_row(name, value)
    return table


def figures(result: Result) -> list[tuple[str, str]]:
    """Names and values, as text."""
    rate = f"{result.fed / result.seconds:,.0f} records/s" if result.seconds else "-"
    latency = [(share, result.percentile(share)) for share in (0.5, 0.95, 0.99)]
    shown = ", ".join(f"p{share * 100:g} {seconds:.2f} s" for share, seconds in latency if seconds is not None)
    lines = [
        ("records in", f"{result.fed:,}"),
        ("records out", f"{result.records - result.dead_letters:,}"),
        ("dead letters", f"{result.dead_letters:,}"),
        ("rows written", f"{result.rows:,}"),
        ("batches", f"{result.batches:,}"),
        ("rate", f"{rate} over {result.seconds:.1f} s"),
        ("delivered to durable", shown or "-"),
    ]
    if result.stopped is not None:
        lines.append(("stopped", result.stopped))
    elif not result.complete:
        lines.append(("missing", f"{result.fed - result.records:,}"))
    return lines
