"""Starting again: from the table, from a lease that another consumer has left, from nothing, and not at all."""

import shutil

import pytest

from kcl_spark.errors import DaemonFailed, ExitCode
from kcl_spark.protocol import Checkpoint, Initialize, ShardEnded, ShutdownRequested, Status
from kcl_spark.simulator.lease import Lease
from kcl_spark.simulator.stream import Stream
from tests.process.worker import Feed, Worker, drive, ids

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("process-recovery")]


def run(worker: Worker, feed: Feed, leases: dict[str, Lease], records: int) -> None:
    """One worker's life, ended in order once so many more records are committed."""
    engine = worker.engine()
    feed.put(records)
    daemon = worker.daemon(feed.stream, leases)
    worker.finish(daemon)
    engine.process.terminate()
    assert engine.exit_code() == ExitCode.OK


def test_a_deleted_table_is_data_loss(worker: Worker) -> None:
    feed, leases = Feed(Stream(1)), dict[str, Lease]()
    run(worker, feed, leases, 100)
    shutil.rmtree(worker.rows)
    engine = worker.engine()
    daemon = worker.daemon(feed.stream, leases)
    with pytest.raises(DaemonFailed) as failed:
        drive(daemon, lambda: False)
    assert failed.value.exit_code == ExitCode.DATA_LOSS
    assert engine.exit_code() == ExitCode.DATA_LOSS
    assert "but the table has no mark for the shard" in engine.log
    assert "delete the lease table to read the stream again" in engine.log
    assert "Traceback" not in engine.log
    assert not worker.rows.exists()


def test_a_table_restored_to_an_older_state_is_data_loss(worker: Worker) -> None:
    feed, leases = Feed(Stream(1)), dict[str, Lease]()
    run(worker, feed, leases, 100)
    shutil.copytree(worker.rows, worker.root / "backup")
    run(worker, feed, leases, 100)
    shutil.rmtree(worker.rows)
    shutil.move(worker.root / "backup", worker.rows)
    engine = worker.engine()
    with pytest.raises(DaemonFailed):
        drive(worker.daemon(feed.stream, leases), lambda: False)
    assert engine.exit_code() == ExitCode.DATA_LOSS
    assert "is behind the lease's checkpoint" in engine.log
    assert "restore the table" in engine.log


def test_a_lost_lease_table_repeats_nothing(worker: Worker) -> None:
    """The stream is read from its start, and the table knows what it has."""
    run(worker, Feed(Stream(2)), {}, 200)
    repeated = Feed(Stream(2))
    repeated.put(200)
    run(worker, repeated, {}, 100)
    assert ids(worker) == repeated.ids


def test_another_consumers_checkpoint_is_adopted(worker: Worker) -> None:
    worker.declare(adopt_checkpoints="True")
    engine = worker.engine()
    end = worker.child()
    end.open(at="50")
    end.deliver(49, 50, 51, 52)
    end.until_checkpoint(52)
    assert ids(worker) == {51: 1, 52: 1}
    assert "adopted the lease's checkpoint 50:0; nothing before it is read" in engine.log


def test_another_consumers_checkpoint_is_refused_unless_adopted(worker: Worker) -> None:
    engine = worker.engine()
    end = worker.child()
    end.say(Initialize("shard", "50", 0))
    assert end.exit_code() == ExitCode.DATA_LOSS
    assert engine.exit_code() == ExitCode.DATA_LOSS
    assert "set adopt_checkpoints=True" in engine.log
    assert "set adopt_checkpoints=True" in end.log


def test_best_effort_never_moves_the_lease_and_never_repeats(worker: Worker) -> None:
    worker.declare(recovery="'best_effort'")
    first = worker.engine()
    end = worker.child()
    end.open(at="LATEST")
    end.deliver(1, 2, 3)
    end.say(ShutdownRequested())
    assert end.until(Status("shutdownRequested")) == []
    assert ids(worker) == {1: 1, 2: 1, 3: 1}
    first.kill()
    # What came in between is lost, as declared; a table with rows is no reason to refuse LATEST.
    worker.engine()
    end = worker.child()
    end.open(at="LATEST")
    end.deliver(7, 8)
    end.say(ShardEnded())
    assert end.until(Status("shardEnded")) == [Checkpoint(None, None)]
    assert ids(worker) == {1: 1, 2: 1, 3: 1, 7: 1, 8: 1}


def test_latest_behind_a_filled_table_is_data_loss(worker: Worker) -> None:
    worker.engine()
    end = worker.child()
    end.open(at="TRIM_HORIZON")
    end.deliver(1)
    end.until_checkpoint(1)
    again = worker.child()
    again.say(Initialize("shard", "LATEST", 0))
    assert again.exit_code() == ExitCode.DATA_LOSS
    assert "initialPositionInStreamExtended" in again.log
