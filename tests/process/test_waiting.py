"""While a batch takes its time the daemon hears of every shard: heartbeats, and a fair share for many shards."""

import time
from threading import Thread

import pytest

from kcl_spark.protocol import Checkpoint, CheckpointAnswer, ProcessRecords, Status
from tests.process.daemon_end import DaemonEnd, delivery
from tests.process.worker import Worker, eventually, ids

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("process-waiting")]

SLOW = """
def slow(df):
    while (here / "block").exists():
        time.sleep(0.02)
    return df
"""
HEARTBEAT = 0.3


@pytest.fixture
def blocked(worker: Worker) -> Worker:
    """A worker whose first batch is with Spark until the file `block` goes."""
    worker.declare(SLOW, transform="slow", trigger="Trigger('10ms', max_records=1)")
    worker.engine("--heartbeat", str(HEARTBEAT))
    (worker.root / "block").touch()
    return worker


def beats(end: DaemonEnd, number: int) -> set[tuple[str | None, int | None]]:
    """Hear so many heartbeats, each within a time that no daemon's timeout undercuts."""
    heard = set()
    for _ in range(number):
        beat = end.hear(10 * HEARTBEAT)
        assert isinstance(beat, Checkpoint)
        heard.add((beat.sequence_number, beat.sub_sequence_number))
        end.say(CheckpointAnswer(beat.sequence_number, beat.sub_sequence_number))
    return heard


def fill(end: DaemonEnd, *numbers: int) -> None:
    """Deliver until the daemon is held back: one batch for Spark, one for the disk, one that is full."""
    for number in numbers[:-1]:
        end.say(delivery(number))
        assert end.hear() == Status("processRecords")
    end.say(delivery(numbers[-1]))


@pytest.mark.parametrize("beginning", ["TRIM_HORIZON", "LATEST", "AT_TIMESTAMP"])
def test_a_waiting_lease_that_never_moved_is_told_its_own_beginning(blocked: Worker, beginning: str) -> None:
    end = blocked.child()
    end.open(at=beginning)
    fill(end, 1, 2, 3)
    assert beats(end, 5) == {(beginning, 0)}
    (blocked.root / "block").unlink()
    end.until(Status("processRecords"))
    end.until_checkpoint(3)


def test_a_waiting_lease_is_told_its_checkpoint(blocked: Worker) -> None:
    (blocked.root / "block").unlink()
    end = blocked.child()
    end.open()
    end.deliver(1)
    end.until_checkpoint(1)
    (blocked.root / "block").touch()
    fill(end, 2, 3, 4)
    assert beats(end, 5) == {("1", 0)}
    (blocked.root / "block").unlink()
    end.until(Status("processRecords"))
    end.until_checkpoint(4)
    assert ids(blocked) == dict.fromkeys((1, 2, 3, 4), 1)


# ----------------------------------------------------------------------------------------------------- many shards

IDLE, BUSY, ROUNDS = 64, 16, 12


class Talk:
    """A shard's daemon thread: it delivers, or ticks, and counts the answers."""

    def __init__(self, end: DaemonEnd, name: str, busy: bool) -> None:
        self.end, self.busy = end, busy
        self.answers = 0
        self.next = 1
        self.stored = 0
        self.end.open(name)

    def once(self) -> None:
        numbers = range(self.next, self.next + 20) if self.busy else range(0)
        self.end.say(delivery(*numbers) if self.busy else ProcessRecords([], 0))
        for taken in self.end.until(Status("processRecords")):
            self.stored = max(self.stored, int(taken.sequence_number or 0) if self.busy else 0)
        self.answers += 1
        self.next += len(numbers)

    def run(self) -> None:
        for _ in range(ROUNDS):
            self.once()
            time.sleep(0.2)

    def finish(self) -> None:
        if self.stored < self.next - 1:
            self.end.until_checkpoint(self.next - 1)


def test_many_idle_shards_do_not_hold_back_the_busy_ones(worker: Worker) -> None:
    engine = worker.engine()
    talks = [Talk(worker.child(), f"shard-{number}", number < BUSY) for number in range(BUSY + IDLE)]
    threads = [Thread(target=talk.run) for talk in talks]
    for thread in threads:
        thread.start()
    lags: list[dict[str, float]] = []
    while any(thread.is_alive() for thread in threads):
        shards = engine.status()["shards"]
        found = {shard["shard"]: shard["commit_lag_seconds"] for shard in shards if shard["commit_lag_seconds"]}
        if len(found) == BUSY:
            lags.append(found)
        time.sleep(0.1)
    for thread in threads:
        thread.join()
    for talk in talks[:BUSY]:
        talk.finish()
    mean = [sum(lag[shard] for lag in lags) / len(lags) for shard in lags[0]]
    assert max(mean) / min(mean) < 3
    assert all(talk.answers == ROUNDS for talk in talks)
    assert ids(worker) == dict.fromkeys(range(1, ROUNDS * 20 + 1), BUSY)


def test_an_idle_shard_is_answered_while_a_batch_is_on_its_way(worker: Worker) -> None:
    worker.declare(SLOW, transform="slow")
    engine = worker.engine()
    (worker.root / "block").touch()
    busy, idle = worker.child(), worker.child()
    busy.open("busy")
    idle.open("idle")
    busy.deliver(1)
    eventually("the batch is with Spark", lambda: engine.status()["steps"].get("spooled"))
    for _ in range(10):
        idle.say(ProcessRecords([], 0))
        assert idle.hear() == Status("processRecords")
    assert engine.status()["batches"] == 0
    (worker.root / "block").unlink()
    busy.until_checkpoint(1)
