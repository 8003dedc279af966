"""The table in start.py, row by row."""

import pytest

from kcl_spark.errors import DataLossError
from kcl_spark.positions import Position, Sentinel
from kcl_spark.worker.start import last_done

FIVE, SEVEN = Position(5), Position(7)


def done(lease: Position | Sentinel, mark: Position | None, *, adopt: bool = False) -> Position | None:
    return last_done("shard", lease, mark, adopt_checkpoints=adopt)


@pytest.mark.parametrize("lease", list(Sentinel))
def test_a_new_shard_starts_with_its_first_record(lease: Sentinel) -> None:
    assert done(lease, None) is None


@pytest.mark.parametrize("lease", [Sentinel.TRIM_HORIZON, Sentinel.AT_TIMESTAMP])
def test_a_lease_without_a_checkpoint_starts_after_the_mark(lease: Sentinel) -> None:
    assert done(lease, SEVEN) == SEVEN


def test_latest_after_a_mark_would_skip() -> None:
    with pytest.raises(DataLossError, match=r"LATEST.*up to 7:0.*initialPositionInStreamExtended"):
        done(Sentinel.LATEST, SEVEN)


@pytest.mark.parametrize("lease", [FIVE, SEVEN])
def test_the_mark_is_the_truth_and_the_checkpoint_a_hint(lease: Position) -> None:
    assert done(lease, SEVEN) == SEVEN


def test_a_mark_behind_the_checkpoint_would_skip() -> None:
    with pytest.raises(DataLossError, match=r"mark 5:0 is behind .* 7:0.*restore the table"):
        done(SEVEN, FIVE)


def test_a_mark_inside_an_aggregate_behind_the_checkpoint() -> None:
    with pytest.raises(DataLossError):
        done(Position(5, 4), Position(5, 3))


def test_a_checkpoint_without_a_mark_is_refused() -> None:
    with pytest.raises(DataLossError, match=r"no mark.*adopt_checkpoints=True"):
        done(SEVEN, None)


def test_a_checkpoint_without_a_mark_can_be_adopted() -> None:
    assert done(SEVEN, None, adopt=True) == SEVEN


def test_adopting_does_not_excuse_a_mark_that_is_behind() -> None:
    with pytest.raises(DataLossError):
        done(SEVEN, FIVE, adopt=True)
