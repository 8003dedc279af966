from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcl_spark.worker.isolation import PROBES, NothingPasses, culprits


class Trials:
    """A transform that fails whenever one of the bad rows is among those tried."""

    def __init__(self, bad: set[int]) -> None:
        self.bad = bad
        self.tried: list[list[int]] = []

    def __call__(self, rows: Sequence[int]) -> str | None:
        self.tried.append(list(rows))
        hit = sorted(self.bad & set(rows))
        return f"row {hit[0]}" if hit else None


@given(st.integers(9, 400), st.data())
def test_exactly_the_bad_rows_are_found(rows: int, data: st.DataObject) -> None:
    bad = data.draw(st.sets(st.integers(0, rows - 1), max_size=6))
    trials = Trials(bad)
    assert culprits(rows, trials) == {row: f"row {row}" for row in bad}


def test_one_bad_row_of_many_takes_few_trials() -> None:
    trials = Trials({77_777})
    assert culprits(120_000, trials) == {77_777: "row 77777"}
    assert len(trials.tried) <= PROBES + 2 * 18


@pytest.mark.parametrize("rows", [1, 2, 7, 8, 9, 100_000])
def test_a_transform_that_fails_on_everything_is_found_out_after_the_probes(rows: int) -> None:
    trials = Trials(set(range(rows)))
    with pytest.raises(NothingPasses) as caught:
        culprits(rows, trials)
    assert caught.value.tried == min(rows, PROBES) == len(trials.tried)
    assert caught.value.reason.startswith("row ")


def test_the_probes_are_spread_over_the_batch() -> None:
    trials = Trials(set())
    culprits(800, trials)
    assert [rows[0] for rows in trials.tried[:PROBES]] == [0, 100, 200, 300, 400, 500, 600, 700]


def test_bad_rows_that_the_probes_hit_are_found_too() -> None:
    assert set(culprits(800, Trials({0, 100, 101}))) == {0, 100, 101}


def test_a_failure_that_no_row_causes_alone_has_no_culprit() -> None:
    """An overflow of a sum, a full disk: the caller has to look elsewhere."""
    assert culprits(100, lambda rows: "too many" if len(rows) > 50 else None) == {}
