"""The engine dies at each named step of a record's life: no record is lost, and none is there twice."""

import os
import signal
from contextlib import suppress

import psutil
import pytest

from kcl_spark.errors import DaemonFailed
from kcl_spark.simulator.lease import Lease
from kcl_spark.simulator.stream import Stream
from kcl_spark.worker.steps import Step
from tests.process.worker import Engine, Feed, Worker, drive, eventually, ids, in_order, rows_of

pytestmark = pytest.mark.process


def die(worker: Worker, feed: Feed, leases: dict[str, Lease], step: Step, times: int) -> None:
    """Run an engine and a daemon until the engine kills itself, which ends the daemon."""
    engine = worker.engine(death=(step, times), ready=False)
    daemon = worker.daemon(feed.stream, leases, max_records=40)
    with pytest.raises(DaemonFailed, match="exit code 71"):
        drive(daemon, lambda: feed.put(0 if feed.stream.unread else 50))
    assert engine.exit_code() == -signal.SIGKILL, engine.log


def check_so_far(worker: Worker, feed: Feed, when: str) -> None:
    """What is visible by now is there once, and was fed."""
    seen = ids(worker)
    assert not seen - feed.ids, f"twice or never fed, {when}: {seen - feed.ids}"
    assert in_order(worker.rows), when


@pytest.mark.xdist_group("process-death")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("times", [1, 3])
def test_no_death_loses_or_repeats_a_record(worker: Worker, times: int) -> None:
    """One life after the other, each ended at another step, over the same table and the same leases."""
    feed, leases = Feed(Stream(2)), dict[str, Lease]()
    for number, step in enumerate(Step):
        feed.put(200)
        if number == 3:
            feed.stream.split("shardId-000000000000")
        if number == 6:
            feed.stream.merge("shardId-000000000002", "shardId-000000000003")
        die(worker, feed, leases, step, times)
        check_so_far(worker, feed, f"after the death at {step}")
    worker.engine()
    worker.finish(worker.daemon(feed.stream, leases))
    assert ids(worker) == feed.ids
    assert in_order(worker.rows)
    assert len(rows_of(worker.dead)) == feed.fed // 10
    assert {name for name, lease in leases.items() if lease.ended} == {f"shardId-{n:012d}" for n in (0, 2, 3)}


@pytest.mark.xdist_group("process-local")
def test_an_engine_takes_its_own_spark_with_it(local_worker: Worker) -> None:
    """A job that goes on without its engine would write below the table of the next one."""
    feed, leases = Feed(Stream(2)), dict[str, Lease]()
    feed.put(200)
    die(local_worker, feed, leases, Step.STAGED, 2)
    eventually("the JVM has ended", lambda: not [p for p in session_of(local_worker.engines[0]) if p.name() == "java"])
    check_so_far(local_worker, feed, "after the death")
    local_worker.engine()
    local_worker.finish(local_worker.daemon(feed.stream, leases))
    assert ids(local_worker) == feed.ids
    assert in_order(local_worker.rows)


def session_of(engine: Engine) -> list[psutil.Process]:
    """What is alive of an engine's session, which it leads."""
    found = []
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, psutil.NoSuchProcess):
            if os.getsid(process.pid) == engine.process.pid:
                found.append(process)
    return found
