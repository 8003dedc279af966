"""A worker under the real MultiLangDaemon: its stream and leases on this machine, its processes, and its tables."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from kcl_spark.daemon.generate import ONE_MACHINE
from kcl_spark.errors import EngineGone
from kcl_spark.simulator.local_aws import CREDENTIALS, LocalAws
from kcl_spark.simulator.producer import Outgoing, aggregated, alone, put
from kcl_spark.worker import handover

T = TypeVar("T")

SHARDS: Final = 4

GRACE: Final = 30.0

BAD_EVERY: Final = 1_000
"""One record in so many is no JSON and has to become a dead letter."""

ALONE: Final = 1_000
"""Records of each portion that are records of their own; the others come in aggregates."""

PER_AGGREGATE: Final = 250

_PIPELINE: Final = """
from pathlib import Path
from kcl_spark import Pipeline, Trigger, formats, sinks

here = Path(__file__).parent
pipeline = Pipeline(
    name="numbers",
    source=formats.json("id bigint NOT NULL"),
    sink=sinks.delta(f"{here}/rows"),
    dead_letter=sinks.delta(f"{here}/dead"),
    trigger=Trigger(interval="200ms", max_records=MAX_RECORDS),
)
"""


def eventually(what: str, holds: Callable[[], T], seconds: float = 120.0) -> T:
    """Wait until something holds, and return it."""
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.1)
    return found


def payload(number: int) -> bytes:
    """A numbered record; some are no JSON."""
    text = json.dumps({"id": number})
    return (text[:-1] if number % BAD_EVERY == BAD_EVERY - 1 else text).encode()


@dataclass
class World:
    """One stream, one pipeline, one worker at a time.

    Attributes:
        root: the folder of pipeline and tables; short, for a socket lies below it.
        aws: Kinesis and DynamoDB.
        stream: the stream's name, and the application's.
        max_records: the trigger's.
    """

    root: Path
    aws: LocalAws
    stream: str
    max_records: int = 2_000
    fed: int = 0
    workers: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pipeline = self.root / "numbers.py"
        self.folder = self.root / "worker"
        self.log_file = self.root / "worker.log"
        self.pipeline.write_text(_PIPELINE.replace("MAX_RECORDS", str(self.max_records)))
        self.aws.create_stream(self.stream, SHARDS)

    # ---------------------------------------------------------------------------------------------- the worker

    def start(self, *more: str) -> None:
        """Start `kcl-spark run`, with more options, and wait until it has a shard."""
        command = [sys.executable, "-m", "kcl_spark", "run", str(self.pipeline), "--stream", self.stream]
        command += ["--application", self.stream, "--folder", str(self.folder), "--worker-id", "w", "--no-warm"]
        command += ["--kinesis-endpoint", self.aws.kinesis, "--dynamodb-endpoint", self.aws.dynamodb]
        command += [f"--grace={GRACE:g}", "--master=local[2]", "--conf=spark.driver.memory=1g"]
        command += [f"--set={key}={value}" for key, value in ONE_MACHINE.items()]
        command += more
        with self.log_file.open("ab") as said:
            worker = subprocess.Popen(
                command, env={**os.environ, **CREDENTIALS}, stdin=subprocess.DEVNULL, stdout=said, stderr=said
            )
        self.workers.append(worker)
        eventually("a shard is taken", lambda: self.status()["shards"])

    def status(self) -> Mapping[str, Any]:
        """The engine's account; an empty one where none listens."""
        worker = self.workers[-1]
        assert worker.poll() is None, f"the worker ended with {worker.returncode}:\n{self.log[-4000:]}"
        with suppress(EngineGone):
            return handover.status(self.folder)
        return {"records": 0, "shards": []}

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    def process(self, words: str) -> psutil.Process:
        """The one process below the worker whose command line has these words."""
        (found,) = self.processes(words)
        return found

    def processes(self, words: str) -> list[psutil.Process]:
        found = []
        for process in psutil.Process(self.workers[-1].pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if words in " ".join(process.cmdline()):
                    found.append(process)
        return found

    def stop(self) -> float:
        """End the worker as an operator does; returns the seconds it took. Nothing of it may be left."""
        worker = self.workers[-1]
        family = psutil.Process(worker.pid).children(recursive=True)
        began = time.monotonic()
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(GRACE + 30) == 0, self.log[-4000:]
        took = time.monotonic() - began
        _, left = psutil.wait_procs(family, timeout=10)
        assert left == []
        return took

    def clean_up(self) -> None:
        for worker in self.workers:
            if worker.poll() is None:
                family = psutil.Process(worker.pid).children(recursive=True)
                worker.kill()
                worker.wait()
                for process in family:
                    with suppress(psutil.NoSuchProcess):
                        process.kill()

    # ---------------------------------------------------------------------------------------------- the stream

    def feed(self, records: int) -> None:
        """Put the next so many numbers: some alone, the others in aggregates of the KPL's."""
        numbers = range(self.fed, self.fed + records)
        single = [payload(number) for number in numbers[:ALONE]]
        self.put(alone(single, f"r{self.fed}-"))
        self.put(aggregated((payload(number) for number in numbers[ALONE:]), PER_AGGREGATE, f"a{self.fed}-"))
        self.fed += records

    def put(self, records: Iterable[Outgoing]) -> None:
        put(self.aws.client("kinesis"), self.stream, records)

    def open_shards(self) -> list[dict[str, Any]]:
        shards = self.aws.client("kinesis").list_shards(StreamName=self.stream)["Shards"]
        return [shard for shard in shards if "EndingSequenceNumber" not in shard["SequenceNumberRange"]]

    def split(self) -> None:
        shard = self.open_shards()[0]
        low, high = (int(shard["HashKeyRange"][f"{end}HashKey"]) for end in ("Starting", "Ending"))
        self.aws.client("kinesis").split_shard(
            StreamName=self.stream, ShardToSplit=shard["ShardId"], NewStartingHashKey=str((low + high) // 2)
        )
        self.aws.wait_until_active(self.stream)

    def merge(self) -> None:
        first, second = sorted(self.open_shards(), key=lambda shard: int(shard["HashKeyRange"]["StartingHashKey"]))[-2:]
        self.aws.client("kinesis").merge_shards(
            StreamName=self.stream, ShardToMerge=first["ShardId"], AdjacentShardToMerge=second["ShardId"]
        )
        self.aws.wait_until_active(self.stream)

    def leases(self) -> dict[str, dict[str, str]]:
        return self.aws.leases(self.stream)

    # ---------------------------------------------------------------------------------------------- the tables

    def committed(self) -> int:
        """How many records have their fate in a table, by its log alone: looking must not cost what is looked at."""
        return sum(self._count(name) for name in ("rows", "dead"))

    def _count(self, name: str) -> int:
        if not (self.root / name / "_delta_log").exists():
            return 0
        added = pa.table(DeltaTable(self.root / name).get_add_actions(flatten=True))
        return sum(added["num_records"].to_pylist())

    def tables(self) -> tuple[pa.Table, pa.Table]:
        return self._table("rows"), self._table("dead")

    def _table(self, name: str) -> pa.Table:
        path = self.root / name
        if not (path / "_delta_log").exists():
            return pa.table({})
        return DeltaTable(path).to_pyarrow_table()

    def commits(self) -> Iterator[pa.Table]:
        """The rows of each commit of the data table, in the order of commits."""
        for version in sorted((self.root / "rows" / "_delta_log").glob("*.json")):
            actions = [json.loads(line) for line in version.read_text().splitlines()]
            files = [self.root / "rows" / action["add"]["path"] for action in actions if "add" in action]
            if files:
                yield pa.concat_tables(pq.read_table(file, partitioning=None) for file in files)


def assert_exact(world: World) -> None:
    """Lost 0, duplicated 0, order per shard kept; counted with no `distinct`."""
    rows, dead = world.tables()
    numbers = Counter(rows["id"].to_pylist())
    numbers.update(int(text.removeprefix(b'{"id": ')) for text in dead["payload"].to_pylist())
    lost = [number for number in range(world.fed) if number not in numbers]
    doubled = [number for number, times in numbers.items() if times > 1]
    assert (len(lost), len(doubled)) == (0, 0), f"lost {lost[:5]}, doubled {doubled[:5]}"
    assert numbers.total() == world.fed
    assert len(dead) == world.fed // BAD_EVERY
    assert_order_kept(world)


def assert_order_kept(world: World) -> None:
    """In each shard a commit holds what comes after the commit before it, and positions rise as the numbers do."""
    reached: dict[str, tuple[int, int, int]] = {}
    for commit in world.commits():
        names = ("_shard_id", "_sequence_number", "_sub_sequence_number", "id")
        found: dict[str, list[tuple[int, int, int]]] = {}
        for shard, sequence, sub, number in zip(*(commit[name].to_pylist() for name in names), strict=True):
            found.setdefault(shard, []).append((int(sequence), sub, number))
        for shard, places in found.items():
            ordered = sorted(places)
            assert [place[2] for place in ordered] == sorted(place[2] for place in ordered), f"{shard}: out of order"
            assert reached.get(shard, (0, 0, 0)) < ordered[0], f"{shard}: a commit goes back"
            reached[shard] = ordered[-1]
