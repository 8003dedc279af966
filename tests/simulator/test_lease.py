"""A lease takes checkpoints as KCL does; each row of the table in the module is a test here."""

import pytest

from kcl_spark.positions import Position, Sentinel
from kcl_spark.protocol import Checkpoint, CheckpointAnswer
from kcl_spark.simulator.lease import OUT_OF_RANGE, Lease


def ask(lease: Lease, number: str | None, sub: int = 0, *, at_end: bool = False) -> str | None:
    answer = lease.answer(Checkpoint(number, sub), at_end=at_end)
    assert answer == CheckpointAnswer(number, sub, answer.error)
    return answer.error


def test_null_at_the_shards_end_is_shard_end() -> None:
    lease = Lease("shard", delivered=Position(5))
    assert ask(lease, None, at_end=True) is None
    assert lease.ended


def test_null_is_the_last_record_delivered() -> None:
    lease = Lease("shard", delivered=Position(5, 2))
    assert ask(lease, None) is None
    assert (lease.checkpoint, lease.ended) == (Position(5, 2), False)


def test_null_before_any_record_moves_nothing() -> None:
    lease = Lease("shard")
    assert ask(lease, None) is None
    assert lease.checkpoint is Sentinel.TRIM_HORIZON


@pytest.mark.parametrize(("number", "sub", "error"), [
    ("2", 0, OUT_OF_RANGE),  # behind the checkpoint
    ("3", 0, OUT_OF_RANGE),
    ("3", 1, None),  # the checkpoint again
    ("4", 0, None),
    ("7", 1, None),  # the last record delivered
    ("7", 2, OUT_OF_RANGE),
    ("8", 0, OUT_OF_RANGE),
    ("10", 0, OUT_OF_RANGE),  # as text it would be before 3
])  # fmt: skip
def test_a_place_has_to_lie_between_checkpoint_and_delivery(number: str, sub: int, error: str | None) -> None:
    lease = Lease("shard", Position(3, 1), delivered=Position(7, 1))
    assert ask(lease, number, sub) == error
    assert lease.checkpoint == (Position(3, 1) if error else Position(int(number), sub))


def test_a_new_life_may_only_repeat_the_checkpoint() -> None:
    lease = Lease("shard", Position(3))
    assert ask(lease, "3") is None
    assert ask(lease, "4") == OUT_OF_RANGE


@pytest.mark.parametrize("held", Sentinel)
@pytest.mark.parametrize("said", Sentinel)
def test_only_the_beginning_that_the_lease_holds_is_taken(held: Sentinel, said: Sentinel) -> None:
    lease = Lease("shard", held)
    assert ask(lease, said.value) == (None if held is said else OUT_OF_RANGE)
    assert lease.checkpoint is held


def test_initialize_says_where_it_stands() -> None:
    assert Lease("shard").at == ("TRIM_HORIZON", 0)
    assert Lease("shard", Position(7, 2)).at == ("7", 2)
