"""How the commands' findings look on a terminal: tables of text, made of plain data. Decides nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kcl_spark.daemon.checks import Check
from kcl_spark.daemon.explain import Explained
from kcl_spark.daemon.lint import Finding

_COLOURS: Final = {"ok": "green", "warning": "yellow", "error": "red"}


def check(line: Check) -> Text:
    """One check, with its remedy below it where there is one."""
    text = Text.assemble((f"{line.level:<8}", _COLOURS[line.level]), f"{line.name:<12}", line.found)
    if line.remedy:
        text.append(f"\n{'':<20}{line.remedy}", "dim")
    return text


def finding(found: Finding) -> Text:
    """One finding of the lint."""
    where = f"line {found.line}: " if found.line else ""
    text = Text.assemble((f"{found.level:<8}", _COLOURS[found.level]), where, found.message)
    return text.append(f"\n{'':<8}{found.remedy} [{found.rule}]", "dim")


def explained(settings: Iterable[Explained]) -> Table:
    """Each setting with its default and what it does."""
    table = Table("property", "value", "default", "what it does", box=None, header_style="bold", padding=(0, 2, 0, 0))
    for setting in settings:
        table.add_row(setting.key, Text(setting.value), Text(setting.default), Text(setting.note))
    return table


def status(account: Mapping[str, Any]) -> RenderableType:
    """An engine's account of itself."""
    return Group(_totals(account), Text(), _shards(account["shards"]))


def _totals(account: Mapping[str, Any]) -> Table:
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, value in totals(account):
        table.add_row(name, Text(value))
    return table


def totals(account: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Names and values of what holds for all shards together."""
    state = "draining" if account["draining"] else "running" if account["ready"] else "starting Spark"
    last = account["last_commit_seconds_ago"]
    lines = [
        ("pipeline", f"{account['pipeline']}, {state}"),
        ("table", account["sink"]),
        ("committed", f"{account['records']:,} records, {account['rows']:,} rows, {account['batches']:,} batches"),
        ("dead letters", f"{account['dead_letters']:,}"),
        ("last commit", "none yet" if last is None else f"{last:.1f} s ago"),
        ("waiting", f"{account['buffered_records']:,} records buffered, {account['in_flight_records']:,} in flight"),
    ]
    if account["batch_floor_seconds"] is not None:
        lines.append(("batch floor", f"{account['batch_floor_seconds'] * 1000:.0f} ms, the quickest there was"))
    for name, key in (("batch time", "batch_seconds"), ("last batch", "last_batch_seconds")):
        if account[key]:
            lines.append((name, _shares(account[key])))
    return lines


def _shares(seconds: Mapping[str, float]) -> str:
    whole = sum(seconds.values())
    parts = [f"{name} {part / whole:.0%}" for name, part in seconds.items() if whole and part / whole >= 0.005]
    return f"{whole:,.2f} s: {', '.join(parts)}"


def _shards(shards: Iterable[Mapping[str, Any]]) -> Table:
    table = Table("shard", "mark", "behind", "commit lag", "state", box=None, header_style="bold", padding=(0, 2, 0, 0))
    for shard in shards:
        behind, lag = shard["millis_behind_latest"], shard["commit_lag_seconds"]
        table.add_row(
            shard["shard"],
            Text(shard["mark"] or "-"),
            "-" if behind is None else f"{behind / 1000:,.1f} s",
            "-" if lag is None else f"{lag:.2f} s",
            Text(shard["stopped"] or "reading", "red" if shard["stopped"] else ""),
        )
    return table
