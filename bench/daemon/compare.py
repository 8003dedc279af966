"""Throughput under the daemon's own record processors, side by side in one run; medians of three.

    (a) a null child: what the daemon itself can do
    (b) amazon_kclpy that decodes and checkpoints and does nothing
    (c) amazon_kclpy + write_deltalake for each batch, at least once
    (d) kcl-spark, JSON with a declared schema, into Delta, exactly once

1 KiB JSON records, 2,000 a batch, driven from memory by Drive.java: no AWS. Each run has a driver of its own; (d) has
one engine for all of its runs, started and warm before the first, as under `kcl-spark run`. The four take turns, so
that a machine that slows down slows all of them.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from deltalake import DeltaTable
from rich.console import Console
from rich.table import Table

from kcl_spark.daemon.command import LOGBACK
from kcl_spark.daemon.jars import find
from kcl_spark.worker import child, handover

HERE = Path(__file__).parent
PIPELINE = HERE / "pipeline.py"
BATCH = 2_000
REPEATS = 3

console = Console(stderr=True)


def main(records: int, shard_counts: list[int]) -> int:
    """Run all of it and print the table; 1 where a row is missing or doubled."""
    folder = Path(tempfile.mkdtemp(prefix="kcl-spark-bench-", dir="/tmp"))
    try:
        with engine(folder):
            rates = {shards: measure(folder, shards, records) for shards in shard_counts}
            account = handover.status(folder / "worker")
        rows = DeltaTable(folder / "d").to_pyarrow_dataset().count_rows()
    finally:
        shutil.rmtree(folder)
    Console().print(shown(rates))
    fed = sum(records // shards * shards for shards in shard_counts) * REPEATS
    print(f"(d): {fed:,} records in, {rows:,} rows; floor of a batch {account['batch_floor_seconds']:.2f} s")
    whole = sum(account["batch_seconds"].values())
    print("(d), time of a batch: " + ", ".join(f"{k} {v / whole:.0%}" for k, v in account["batch_seconds"].items()))
    return 0 if rows == fed else 1


@contextmanager
def engine(folder: Path) -> Iterator[None]:
    """The engine of (d), warm."""
    os.environ |= {"BENCH_TABLE": str(folder / "d"), child.FOLDER: str(folder / "worker")}
    notices, notify = os.pipe()
    command = [sys.executable, "-m", "kcl_spark", "engine", str(PIPELINE), "--folder", str(folder / "worker")]
    with (folder / "engine.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--notify-fd", str(notify)], pass_fds=(notify,), stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    os.close(notify)
    try:
        console.print("starting the engine")
        assert b"ready" in os.read(notices, 64), (folder / "engine.log").read_text()
        yield
    finally:
        process.terminate()
        process.wait()


def measure(folder: Path, shards: int, records: int) -> dict[str, list[float]]:
    """Rates of the four children, in records a second."""
    python = sys.executable
    found: dict[str, list[float]] = {name: [] for name in "abcd"}
    for repeat in range(REPEATS):
        table = folder / f"c{shards}-{repeat}"
        kclpy = f"{python} {HERE / 'kclpy_children.py'}"
        commands = {
            "a": f"{python} -S -E {HERE / 'null_child.py'}",
            "b": f"{kclpy} nothing",
            "c": f"{kclpy} delta {table}",
            "d": f"{python} -S -E {child.__file__} {PIPELINE}",
        }
        for name, command in commands.items():
            run = shards * 10 + repeat
            rate = drive(command, shards, records // shards, run)
            found[name].append(rate)
            console.print(f"{shards:>2} shards, run {repeat + 1}, ({name}): {rate:>9,.0f} records/s")
        shutil.rmtree(table, ignore_errors=True)
    return found


def drive(command: str, shards: int, each: int, run: int) -> float:
    """One run: a driver with a warm heap, so that what is measured is not the kernel handing out its pages."""
    flags = [
        "-Xms1g",
        "-Xmx1g",
        "-XX:+AlwaysPreTouch",
        "-Dfile.encoding=UTF-8",
        f"-Dlogback.configurationFile={LOGBACK}",
    ]
    jars = find(None, os.environ).folder
    java = ["java", *flags, "-cp", f"{jars}/*", str(HERE / "Drive.java")]
    done = subprocess.run(
        [*java, command, str(shards), str(each), str(BATCH), str(run)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return float(json.loads(done.stdout.splitlines()[-1])["rate"])


def shown(rates: dict[int, dict[str, list[float]]]) -> Table:
    """Medians, and how (d) compares."""
    table = Table(box=None, header_style="bold")
    names = {
        "a": "(a) null child",
        "b": f"(b) amazon_kclpy {version('amazon_kclpy')}, nothing",
        "c": f"(c) amazon_kclpy + deltalake {version('deltalake')}",
        "d": f"(d) kcl-spark, pyspark {version('pyspark')}",
    }
    table.add_column("records/s, medians of 3")
    medians = {shards: {name: statistics.median(found[name]) for name in names} for shards, found in rates.items()}
    for shards in rates:
        table.add_column(f"{shards} shards", justify="right")
    for name, text in names.items():
        table.add_row(text, *(f"{medians[shards][name]:,.0f}" for shards in rates))
    for other in "bc":
        ratios = (medians[shards]["d"] / medians[shards][other] for shards in rates)
        table.add_row(f"(d) ÷ ({other})", *(f"{ratio:.2f}" for ratio in ratios))
    return table


if __name__ == "__main__":
    total = int(sys.argv[1]) if sys.argv[1:] else 960_000
    sys.exit(main(total, [int(word) for word in sys.argv[2:]] or [1, 4, 16]))
