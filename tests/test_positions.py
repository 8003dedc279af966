import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcl_spark.positions import Position, Sentinel, from_limbs, is_sequence_number, parse_checkpoint, to_limbs

numbers = st.integers(0, 10**129 - 1)


@given(numbers)
def test_limbs_give_the_number_back_and_fit_a_signed_64_bit_field(number: int) -> None:
    limbs = to_limbs(number)
    assert from_limbs(limbs) == number
    assert all(0 <= limb < 2**62 for limb in limbs)
    assert 1 <= len(limbs) <= 7


def test_a_sequence_number_of_kinesis_takes_at_most_four_limbs() -> None:
    assert len(to_limbs(int("49590338271490256608559692538361571095921575989136588898"))) == 3
    assert len(to_limbs(10**56 - 1)) == 4


@given(numbers, st.integers(0, 2**40))
def test_positions_survive_the_wire(sequence: int, sub: int) -> None:
    position = Position(sequence, sub)
    assert Position.parse(position.sequence_number, position.sub) == position


def test_positions_compare_as_numbers_and_then_by_sub_sequence() -> None:
    """As text, "9" is greater than "10"."""
    assert Position.parse("9") < Position.parse("10") < Position.parse("10", 1) < Position.parse("11")


def test_a_missing_sub_sequence_number_is_zero() -> None:
    assert Position.parse("5", None) == Position(5, 0)


@pytest.mark.parametrize("text", ["", "LATEST", "-1", "+1", "1.0", " 1", "1\n", "\u0661", "\u00b2", "9" * 130])
def test_what_is_no_sequence_number(text: str) -> None:
    assert not is_sequence_number(text)
    with pytest.raises(ValueError, match="no sequence number"):
        Position.parse(text)


def test_a_negative_sub_sequence_number() -> None:
    with pytest.raises(ValueError, match="negative"):
        Position.parse("1", -1)


@pytest.mark.parametrize("sentinel", list(Sentinel))
def test_sentinels(sentinel: Sentinel) -> None:
    assert parse_checkpoint(sentinel.value, 0) is sentinel


def test_a_null_checkpoint_is_the_beginning() -> None:
    assert parse_checkpoint(None, None) is Sentinel.TRIM_HORIZON


def test_a_checkpoint_inside_an_aggregated_record() -> None:
    assert parse_checkpoint("77", 3) == Position(77, 3)


def test_a_checkpoint_that_is_neither() -> None:
    with pytest.raises(ValueError, match="SHARD_END"):
        parse_checkpoint("SHARD_END", 0)
