"""The quickstart's stream through a worker in a container: fed, committed, ended by SIGTERM, and counted.

`tests/container/run` builds the image and calls this with the name of a container of it.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from examples import quickstart
from kcl_spark.daemon.generate import ONE_MACHINE
from kcl_spark.simulator.local_aws import CREDENTIALS, LocalAws, local_aws

USER = 10001

PATIENCE = 600.0


def main(container: str) -> None:
    folder = Path(tempfile.mkdtemp(prefix="kcl-spark-container-", dir="/tmp"))
    try:
        os.chown(folder, USER, USER)
        shutil.copy(quickstart.PIPELINE, folder / "flights.py")
        source = folder / "flights.jsonl"
        fed = quickstart.write_flights(source)
        with local_aws(folder / "aws.log") as aws, (folder / "worker.log").open("wb") as log:
            aws.create_stream(quickstart.STREAM, quickstart.SHARDS)
            worker = subprocess.Popen(command(container, folder, aws), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            try:
                drive(worker, folder, aws, source, fed)
            finally:
                for process in inside():
                    process.kill()
                worker.wait(30)
        rows, dead = count(folder / "flights"), count(folder / "flights_dead")
        print(f"{fed:,} records in, {rows:,} rows, {dead:,} dead letters")
        assert fed == rows + dead
    finally:
        shutil.rmtree(folder)


def command(container: str, folder: Path, aws: LocalAws) -> list[str]:
    environment = [f"--env={name}={value}" for name, value in {**CREDENTIALS, "FLIGHTS_TABLES": "/pipeline"}.items()]
    # Docker writes a container's name into /etc/hosts; buildah does not, and Spark looks it up.
    start = ["buildah", "run", "--hostname=localhost", *environment, f"--volume={folder}:/pipeline", "--user=worker"]
    start += [container, "--"]
    run = ["kcl-spark", "run", "/pipeline/flights.py", "--stream", quickstart.STREAM]
    endpoints = ["--kinesis-endpoint", aws.kinesis, "--dynamodb-endpoint", aws.dynamodb]
    return [*start, *run, *endpoints, *(f"--set={key}={value}" for key, value in ONE_MACHINE.items())]


def drive(worker: "subprocess.Popen[bytes]", folder: Path, aws: LocalAws, source: Path, fed: int) -> None:
    log = folder / "worker.log"
    wait("all shards are taken", lambda: log.read_text(errors="replace").count("starts: its lease") >= 4, worker, log)
    quickstart.feed(aws, source, fed)
    wait("all is committed", lambda: count(folder / "flights") + count(folder / "flights_dead") >= fed, worker, log)
    everyone = inside()
    (supervisor,) = [process for process in everyone if process.ppid() not in {each.pid for each in everyone}]
    assert supervisor.cmdline()[2:3] == ["run"]
    assert all(process.uids().real == USER for process in everyone)
    began = time.monotonic()
    supervisor.send_signal(signal.SIGTERM)
    code = worker.wait(60)
    print(f"SIGTERM: gone after {time.monotonic() - began:.1f} s with exit code {code}")
    assert code == 0, log.read_text(errors="replace")[-3000:]
    _, left = psutil.wait_procs(everyone, timeout=10)
    assert left == [], "a process was left behind"


def inside() -> list[psutil.Process]:
    """The processes of the container's user: it shares the machine's process ids."""
    return list(_of_user())


def _of_user() -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess):
            if process.uids().real == USER and process.status() != psutil.STATUS_ZOMBIE:
                yield process


def count(table: Path) -> int:
    try:
        return int(DeltaTable(table).to_pyarrow_dataset().count_rows())
    except TableNotFoundError:
        return 0


def wait(what: str, holds: Callable[[], bool], worker: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert worker.poll() is None, log.read_text(errors="replace")[-3000:]
        assert time.monotonic() < deadline, f"not in time: {what}\n{log.read_text(errors='replace')[-3000:]}"
        time.sleep(0.5)


if __name__ == "__main__":
    main(sys.argv[1])
