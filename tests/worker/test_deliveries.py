from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcl_spark.errors import SequenceWentBackwards
from kcl_spark.positions import Position, Span
from kcl_spark.protocol import ProcessRecords, Record
from kcl_spark.worker.columns import strictly_ascending, to_columns
from kcl_spark.worker.deliveries import Chunk, after, in_order, place


def record(sequence: int | str, sub: int | None = 0, data: bytes | None = b"x") -> Record:
    return Record(data, "k", str(sequence), sub, 1_700_000_000_123)


def delivery(*places: int | tuple[int, int]) -> ProcessRecords:
    return ProcessRecords([record(*(p if isinstance(p, tuple) else (p, 0))) for p in places])


def places(event: ProcessRecords) -> list[Position]:
    return [place(each) for each in event.records]


def test_an_ordered_delivery_is_taken_as_it_is() -> None:
    event = delivery(1, 2, (3, 0), (3, 1), 9)
    assert in_order("s", event, Position(0, 9)) is event


def test_numbers_of_different_length_are_compared_as_numbers() -> None:
    event = delivery(9, 10, 100)
    assert not strictly_ascending(event.records)  # the fast look is not sure
    assert places(in_order("s", event, None)) == [Position(9), Position(10), Position(100)]


def test_a_record_delivered_twice_is_taken_once() -> None:
    assert places(in_order("s", delivery(1, 1, 2, 2, 2), None)) == [Position(1), Position(2)]
    assert places(in_order("s", delivery(5, 6), Position(5))) == [Position(6)]


@pytest.mark.parametrize(
    ("event", "before"),
    [
        (delivery(2, 1), None),
        (delivery(1, 3, 2), None),
        (delivery((3, 1), (3, 0)), None),
        (delivery(10, 9), None),
        (delivery(4), Position(5)),
        (delivery((5, 0)), Position(5, 1)),
        (delivery(5, 5, 4), Position(4)),
    ],
)
def test_going_backwards_stops_the_shard(event: ProcessRecords, before: Position | None) -> None:
    with pytest.raises(SequenceWentBackwards, match=r"shard s: record .* came after"):
        in_order("s", event, before)


@pytest.mark.parametrize("number", ["abc", "", "1.5", "TRIM_HORIZON"])
def test_a_record_without_a_place_stops_the_shard(number: str) -> None:
    for event in (ProcessRecords([record(number)]), ProcessRecords([record(1), record(number)])):
        with pytest.raises(SequenceWentBackwards, match="no sequence number"):
            in_order("s", event, None)


def test_a_negative_sub_sequence_number_stops_the_shard() -> None:
    with pytest.raises(SequenceWentBackwards, match="negative"):
        in_order("s", ProcessRecords([record(1, -1)]), None)


@pytest.mark.parametrize(
    ("done", "left"),
    [
        (None, [1, 2, 3]),
        (Position(0), [1, 2, 3]),
        (Position(1), [2, 3]),
        (Position(2, 5), [3]),
        (Position(3), []),
        (Position(9), []),
    ],
)
def test_what_the_ledger_holds_is_dropped(done: Position | None, left: list[int]) -> None:
    assert places(after(delivery(1, 2, 3), done)) == [Position(number) for number in left]


def test_a_replay_that_begins_inside_an_aggregate() -> None:
    event = delivery((5, 0), (5, 1), (5, 2), 6)
    assert places(after(event, Position(5, 1))) == [Position(5, 2), Position(6)]


def test_broken_base64_keeps_to_its_record_when_others_are_dropped() -> None:
    event = ProcessRecords([record(1), record(1), record(2), record(3)], None, {2: "bad", 3: "worse"})
    ordered = in_order("s", event, None)
    assert ordered.undecodable == {1: "bad", 2: "worse"}
    trimmed = after(ordered, Position(2))
    assert trimmed.undecodable == {0: "worse"}
    chunk = Chunk.of(trimmed.records, trimmed.undecodable, 4.0)
    assert chunk.span == Span(Position(3), Position(3), 1)
    assert chunk.columns.num_rows == 0
    assert [(letter.position, letter.payload) for letter in chunk.dead] == [(Position(3), b"worse")]
    assert chunk.dead[0].arrival_time is not None
    assert chunk.dead[0].arrival_time.isoformat() == "2023-11-14T22:13:20.123000+00:00"


def test_a_chunk_knows_its_span_and_its_size() -> None:
    chunk = Chunk.of([record(5), record(6, 2)], {}, 1.5)
    assert chunk.span == Span(Position(5), Position(6, 2), 2)
    assert chunk.size >= chunk.columns.nbytes > 0
    assert chunk.received_at == 1.5


def test_columns_keep_nulls_apart_from_empty_where_it_matters() -> None:
    rows = to_columns([Record(None, None, "7", None, None), Record(b"", "", "8", 3, 0)]).to_pylist()
    assert rows[0]["data"] == b""
    assert rows[0]["_partition_key"] is None
    assert rows[0]["_arrival_time"] is None
    assert rows[0]["_sub_sequence_number"] == 0
    assert rows[1]["_partition_key"] == ""
    assert rows[1]["_arrival_time"].timestamp() == 0


positions = st.builds(Position, st.integers(0, 10**56), st.integers(0, 3))


@given(st.lists(positions, max_size=30))
def test_the_fast_look_never_says_ordered_where_it_is_not(found: list[Position]) -> None:
    records = [record(position.sequence, position.sub) for position in found]
    if strictly_ascending(records):
        assert all(left < right for left, right in pairwise(found))


@given(st.sets(positions, min_size=1, max_size=30), positions)
def test_dropping_keeps_exactly_what_lies_behind(found: set[Position], done: Position) -> None:
    event = ProcessRecords([record(position.sequence, position.sub) for position in sorted(found)])
    assert places(after(in_order("s", event, None), done)) == [p for p in sorted(found) if p > done]
