"""What every sink must do, whatever it is: subclass `SinkContract` and say how to make one."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import pytest

from kcl_spark.errors import CommitConflict, SchemaDrift
from kcl_spark.positions import Position
from kcl_spark.sinks.base import Entry, Move, OpenSink

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

COLUMNS = "id bigint, name string, _shard_id string, _sequence_number string, _sub_sequence_number bigint"
KINESIS = 49590338271490256608559692538361571095921575989136588898


def frame(spark: SparkSession, *ids: int, shard: str = "a") -> DataFrame:
    rows = [(number, f"n{number}", shard, str(KINESIS + number), 0) for number in ids]
    return spark.createDataFrame(rows, COLUMNS)


def at(number: int) -> Position:
    return Position(KINESIS + number)


class SinkContract(ABC):
    """The suite; `table` names a table of its own for each test."""

    @abstractmethod
    def opened(self, table: Any, ledger: str = "test") -> OpenSink:
        """Open the table as one more worker."""

    @abstractmethod
    def ids(self, table: Any) -> list[int]:
        """The visible rows' ids, in any order, each as often as it is there."""

    @pytest.fixture
    @abstractmethod
    def table(self, tmp_path: Path) -> Any:
        """A table that does not exist yet."""

    @pytest.fixture
    def sink(self, table: Any, spark: SparkSession) -> OpenSink:
        sink = self.opened(table)
        sink.check(frame(spark).schema)
        return sink

    def put(self, sink: OpenSink, spark: SparkSession, base: Entry, *ids: int, shard: str = "a") -> Entry:
        """Stage and commit some rows, moving the shard's mark to the last; returns the new entry."""
        move = Move(shard, base, at(max(ids)), len(ids))
        sink.commit(sink.stage(frame(spark, *ids, shard=shard), "batch"), [move])
        return move.entry

    # ---------------------------------------------------------------------------------------- the ledger

    def test_an_unknown_shard_has_an_empty_entry(self, sink: OpenSink) -> None:
        assert sink.entries(["a", "b"]) == {"a": Entry(), "b": Entry()}

    def test_a_commit_makes_rows_visible_and_moves_the_mark(
        self, sink: OpenSink, table: Any, spark: SparkSession
    ) -> None:
        entry = self.put(sink, spark, Entry(), 1, 2, 3)
        assert sorted(self.ids(table)) == [1, 2, 3]
        assert sink.entries(["a", "b"]) == {"a": entry, "b": Entry()}
        assert entry == Entry(1, at(3))

    def test_the_next_commit_builds_on_it(self, sink: OpenSink, table: Any, spark: SparkSession) -> None:
        entry = self.put(sink, spark, Entry(), 1)
        entry = self.put(sink, spark, entry, 2)
        assert sorted(self.ids(table)) == [1, 2]
        assert sink.entries(["a"]) == {"a": Entry(2, at(2))}

    def test_another_worker_reads_the_same_ledger(self, sink: OpenSink, table: Any, spark: SparkSession) -> None:
        entry = self.put(sink, spark, Entry(), 1)
        assert self.opened(table).entries(["a"]) == {"a": entry}

    def test_ledgers_of_different_names_do_not_know_each_other(
        self, sink: OpenSink, table: Any, spark: SparkSession
    ) -> None:
        self.put(sink, spark, Entry(), 1)
        assert self.opened(table, "other").entries(["a"]) == {"a": Entry()}

    @pytest.mark.parametrize(
        "mark", [Position(0), Position(1, 2), Position(2**62), Position(KINESIS, 7), Position(10**129 - 1, 2**40)]
    )
    def test_a_mark_of_any_length_is_read_back_exactly(self, sink: OpenSink, mark: Position) -> None:
        sink.commit(None, [Move("a", Entry(), mark, 0)])
        assert sink.entries(["a"]) == {"a": Entry(1, mark)}

    def test_one_commit_moves_many_shards(self, sink: OpenSink, table: Any, spark: SparkSession) -> None:
        shards = [f"shardId-{number:012d}" for number in range(40)]
        moves = [Move(shard, Entry(), at(number), 1) for number, shard in enumerate(shards)]
        sink.commit(sink.stage(frame(spark, 1, 2), "batch"), moves)
        assert sink.entries(shards) == {move.shard_id: move.entry for move in moves}
        assert sorted(self.ids(table)) == [1, 2]

    def test_a_commit_without_rows_moves_marks_alone(self, sink: OpenSink, table: Any, spark: SparkSession) -> None:
        """All records of a batch were dead letters."""
        entry = self.put(sink, spark, Entry(), 1)
        sink.commit(None, [Move("a", entry, at(9), 3)])
        assert sink.entries(["a"]) == {"a": Entry(2, at(9))}
        assert self.ids(table) == [1]

    def test_an_empty_staging_is_a_staging(self, sink: OpenSink, table: Any, spark: SparkSession) -> None:
        """A transform that filters everything out."""
        staged = sink.stage(frame(spark), "batch")
        assert staged.rows == 0
        sink.commit(staged, [Move("a", Entry(), at(5), 2)])
        assert sink.entries(["a"]) == {"a": Entry(1, at(5))}
        assert self.ids(table) == []

    # ---------------------------------------------------------------------------------------- the fence

    def test_staged_rows_are_invisible(self, sink: OpenSink, table: Any, spark: SparkSession) -> None:
        self.put(sink, spark, Entry(), 1)
        staged = sink.stage(frame(spark, 2), "batch")
        assert self.ids(table) == [1]
        sink.abandon(staged)
        assert self.ids(table) == [1]

    def test_a_commit_on_an_entry_that_has_moved_is_a_conflict(
        self, sink: OpenSink, table: Any, spark: SparkSession
    ) -> None:
        self.put(sink, spark, Entry(), 1)
        with pytest.raises(CommitConflict):
            self.put(sink, spark, Entry(), 2)
        assert self.ids(table) == [1]
        assert sink.entries(["a"]) == {"a": Entry(1, at(1))}

    def test_another_workers_commit_is_a_conflict(self, sink: OpenSink, table: Any, spark: SparkSession) -> None:
        """The rule that an ordinal can't keep: both build on the same entry, with batches cut differently."""
        entry = self.put(sink, spark, Entry(), 1)
        other = self.opened(table)
        other.check(frame(spark).schema)
        self.put(other, spark, entry, 2, 3)
        with pytest.raises(CommitConflict):
            self.put(sink, spark, entry, 2)
        assert sorted(self.ids(table)) == [1, 2, 3]

    def test_a_claim_fences_and_moves_no_mark(self, sink: OpenSink, table: Any, spark: SparkSession) -> None:
        entry = self.put(sink, spark, Entry(), 1)
        other = self.opened(table)
        other.check(frame(spark).schema)
        other.commit(None, [Move("a", entry, entry.mark, 0)])
        assert sink.entries(["a"]) == {"a": Entry(2, at(1))}
        with pytest.raises(CommitConflict):
            self.put(sink, spark, entry, 2)

    def test_a_claim_on_a_shard_without_a_mark(self, sink: OpenSink) -> None:
        sink.commit(None, [Move("a", Entry(), None, 0)])
        assert sink.entries(["a"]) == {"a": Entry(1, None)}

    def test_other_shards_commits_are_no_conflict(self, sink: OpenSink, table: Any, spark: SparkSession) -> None:
        entry = self.put(sink, spark, Entry(), 1)
        other = self.opened(table)
        other.check(frame(spark).schema)
        for number in range(10, 15):
            self.put(other, spark, other.entries(["b"])["b"], number, shard="b")
        self.put(sink, spark, entry, 2)
        assert sorted(self.ids(table)) == [1, 2, 10, 11, 12, 13, 14]

    def test_one_conflicting_shard_keeps_the_whole_commit_out(
        self, sink: OpenSink, table: Any, spark: SparkSession
    ) -> None:
        self.put(sink, spark, Entry(), 1)
        staged = sink.stage(frame(spark, 2, 3), "batch")
        with pytest.raises(CommitConflict):
            sink.commit(staged, [Move("b", Entry(), at(3), 1), Move("a", Entry(), at(2), 1)])
        assert self.ids(table) == [1]
        assert sink.entries(["b"]) == {"b": Entry()}

    def test_of_many_at_once_on_one_shard_exactly_one_wins(
        self, sink: OpenSink, table: Any, spark: SparkSession
    ) -> None:
        self.put(sink, spark, Entry(), 1)
        workers = [self.opened(table) for _ in range(6)]
        staged = []
        for number, worker in enumerate(workers):
            worker.check(frame(spark).schema)
            staged.append(worker.stage(frame(spark, 100 + number), "batch"))
        base = sink.entries(["a"])["a"]
        outcomes = run_at_once(
            [
                lambda w=worker, s=rows, n=number: w.commit(s, [Move("a", base, at(100 + n), 1)])
                for number, (worker, rows) in enumerate(zip(workers, staged, strict=True))
            ]
        )
        assert outcomes.count("done") == 1
        assert outcomes.count("CommitConflict") == 5
        assert len(self.ids(table)) == 2

    def test_many_at_once_on_shards_of_their_own_all_win(self, sink: OpenSink, table: Any, spark: SparkSession) -> None:
        self.put(sink, spark, Entry(), 1)
        workers = [self.opened(table) for _ in range(6)]
        staged = []
        for number, worker in enumerate(workers):
            worker.check(frame(spark).schema)
            staged.append(worker.stage(frame(spark, 100 + number, shard=f"s{number}"), "batch"))
        outcomes = run_at_once(
            [
                lambda w=worker, s=rows, n=number: w.commit(s, [Move(f"s{n}", Entry(), at(100 + n), 1)])
                for number, (worker, rows) in enumerate(zip(workers, staged, strict=True))
            ]
        )
        assert outcomes == ["done"] * 6
        assert sorted(self.ids(table)) == [1, 100, 101, 102, 103, 104, 105]

    # ---------------------------------------------------------------------------------------- columns and identities

    def test_other_columns_are_refused(self, sink: OpenSink, table: Any, spark: SparkSession) -> None:
        self.put(sink, spark, Entry(), 1)
        with pytest.raises(SchemaDrift):
            self.opened(table).check(spark.createDataFrame([], COLUMNS + ", extra string").schema)

    def test_identities_behind_a_position(self, sink: OpenSink, spark: SparkSession) -> None:
        self.put(sink, spark, Entry(), 1, 2, 3)
        self.put(sink, spark, Entry(), 9, shard="b")
        assert sink.identities("a", None) == {at(1), at(2), at(3)}
        assert sink.identities("a", at(1)) == {at(2), at(3)}
        assert sink.identities("c", None) == set()

    def test_a_table_that_does_not_exist_has_no_identities(self, sink: OpenSink) -> None:
        assert sink.identities("a", None) == set()


def run_at_once(actions: list[Any]) -> list[str]:
    """Run all at the same time; say of each how it ended."""
    outcomes = [""] * len(actions)
    barrier = threading.Barrier(len(actions))

    def run(index: int) -> None:
        barrier.wait()
        try:
            actions[index]()
            outcomes[index] = "done"
        except Exception as error:
            outcomes[index] = type(error).__name__

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(actions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes
