"""More is offered than can be taken: memory, disk and a slow table hold the daemon back, and nothing else happens."""

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from kcl_spark.positions import Position
from kcl_spark.protocol import Status
from kcl_spark.simulator.stream import Stream
from tests.process.daemon_end import delivery
from tests.process.worker import Engine, Feed, Worker, all_committed, drive, eventually, ids, in_order, rows_of

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("process-pressure")]

CAP = 8 << 20
CHUNK = 500
PADDING = 2_000
"""So that a delivery is about a megabyte."""

BLOCKED = """
def blocked(df):
    while (here / "block").exists():
        time.sleep(0.02)
    return df
"""


def resident(engine: Engine) -> int:
    return int(psutil.Process(engine.process.pid).memory_info().rss)


def test_the_cap_holds_the_daemon_back(worker: Worker) -> None:
    """Ten times the cap is offered while the transform is stuck."""
    worker.declare(BLOCKED, transform="blocked", trigger="Trigger('100ms', max_bytes='8MiB')")
    engine = worker.engine()
    shards = 2
    feed = Feed(Stream(shards), PADDING)
    daemon = worker.daemon(feed.stream, max_records=CHUNK)
    # What the first commits load and allocate once and for all is no matter of the cap.
    feed.put(CAP // PADDING)
    drive(daemon, lambda: all_committed(daemon))
    (worker.root / "block").touch()
    feed.put(10 * CAP // PADDING)
    before, most = resident(engine), 0
    buffered = []

    def held_back() -> bool:
        nonlocal most
        most = max(most, resident(engine))
        buffered.append(engine.status()["buffered_bytes"])
        return len(buffered) > 50 and len(set(buffered[-50:])) == 1

    drive(daemon, held_back)
    assert CAP <= max(buffered) <= CAP + shards * CHUNK * (PADDING + 200)
    # One batch is with Spark, one is full on disk, one fills: and columns are copied once on their way to disk.
    assert most - before < 6 * CAP
    assert feed.stream.unread * PADDING > 6 * CAP
    (worker.root / "block").unlink()
    worker.finish(daemon)
    assert ids(worker) == feed.ids


def test_a_held_back_daemon_gets_its_status_once_there_is_room(worker: Worker) -> None:
    worker.declare(BLOCKED, transform="blocked", trigger="Trigger('10ms', max_records=10)")
    worker.engine()
    (worker.root / "block").touch()
    end = worker.child()
    end.open()
    for first in (0, 10):  # one batch for Spark, one for the disk
        end.say(delivery(*range(first, first + 10)))
        assert end.hear() == Status("processRecords")
    end.say(delivery(*range(20, 30)))
    assert not end.is_readable(1.0)
    (worker.root / "block").unlink()
    end.until(Status("processRecords"))
    end.until_checkpoint(29)


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """Sixteen megabytes, and what is left of them holds no batch."""
    folder = Path(tempfile.mkdtemp(prefix="kcl-spark-disk-", dir="/tmp"))
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", folder], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        folder.rmdir()
        pytest.skip(f"a file system can't be mounted here: {mounted.stderr.strip()}")
    (folder / "ballast").write_bytes(bytes((16 << 20) - (256 << 10)))
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)
    folder.rmdir()


def test_a_full_disk_holds_the_daemon_back_until_there_is_space(worker: Worker, small_disk: Path) -> None:
    worker.declare(trigger="Trigger('100ms', max_bytes='2MiB')")
    engine = worker.engine("--spool", str(small_disk / "spool"))
    feed = Feed(Stream(2), PADDING)
    feed.put(10_000)
    daemon = worker.daemon(feed.stream, max_records=CHUNK)
    drive(daemon, lambda: "No space left on device" in engine.log)
    drive(daemon, lambda: engine.log.count("can't take a batch") > 2)
    assert "Free disk space there, or name another folder with --spool" in engine.log
    # Nothing half is left, the daemon waits with most of the stream, and no lease has passed the table.
    eventually("the failed file is gone", lambda: not list((small_disk / "spool").glob("*.unfinished")))
    assert feed.stream.unread * PADDING > 3 << 20
    latest = {row["_shard_id"]: int(row["_sequence_number"]) for row in rows_of(worker.rows)}
    assert not any(
        isinstance(lease.checkpoint, Position) and name not in latest for name, lease in daemon.leases.items()
    )
    (small_disk / "ballast").unlink()
    worker.finish(daemon)
    assert ids(worker) == feed.ids
    assert in_order(worker.rows)
    assert list((small_disk / "spool").iterdir()) == []
