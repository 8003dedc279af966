"""The batcher: a batch never holds more than its trigger says, and cutting loses, repeats and reorders nothing."""

from hypothesis import given
from hypothesis import strategies as st

from kcl_spark.pipeline import Trigger
from kcl_spark.positions import Position
from kcl_spark.protocol import Record
from kcl_spark.sinks.base import Entry
from kcl_spark.worker.batching import Batch, Batcher
from kcl_spark.worker.deliveries import Chunk

deliveries = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.lists(st.booleans(), min_size=1, max_size=12)), max_size=12
)
"""Shard, and for each record whether its base64 is broken."""


def fill(batcher: Batcher, given: list[tuple[str, list[bool]]]) -> dict[str, list[Position]]:
    """Deliver to shards; returns each shard's positions in order."""
    sent: dict[str, list[Position]] = {}
    for moment, (shard, broken) in enumerate(given):
        known = sent.setdefault(shard, [])
        numbers = range(len(known) + 1, len(known) + 1 + len(broken))
        records = [Record(b"x" * 50, "k", str(number), 0, 5) for number in numbers]
        undecodable = {index: "?" for index, bad in enumerate(broken) if bad}
        batcher.add(shard, 1, Chunk.of(records, undecodable, float(moment)))
        known += [Position(number) for number in numbers]
    return sent


def drained(batcher: Batcher) -> list[Batch]:
    batches = []
    while batcher.records:
        batches.append(batcher.seal({(shard, 1): Entry() for shard in "abc"}, 99.0))
        assert len(batches) < 1_000, "a batch takes at least one record"
    return batches


def held(batch: Batch, shard: str) -> list[Position]:
    """Every position of a shard in a batch; within a chunk in order of position."""
    found = []
    for part in batch.slices:
        for chunk in part.chunks if part.shard_id == shard else ():
            rows = [Position.parse(row["_sequence_number"], 0) for row in chunk.columns.to_pylist()]
            found += sorted(rows + [letter.position for letter in chunk.dead])
            assert (found[-1], chunk.span.records) == (chunk.span.last, len(rows) + len(chunk.dead))
    return found


@given(deliveries, st.integers(1, 20))
def test_cutting_loses_repeats_and_reorders_nothing(given: list[tuple[str, list[bool]]], most: int) -> None:
    batcher = Batcher(Trigger("1s", most))
    sent = fill(batcher, given)
    batches = drained(batcher)
    for shard, positions in sent.items():
        assert [place for batch in batches for place in held(batch, shard)] == positions
    assert (batcher.records, batcher.size, batcher.due_at) == (0, 0, None)


@given(deliveries, st.integers(1, 20))
def test_rows_never_exceed_the_trigger(given: list[tuple[str, list[bool]]], most: int) -> None:
    batcher = Batcher(Trigger("1s", most))
    fill(batcher, [(shard, [False] * len(records)) for shard, records in given])
    assert all(batch.records <= most for batch in drained(batcher))


def test_bytes_never_exceed_the_trigger_by_more_than_a_record() -> None:
    batcher = Batcher(Trigger("1s", 1_000_000, "2KB"))
    fill(batcher, [("a", [False] * 100), ("b", [False] * 100)])
    one = batcher.size // 200 + 1
    batches = drained(batcher)
    assert len(batches) > 5
    assert all(batch.size <= 2_000 + one for batch in batches)


def test_a_record_that_is_larger_than_a_batch_is_a_batch() -> None:
    batcher = Batcher(Trigger("1s", 1_000, "1KB"))
    batcher.add("a", 1, Chunk.of([Record(b"x" * 5_000, "k", str(number), 0, 5) for number in (1, 2)], {}, 0.0))
    assert [batch.records for batch in drained(batcher)] == [1, 1]


def test_what_came_first_goes_first_whatever_its_shard() -> None:
    batcher = Batcher(Trigger("1s", 4))
    fill(batcher, [("a", [False] * 3), ("b", [False] * 3), ("a", [False] * 3)])
    first, second, third = drained(batcher)
    assert [(part.shard_id, part.span.records) for part in first.slices] == [("a", 3), ("b", 1)]
    assert [(part.shard_id, part.span.records) for part in second.slices] == [("b", 2), ("a", 2)]
    assert [(part.shard_id, part.span.records) for part in third.slices] == [("a", 1)]


def test_what_is_left_keeps_its_age_and_its_haste() -> None:
    batcher = Batcher(Trigger("10s", 4))
    fill(batcher, [("a", [False] * 3), ("b", [False] * 3)])
    batcher.close_early()
    batcher.seal({(shard, 1): Entry() for shard in "ab"}, 1.0)
    assert batcher.due_at == 11.0
    assert batcher.is_due(1.0)
