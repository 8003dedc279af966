"""Small files become large ones in the background, in a process of their own, without touching the marks.

A commit a second leaves thousands of small files; readers suffer, writers do not. Compaction rewrites files and says
`dataChange = false`; it carries no `txn` action, so it neither moves a mark nor conflicts with a commit that does. It
runs at the lowest priority beside the worker and may be killed at any time: what it had not committed is invisible.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass

from kcl_spark.errors import UsageError
from kcl_spark.sinks.delta.place import Place

_LOWEST = 19


@dataclass(frozen=True)
class Compaction:
    """When to compact and to what size.

    Attributes:
        every: after how many commits.
        target_bytes: size to aim for.
        keep_hours: how long the replaced files stay for readers of older versions; None: nothing is deleted, which is
            what a table that others vacuum wants.
    """

    every: int = 100
    target_bytes: int = 128 << 20
    keep_hours: int | None = None

    def __post_init__(self) -> None:
        if self.every < 1 or self.target_bytes < 1:
            raise UsageError("compaction needs at least one commit and one byte", "Write Compaction(every=100)")


class Compactor:
    """Counts commits and starts a compaction when it is time; one runs at a time."""

    def __init__(self, place: Place, compaction: Compaction) -> None:
        self._place = place
        self._compaction = compaction
        self._commits = 0
        self._running: subprocess.Popen[bytes] | None = None

    def committed(self) -> None:
        """A commit with files has happened."""
        self._commits += 1
        idle = self._running is None or self._running.poll() is not None
        if self._commits >= self._compaction.every and idle:
            self._commits = 0
            self._running = self._start()

    def close(self) -> None:
        """End a compaction that still runs."""
        if self._running is not None:
            self._running.kill()
            self._running.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "kcl_spark.sinks.delta.compaction"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert process.stdin is not None
        # Through the pipe and not as an argument: storage options may hold secrets, and a command line is public.
        process.stdin.write(json.dumps(_job(self._place, self._compaction)).encode())
        process.stdin.close()
        return process


def _job(place: Place, compaction: Compaction) -> dict[str, object]:
    return {
        "table": place.delta,
        "options": dict(place.options),
        "target": compaction.target_bytes,
        "keep_hours": compaction.keep_hours,
    }


def compact(job: dict[str, object]) -> dict[str, object]:
    """Rewrite small files of the table that `job` names; returns delta-rs' account of it."""
    from deltalake import DeltaTable

    table = DeltaTable(str(job["table"]), storage_options=dict(job["options"]))  # type: ignore[call-overload]
    account = table.optimize.compact(target_size=job["target"], max_concurrent_tasks=1)  # type: ignore[arg-type]
    if job["keep_hours"] is not None:
        table.vacuum(int(str(job["keep_hours"])), dry_run=False, enforce_retention_duration=False)
    return dict(account)


if __name__ == "__main__":
    os.nice(_LOWEST)
    compact(json.load(sys.stdin))
