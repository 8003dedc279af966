from datetime import UTC, datetime

from kcl_spark.pipeline import DeadLetterLimit
from kcl_spark.positions import Position
from kcl_spark.worker.deliveries import DeadLetter
from kcl_spark.worker.letters import SCHEMA, Watch, to_table


def judge(watch: Watch, records: int, dead: int) -> bool:
    """Count a batch as the flush does: judge first, then count if it passed."""
    if watch.judge("s", records, dead):
        return True
    watch.count(records, dead)
    return False


def test_few_records_never_stop_a_shard() -> None:
    watch = Watch(DeadLetterLimit())
    assert not any(judge(watch, 1, 1) for _ in range(9_999))
    assert judge(watch, 1, 1)


def test_the_limit_itself_is_allowed() -> None:
    assert not judge(Watch(DeadLetterLimit()), 10_000, 1_000)
    assert judge(Watch(DeadLetterLimit()), 10_000, 1_001)


def test_old_records_are_forgotten() -> None:
    watch = Watch(DeadLetterLimit(0.10, 1_000))
    assert not judge(watch, 900, 90)
    assert not judge(watch, 1_000, 90)
    assert not judge(watch, 1_000, 100)
    assert judge(watch, 1_000, 101)


def test_judging_alone_counts_nothing() -> None:
    """A batch may be judged again and again before it is durable."""
    watch = Watch(DeadLetterLimit(0.5, 100))
    for _ in range(5):
        assert watch.judge("s", 60, 50) is None
    watch.count(60, 50)
    assert watch.judge("s", 60, 50) is not None


def test_the_error_names_shard_and_counts() -> None:
    error = Watch(DeadLetterLimit(0.0, 1)).judge("shardId-3", 10, 4)
    assert error is not None
    assert "shard shardId-3: 4 of its last 10 records are dead letters, more than 0%" in str(error)


def test_a_dead_letter_keeps_everything_that_finds_and_replays_it() -> None:
    arrival, failed = datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC)
    letter = DeadLetter(Position(10**56 + 1, 7), "k\u00e9y", arrival, b"\xff\x00", "why")
    table = to_table([("shard", letter)], failed)
    assert table.schema == SCHEMA
    assert table.to_pylist() == [
        {
            "_shard_id": "shard",
            "_sequence_number": str(10**56 + 1),
            "_sub_sequence_number": 7,
            "_partition_key": "k\u00e9y",
            "_arrival_time": arrival,
            "payload": b"\xff\x00",
            "reason": "why",
            "failed_at": failed,
        }
    ]
