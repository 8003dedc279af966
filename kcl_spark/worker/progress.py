"""A line now and then on how a worker gets on: what was committed since the last one, and how far behind it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

EVERY: Final = 10.0
"""Seconds between two lines; a line that would say the same is left out."""


def line(before: Mapping[str, Any], now: Mapping[str, Any], seconds: float) -> str | None:
    """Say what happened between two accounts of the engine (`report.of`), or None where nothing did.

    Args:
        before: the account of a while ago.
        now: the account of this moment.
        seconds: what lies between them.
    """
    done = now["records"] - before["records"]
    if done == 0:
        return None
    told = [
        f"{now['records']:,} records committed ({done / seconds:,.0f}/s)",
        f"{now['dead_letters']:,} dead letters",
        f"{len(now['shards'])} shards",
    ]
    behind = [shard["millis_behind_latest"] for shard in now["shards"] if shard["millis_behind_latest"] is not None]
    if behind:
        told.append(f"{max(behind) / 1000:,.1f} s behind the stream")
    return ", ".join(told)
