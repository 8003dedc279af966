"""The fake daemon and children of a few lines: what it does about a child that behaves, and about one that does not."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kcl_spark.errors import DaemonFailed
from kcl_spark.positions import Position
from kcl_spark.simulator.daemon import FakeDaemon
from kcl_spark.simulator.stream import Stream

pytestmark = pytest.mark.process

GOOD = """
import json, sys

def say(**message):
    print(json.dumps(message), flush=True)

def checkpoint(number):
    say(action="checkpoint", sequenceNumber=number, subSequenceNumber=None if number is None else 0)
    while (answer := sys.stdin.readline()) == "\\n":
        pass
    assert json.loads(answer)["error"] is None

for line in sys.stdin:
    if not line.strip():
        continue
    message = json.loads(line)
    action = message["action"]
    if action == "processRecords" and message["records"]:
        checkpoint(message["records"][-1]["sequenceNumber"])
    if action == "shardEnded":
        checkpoint(None)
    say(action="status", responseFor=action)
"""


@pytest.fixture
def daemon_of(tmp_path: Path) -> Iterator[Callable[..., FakeDaemon]]:
    """Makes daemons whose children run a script."""
    made: list[FakeDaemon] = []

    def make(script: str, stream: Stream, **options: object) -> FakeDaemon:
        path = tmp_path / f"child-{len(made)}.py"
        path.write_text(script)
        made.append(FakeDaemon(stream, [sys.executable, str(path)], os.environ, time.monotonic, **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for daemon in made:
        for child in daemon.children.values():
            child.process.kill()
        daemon.kill()


def drive(daemon: FakeDaemon, until: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not until():
        assert time.monotonic() < deadline
        daemon.step(0.02)


def fill(stream: Stream, records: int) -> None:
    for number in range(records):
        stream.put(b"data", str(number), 0)


def test_records_are_delivered_and_checkpointed(daemon_of: Callable[..., FakeDaemon]) -> None:
    stream = Stream(2)
    fill(stream, 100)
    counts: list[int] = []
    daemon = daemon_of(GOOD, stream, max_records=10, delivered=lambda _lease, records, _now: counts.append(records))
    drive(daemon, lambda: not any(shard.records for shard in stream.shards.values()))
    assert sum(counts) == 100
    assert max(counts) == 10


def test_a_child_shard_waits_for_both_parents(daemon_of: Callable[..., FakeDaemon]) -> None:
    stream = Stream(2)
    fill(stream, 10)
    merged = stream.merge(*stream.shards)
    fill(stream, 10)
    daemon = daemon_of(GOOD, stream)
    ended_before: list[bool] = []

    def until() -> bool:
        if merged.shard_id in daemon.children and not ended_before:
            ended_before.extend(daemon.leases[parent].ended for parent in merged.parents)
        return not merged.records

    drive(daemon, until)
    assert ended_before == [True, True]


def test_it_ends_in_order(daemon_of: Callable[..., FakeDaemon]) -> None:
    stream = Stream(2)
    daemon = daemon_of(GOOD, stream)
    drive(daemon, lambda: len(daemon.children) == 2)
    daemon.shut_down()
    drive(daemon, lambda: not daemon.children)
    assert not any(lease.ended for lease in daemon.leases.values())


def test_the_next_daemon_reads_on_behind_the_checkpoint(daemon_of: Callable[..., FakeDaemon]) -> None:
    stream = Stream(1)
    fill(stream, 5)
    first = daemon_of(GOOD, stream)
    drive(first, lambda: not stream.open_shards()[0].records)
    (lease,) = first.leases.values()
    assert isinstance(lease.checkpoint, Position)
    first.kill()
    fill(stream, 3)
    counts: list[int] = []
    second = daemon_of(
        GOOD, stream, leases=first.leases, delivered=lambda _lease, records, _now: counts.append(records)
    )
    drive(second, lambda: not stream.open_shards()[0].records)
    assert sum(counts) == 3


@pytest.mark.parametrize(("script", "reason"), [
    ("raise SystemExit(7)", r"ended while an answer was due \(exit code 7\)"),
    ("import sys; sys.stdin.readline(); sys.stdin.readline(); raise SystemExit(7)", r"ended while.*\(exit code 7\)"),
    (GOOD.replace("    checkpoint(None)", "    pass"), "did not checkpoint at the end of its shard"),
], ids=["at-once", "after-initialize", "no-shard-end"])  # fmt: skip
def test_one_childs_failure_ends_it_and_every_child(
    daemon_of: Callable[..., FakeDaemon], script: str, reason: str
) -> None:
    stream = Stream(2)
    fill(stream, 4)
    stream.merge(*stream.shards)
    daemon = daemon_of(script, stream)
    with pytest.raises(DaemonFailed, match=reason):
        drive(daemon, lambda: False)
    assert not daemon.children


def test_output_that_is_no_message_is_skipped_as_the_real_daemon_does(daemon_of: Callable[..., FakeDaemon]) -> None:
    stream = Stream(1)
    fill(stream, 5)
    daemon = daemon_of('print("hello", flush=True)\n' + GOOD, stream)
    drive(daemon, lambda: not stream.open_shards()[0].records)
    assert next(iter(daemon.children.values())).protocol.ignored_lines == 1
