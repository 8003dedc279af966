"""A spooled batch through real Spark: counts, culprits, and transforms that misbehave in every way we know."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kcl_spark import formats
from kcl_spark.errors import SparkGone, TransformBroken, UsageError
from kcl_spark.pipeline import METADATA, Transform
from kcl_spark.protocol import Record
from kcl_spark.sinks.base import Entry, Staged
from kcl_spark.worker import compute as module
from kcl_spark.worker.batching import Batch, Slice
from kcl_spark.worker.compute import Computation, Computed, is_gone, reason_of
from kcl_spark.worker.deliveries import Chunk
from kcl_spark.worker.spool import Spool, Spooled, ddl
from kcl_spark.worker.warmup import warm_up

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SOURCE = formats.json("id bigint NOT NULL, n int")


class Bench:
    """A computation with a transform, and what it staged."""

    def __init__(self, spark: SparkSession, folder: Path, transform: Transform | None) -> None:
        self.spool = Spool(folder / "spool", 2, SOURCE)
        self.computation = Computation(spark, SOURCE, transform, self.spool)
        self.staged: list[list[Any]] = []

    def batch(self, *payloads: bytes) -> Spooled:
        records = [Record(payload, f"k{n}", str(10**55 + n), 0, 1000 + n) for n, payload in enumerate(payloads, 1)]
        slices = tuple(
            Slice(shard, 1, Entry(), (Chunk.of(part, {}, 0.0),))
            for shard, part in (("a", records[: len(records) // 2]), ("b", records[len(records) // 2 :]))
            if part
        )
        return self.spool.write(Batch(1, slices, 0.0))

    def compute(self, *payloads: bytes) -> Computed:
        return self.computation.compute(self.batch(*payloads), self.stage)

    def stage(self, frame: DataFrame) -> Staged:
        rows = frame.collect()
        self.staged.append(rows)
        return Staged(len(rows), 0, None)


@pytest.fixture
def bench(spark: SparkSession, tmp_path: Path) -> Any:
    return lambda transform=None: Bench(spark, tmp_path, transform)


def doc(*ids: int) -> list[bytes]:
    return [b'{"id":%d,"n":%d}' % (number, number % 7) for number in ids]


def test_rows_carry_their_identity(bench: Any) -> None:
    b = bench()
    b.compute(*doc(5, 6))
    assert [row.asDict() for row in b.staged[0]] == [
        {
            "id": 5, "n": 5, "_shard_id": "a", "_sequence_number": str(10**55 + 1), "_sub_sequence_number": 0,
            "_partition_key": "k1", "_arrival_time": b.staged[0][0]["_arrival_time"],
        },
        {
            "id": 6, "n": 6, "_shard_id": "b", "_sequence_number": str(10**55 + 2), "_sub_sequence_number": 0,
            "_partition_key": "k2", "_arrival_time": b.staged[0][1]["_arrival_time"],
        },
    ]  # fmt: skip
    assert b.staged[0][0]["_arrival_time"].timestamp() == 1.001


def test_order_within_a_shard_is_kept(bench: Any) -> None:
    b = bench()
    b.compute(*doc(*range(1, 2001)))
    for shard in "ab":
        numbers = [row["_sequence_number"] for row in b.staged[0] if row["_shard_id"] == shard]
        assert numbers == sorted(numbers)


def test_what_does_not_decode_is_named_and_left_out(bench: Any) -> None:
    b = bench()
    computed = b.compute(*doc(1, 2), b"{bad", b"{}", *doc(3))
    assert computed.failures == {
        2: "the payload is no JSON object of the schema",
        3: "the required field id is missing",
    }
    assert [row["id"] for row in b.staged[0]] == [1, 2, 3]


def test_without_failures_one_job_is_enough(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    b = bench(lambda df: df.where("id > 1"))
    monkeypatch.setattr(Computation, "_failures", lambda *_: pytest.fail("looked twice"))
    assert b.compute(*doc(1, 2, 3)).failures == {}


MISREADING: dict[str, Transform] = {
    "reads nothing": lambda df: df.limit(0),
    "reads some": lambda df: df.limit(1),
    "reads twice": lambda df: df.unionByName(df),
    "joins with itself": lambda df: df.alias("l").join(df.select("id").alias("r"), "id"),
    "groups": lambda df: df.groupBy("n").count(),
    "caches": lambda df: df.cache(),
}


@pytest.mark.parametrize("name", MISREADING)
def test_a_transform_may_read_the_batch_as_it_likes_and_failures_are_still_all_found(
    bench: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a job observes while it runs is only believed if it fits the batch."""
    monkeypatch.setattr(module, "_OBSERVATION_SECONDS", 0.5)
    b = bench(MISREADING[name])
    assert set(b.compute(*doc(1, 2), b"bad", *doc(3)).failures) == {2}


def divide(df: DataFrame) -> DataFrame:
    return df.selectExpr("id", "100 / n as q", *METADATA)


def test_a_transform_that_raises_on_data_names_its_culprits(bench: Any) -> None:
    b = bench(divide)
    computed = b.compute(*doc(1, 2, 7, 3, 4, 14, 5, 6, 8, 9, 10))
    assert computed.staged is None
    assert set(computed.failures) == {2, 5}
    assert "DIVIDE_BY_ZERO" in computed.failures[2]


def test_a_python_function_that_raises_names_its_culprits(bench: Any) -> None:
    from pyspark.sql import functions as F

    @F.udf("int")
    def picky(n):  # type: ignore[no-untyped-def]  # with types Spark takes it for an Arrow function
        if n == 3:
            raise ValueError("I do not like threes")
        return n

    b = bench(lambda df: df.withColumn("p", picky("n")))
    computed = b.compute(*doc(*range(1, 10)))
    assert set(computed.failures) == {2}
    assert computed.failures[2] == "the transform failed: ValueError: I do not like threes"


def test_culprits_beside_undecodable_records(bench: Any) -> None:
    b = bench(divide)
    found = b.compute(*doc(1, 2, 7), b"bad", *doc(3, 4, 5, 6, 8, 9)).failures
    assert set(found) == {2}, "the undecodable one is named once the culprits are out"


def test_a_transform_that_fails_for_every_record_is_broken(bench: Any) -> None:
    b = bench(lambda df: df.selectExpr("id", "raise_error('always') as x"))
    with pytest.raises(TransformBroken, match=r"no record passes it: .*always") as caught:
        b.compute(*doc(*range(20)))
    assert "Traceback" in caught.value.__notes__[0]


def test_few_records_that_all_fail_are_dead_letters_until_they_are_many_in_a_row(bench: Any) -> None:
    """One poisoned record alone in its batch must not stop the worker; a broken transform must."""
    b = bench(divide)
    assert set(b.compute(*doc(7)).failures) == {0}
    assert set(b.compute(*doc(7, 14)).failures) == {0, 1}
    b.compute(*doc(1))
    for _ in range(7):
        assert set(b.compute(*doc(7)).failures) == {0}
    with pytest.raises(TransformBroken):
        b.compute(*doc(7))


def test_a_failure_that_is_not_the_datas_is_passed_on(bench: Any) -> None:
    b = bench()

    def full(_: DataFrame) -> Staged:
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space"):
        b.computation.compute(b.batch(*doc(*range(20))), full)
    assert list(b.spool.folder.iterdir()) == [b.spool.folder / "00000000.parquet"], "no sample is left behind"


def test_a_dead_session_is_not_taken_for_a_bad_record(bench: Any) -> None:
    b = bench()

    def dead(_: DataFrame) -> Staged:
        raise ConnectionRefusedError("Connection refused")

    with pytest.raises(SparkGone, match="does not answer"):
        b.computation.compute(b.batch(*doc(1)), dead)


# ------------------------------------------------------------------------------------------------ before any record


def test_the_plan_is_checked_without_a_record(bench: Any) -> None:
    schema = bench(lambda df: df.selectExpr("id * 2 as twice", *METADATA)).computation.check()
    assert schema.fieldNames() == ["twice", *METADATA]


@pytest.mark.parametrize(
    "transform",
    [lambda df: df.select("nope"), lambda df: df.nope(), lambda df: 1 / 0],
    ids=["column", "method", "python"],
)
def test_a_transform_that_can_not_be_planned_is_broken(bench: Any, transform: Transform) -> None:
    with pytest.raises(TransformBroken, match="it can't be planned"):
        bench(transform).computation.check()


def test_a_transform_that_returns_nothing_is_broken(bench: Any) -> None:
    with pytest.raises(TransformBroken, match="it returned a NoneType"):
        bench(lambda df: None).computation.check()


def test_a_column_named_as_one_of_ours_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    source = formats.json("id bigint, _SHARD_ID string")
    with pytest.raises(UsageError, match="_shard_id twice"):
        Computation(spark, source, None, Spool(tmp_path / "s", 1, source)).check()


def test_the_spools_columns_in_sparks_words_are_the_ones_in_its_files(bench: Any, spark: SparkSession) -> None:
    b = bench()
    spooled = b.batch(*doc(1))
    inferred = {field.name: field.dataType for field in spark.read.parquet(str(spooled.path)).schema}
    declared = {field.name: field.dataType for field in spark.createDataFrame([], ddl("string")).schema}
    assert inferred == declared


def test_warming_up_leaves_nothing_behind_and_finds_the_floor(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from kcl_spark.worker import warmup

    monkeypatch.setattr(warmup, "LARGE", 500)
    times = iter(range(10_000))
    b = bench()
    floor = warm_up(b.computation.warm_plan, b.spool, lambda: float(next(times)))
    assert floor == 1.0
    assert list(b.spool.folder.iterdir()) == []


# ------------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("error", "gone"),
    [
        (ConnectionResetError("x"), True),
        (RuntimeError("Job 3 cancelled because SparkContext was shut down"), True),
        (ValueError("x"), False),
    ],
)
def test_which_errors_mean_that_the_session_is_dead(error: Exception, gone: bool) -> None:
    assert is_gone(error) is gone


def test_a_reason_is_one_bounded_line() -> None:
    assert reason_of(ValueError("first\nsecond")) == "first"
    assert reason_of(ValueError("")) == "ValueError"
    assert len(reason_of(ValueError("x" * 10_000))) == 400
