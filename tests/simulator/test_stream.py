"""The stream in memory keeps the rules that a consumer depends on."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcl_spark.errors import UsageError
from kcl_spark.positions import Position
from kcl_spark.simulator.stream import KEYS, Stream, hash_key


def place(number: str) -> Position:
    return Position.parse(number)


def check_ranges(stream: Stream) -> None:
    """The open shards cover all hash keys once."""
    edges = [(shard.first_key, shard.last_key) for shard in stream.open_shards()]
    assert edges[0][0] == 0
    assert edges[-1][1] == KEYS - 1
    assert all(left[1] + 1 == right[0] for left, right in pairwise(edges))


@pytest.mark.parametrize("shards", [1, 2, 3, 7, 64])
def test_shards_cover_all_keys(shards: int) -> None:
    check_ranges(Stream(shards))


def test_a_stream_without_shards_is_refused() -> None:
    with pytest.raises(UsageError, match="at least 1"):
        Stream(0)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 10)), max_size=12))
def test_resharding_keeps_all_keys_covered_and_numbers_ascending(steps: list[tuple[bool, int]]) -> None:
    stream = Stream(2)
    for merge, choice in steps:
        for key in range(5):
            stream.put(b"", str(key), 0)
        shards = stream.open_shards()
        chosen = choice % len(shards)
        if not merge:
            stream.split(shards[chosen].shard_id)
        elif chosen + 1 < len(shards):
            stream.merge(shards[chosen].shard_id, shards[chosen + 1].shard_id)
        check_ranges(stream)
    for shard in stream.shards.values():
        numbers = [int(record.sequence_number) for record in shard.records]
        assert numbers == sorted(set(numbers))
        before = [int(r.sequence_number) for parent in shard.parents for r in stream.shards[parent].records]
        assert not before or not numbers or max(before) < min(numbers)


@given(st.text(min_size=1, max_size=20))
def test_a_key_belongs_to_one_open_shard(key: str) -> None:
    stream = Stream(5)
    stream.put(b"data", key, 0)
    (shard,) = [shard for shard in stream.open_shards() if shard.records]
    assert shard.first_key <= hash_key(key) <= shard.last_key


def test_a_record_goes_where_its_key_belongs_after_a_split() -> None:
    stream = Stream(1)
    stream.put(b"before", "key", 0)
    lower, upper = stream.split("shardId-000000000000")
    stream.put(b"after", "key", 0)
    assert [r.data for r in stream.shards["shardId-000000000000"].records] == [b"before"]
    assert [r.data for shard in (lower, upper) for r in shard.records] == [b"after"]


def test_numbers_are_as_wide_as_kinesis_makes_them() -> None:
    assert len(Stream(1).put(b"", "key", 0).sequence_number) == 56


def test_a_reader_goes_on_where_it_was_and_back_to_a_checkpoint() -> None:
    stream = Stream(1)
    numbers = [stream.put(b"", "key", 0).sequence_number for _ in range(10)]
    (shard,) = stream.open_shards()
    assert [r.sequence_number for r in shard.next(4)] == numbers[:4]
    assert [r.sequence_number for r in shard.next(4)] == numbers[4:8]
    assert shard.unread == 2
    shard.rewind(place(numbers[2]))
    assert [r.sequence_number for r in shard.next(99)] == numbers[3:]
    shard.rewind(None)
    assert shard.unread == 10


def test_what_is_checkpointed_is_forgotten_and_never_what_is_unread() -> None:
    stream = Stream(1)
    numbers = [stream.put(b"", "key", 0).sequence_number for _ in range(6)]
    (shard,) = stream.open_shards()
    shard.next(4)
    shard.forget(place(numbers[1]))
    assert [r.sequence_number for r in shard.records] == numbers[2:]
    assert [r.sequence_number for r in shard.next(9)] == numbers[4:]
    shard.rewind(None)
    assert shard.unread == 4
    shard.forget(place(numbers[5]))
    assert shard.unread == 4


def test_a_closed_shard_is_not_resharded_again() -> None:
    stream = Stream(2)
    stream.split("shardId-000000000000")
    with pytest.raises(UsageError, match="shardId-000000000000 is no open shard"):
        stream.split("shardId-000000000000")


def test_only_neighbours_merge() -> None:
    stream = Stream(3)
    with pytest.raises(UsageError, match="not adjacent"):
        stream.merge("shardId-000000000000", "shardId-000000000002")
    merged = stream.merge("shardId-000000000001", "shardId-000000000000")
    assert merged.parents == ("shardId-000000000000", "shardId-000000000001")


def test_a_shard_of_one_key_is_not_split() -> None:
    stream = Stream(1)
    shard = stream.open_shards()[0]
    for _ in range(128):
        shard = stream.split(shard.shard_id)[0]
    with pytest.raises(UsageError, match="one hash key"):
        stream.split(shard.shard_id)
