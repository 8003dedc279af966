"""`kcl-spark simulate` as a user runs it: what is in the file is in the tables, and the exit code says how it went."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from kcl_spark.errors import ExitCode
from kcl_spark.simulator.simulation import Plan, Simulation
from tests.process.worker import Worker, ids, in_order, rows_of

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("process-simulate")]

RECORDS = 1_000


def simulate(worker: Worker, source: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kcl_spark", "simulate", str(worker.pipeline), "--input", str(source)]
    return subprocess.run([*command, *worker.spark, *options], capture_output=True, text=True, timeout=120, check=False)


def lines(worker: Worker, payloads: Iterable[str]) -> Path:
    path = worker.root / "input.jsonl"
    path.write_text("".join(f"{payload}\n" for payload in payloads))
    return path


def good_and_bad(number: int) -> str:
    return f"bad {number}" if number % 10 == 9 else json.dumps({"id": number})


def test_every_record_is_accounted_for_through_a_split_and_a_merge(worker: Worker) -> None:
    done = simulate(worker, lines(worker, map(good_and_bad, range(RECORDS))), "--shards", "4")
    assert done.returncode == ExitCode.OK, done.stderr
    assert ids(worker) == dict.fromkeys(range(RECORDS), 1)
    assert len(rows_of(worker.dead)) == RECORDS // 10
    assert in_order(worker.rows)
    told = dict(re.findall(r"(records in|records out|dead letters) +([\d,]+)", done.stdout))
    assert told == {"records in": "1,000", "records out": "900", "dead letters": "100"}


def test_finished_shards_end_and_their_children_go_on(worker: Worker) -> None:
    """Four shards, one split, two merged: three are at their end, and seven were read."""
    plan = Plan(worker.pipeline, lines(worker, map(good_and_bad, range(RECORDS))), engine=("--no-warm", *worker.spark))
    simulation = Simulation(plan, lambda: 0.0, lambda: 0, lambda *_: None)
    assert simulation.run().complete
    shards = {row["_shard_id"] for row in rows_of(worker.rows)}
    assert shards == {f"shardId-{number:012d}" for number in range(7)}
    closed = {name for name, shard in simulation.stream.shards.items() if shard.closed}
    assert {name for name, lease in simulation.leases.items() if lease.ended} == closed
    assert len(closed) == 3


def test_too_many_dead_letters_stop_the_shard(worker: Worker) -> None:
    worker.declare(dead_letter_limit="DeadLetterLimit(ratio=0.05, over=50)")
    done = simulate(worker, lines(worker, map(good_and_bad, range(RECORDS))), "--shards", "1")
    assert done.returncode == ExitCode.SHARD_STOPPED, done.stderr
    assert "are dead letters, more than 5%" in done.stdout.replace("\n", " ")
    assert rows_of(worker.rows) == []


def test_a_bad_record_stops_its_shard_where_dead_letters_have_no_place(worker: Worker) -> None:
    worker.declare(dead_letter="None")
    done = simulate(worker, lines(worker, ['{"id": 1}', "bad 2"]), "--shards", "1", "--split", "-1", "--merge", "-1")
    assert done.returncode == ExitCode.SHARD_STOPPED, done.stderr
    assert "Traceback" not in done.stderr
    assert "names no place for dead letters" in " ".join(done.stdout.split())
    assert rows_of(worker.rows) == []


def test_a_transform_that_no_record_passes(worker: Worker) -> None:
    worker.declare(transform="lambda df: df.selectExpr('id', 'cast(raise_error(id) as string) as never')")
    done = simulate(worker, lines(worker, (f'{{"id": {n}}}' for n in range(50))), "--shards", "1", "--merge", "-1")
    assert done.returncode == ExitCode.TRANSFORM_BROKEN, done.stderr
    assert "the transform is broken" in done.stderr


@pytest.mark.parametrize(("make", "reason"), [
    (None, "can't be read: No such file or directory"),
    ("", "holds no records"),
    ("\n\n", "holds no records"),
], ids=["missing", "empty", "blank-lines"])  # fmt: skip
def test_an_input_that_holds_nothing(worker: Worker, make: str | None, reason: str) -> None:
    source = worker.root / "input.jsonl"
    if make is not None:
        source.write_text(make)
    done = simulate(worker, source)
    assert done.returncode == ExitCode.USAGE, done.stderr
    assert f"{source} {reason}" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_input_that_is_a_folder_or_closed_to_us(worker: Worker) -> None:
    done = simulate(worker, worker.root)
    assert done.returncode == ExitCode.USAGE
    assert "holds no records" in done.stderr
    if os.getuid() != 0:
        source = lines(worker, ["{}"])
        source.chmod(0)
        assert simulate(worker, source).returncode == ExitCode.USAGE
