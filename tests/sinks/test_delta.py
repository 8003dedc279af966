"""The Delta sink: the contract, then each of delta-rs' silent traps, then what readers see."""

from __future__ import annotations

import json
import subprocess
import threading
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.transaction import AddAction

from kcl_spark import sinks
from kcl_spark.errors import CommitConflict, OutcomeUnknown, SchemaDrift, SinkError, TableRefused, UsageError
from kcl_spark.positions import Position
from kcl_spark.sinks.base import Entry, Move, Staged
from kcl_spark.sinks.delta import DeltaSink, ledger
from kcl_spark.sinks.delta.compaction import Compaction, compact
from kcl_spark.sinks.delta.place import Place
from kcl_spark.sinks.delta.table import OpenDelta
from tests.sinks.contract import COLUMNS, SinkContract, at, frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class TestDelta(SinkContract):
    @pytest.fixture
    def table(self, tmp_path: Path) -> DeltaSink:
        return sinks.delta(str(tmp_path / "table"))

    def opened(self, table: DeltaSink, ledger: str = "test") -> OpenDelta:
        return table.open(ledger)

    def ids(self, table: DeltaSink) -> list[int]:
        if not DeltaTable.is_deltatable(table.place):
            return []
        return list(rows_of(table)["id"].to_pylist())


class TestPartitionedDelta(TestDelta):
    @pytest.fixture
    def table(self, tmp_path: Path) -> DeltaSink:
        return sinks.delta(str(tmp_path / "table"), partition_by=["name"])


def rows_of(table: DeltaSink) -> pa.Table:
    return DeltaTable(table.place).to_pyarrow_table()


@pytest.fixture
def table(tmp_path: Path) -> DeltaSink:
    return sinks.delta(str(tmp_path / "table"))


def opened(table: DeltaSink, spark: SparkSession, columns: str = COLUMNS) -> OpenDelta:
    sink = table.open("test")
    sink.check(spark.createDataFrame([], columns).schema)
    return sink


def append(sink: OpenDelta, rows: DataFrame, base: Entry = Entry(), shard: str = "a") -> Entry:  # noqa: B008
    move = Move(shard, base, Position((base.mark.sequence if base.mark else 0) + 1), 1)
    sink.commit(sink.stage(rows, "batch"), [move])
    return move.entry


# ------------------------------------------------------------------------------------------------ delta-rs' traps
# Each first shows that delta-rs does what we guard against, so that the guard goes when the trap does.


def test_trap_the_same_version_is_accepted_twice(table: DeltaSink, spark: SparkSession) -> None:
    sink = opened(table, spark)
    append(sink, frame(spark, 1))
    raw = DeltaTable(table.place)
    again = CommitProperties(app_transactions=[Transaction("kcl-spark/test/a", 1)])
    raw.create_write_transaction([], "append", raw.schema(), commit_properties=again)
    raw.update_incremental()
    raw.create_write_transaction([], "append", raw.schema(), commit_properties=again)
    with pytest.raises(CommitConflict):
        append(sink, frame(spark, 1))


def test_trap_a_handle_is_stale_after_its_own_commit(table: DeltaSink, spark: SparkSession) -> None:
    """Our sink commits a hundred times through one handle and never conflicts with itself."""
    sink = opened(table, spark)
    entry = append(sink, frame(spark, 1))
    raw = DeltaTable(table.place)
    one = CommitProperties(app_transactions=[Transaction("other", 1)])
    raw.create_write_transaction([], "append", raw.schema(), commit_properties=one)
    with pytest.raises(deltalake.exceptions.CommitFailedError):
        raw.create_write_transaction([], "append", raw.schema(), commit_properties=one)
    for _ in range(100):
        move = Move("a", entry, entry.mark, 0)
        sink.commit(None, [move])
        entry = move.entry
    assert sink.entries(["a"])["a"].version == 101


def test_trap_a_schema_mismatch_is_accepted(table: DeltaSink, spark: SparkSession) -> None:
    sink = opened(table, spark)
    append(sink, frame(spark, 1))
    wrong = spark.createDataFrame([("text", 1)], "id string, other int")
    with pytest.raises(SchemaDrift, match=r"the table .* has id long.*; the batch has id string"):
        append(sink, wrong, Entry(1, Position(1)))
    assert DeltaTable(table.place).version() == 0


def test_trap_a_missing_file_is_accepted(table: DeltaSink, spark: SparkSession) -> None:
    sink = opened(table, spark)
    entry = append(sink, frame(spark, 1))
    raw = DeltaTable(table.place)
    ghost = AddAction("nowhere.parquet", 1, {}, 0, True, "{}")
    raw.create_write_transaction([ghost], "append", raw.schema())
    with pytest.raises(Exception, match="nowhere"):
        DeltaTable(table.place).to_pyarrow_table()
    staged = sink.stage(frame(spark, 2), "batch")
    sink.abandon(staged)
    with pytest.raises(CommitConflict, match="is gone"):
        sink.commit(staged, [Move("a", entry, at(2), 1)])
    assert sink.entries(["a"]) == {"a": entry}


def test_trap_two_transactions_of_one_id_are_accepted(table: DeltaSink, spark: SparkSession) -> None:
    sink = opened(table, spark)
    with pytest.raises(ValueError, match="each shard once"):
        sink.commit(None, [Move("a", Entry(), at(1), 0), Move("a", Entry(), at(2), 0)])
    assert not DeltaTable.is_deltatable(table.place)


def test_trap_marks_expire_only_with_a_time(table: DeltaSink, spark: SparkSession) -> None:
    """With delta.setTransactionRetentionDuration, entries that carry a time vanish; ours carry none."""
    sink = opened(table, spark)
    entry = append(sink, frame(spark, 1))
    raw = DeltaTable(table.place)
    raw.alter.set_table_properties({"delta.setTransactionRetentionDuration": "interval 1 seconds"})
    timed = CommitProperties(app_transactions=[Transaction("timed", 1, last_updated=1)])
    raw.create_write_transaction([], "append", raw.schema(), commit_properties=timed)
    assert DeltaTable(table.place).transaction_version("timed") is None
    assert sink.entries(["a"]) == {"a": entry}


def test_marks_survive_checkpoints_and_log_cleanup(table: DeltaSink, spark: SparkSession) -> None:
    sink = opened(table, spark)
    entries = {shard: append(sink, frame(spark, 1, shard=shard), shard=shard) for shard in ("a", "b")}
    raw = DeltaTable(table.place)
    raw.alter.set_table_properties({"delta.logRetentionDuration": "interval 0 seconds"})
    for _ in range(12):
        move = Move("a", entries["a"], Position(entries["a"].version + 1), 0)
        sink.commit(None, [move])
        entries["a"] = move.entry
    fresh = DeltaTable(table.place)
    fresh.create_checkpoint()
    fresh.cleanup_metadata()
    assert len(list(Path(table.place, "_delta_log").glob("*.json"))) < 5
    assert table.open("test").entries(["a", "b"]) == entries


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda t: t.alter.add_constraint({"positive": "id > 0"}), "the constraint positive"),
        (lambda t: t.alter.add_feature(deltalake.TableFeatures.ColumnMapping, True), "columnMapping"),
        (lambda t: t.alter.add_feature(deltalake.TableFeatures.RowTracking, True), "rowTracking"),
    ],
    ids=["constraint", "column mapping", "row tracking"],
)
def test_trap_rules_are_not_evaluated_so_tables_with_rules_are_refused(
    table: DeltaSink, spark: SparkSession, change: Any, reason: str
) -> None:
    append(opened(table, spark), frame(spark, 1))
    change(DeltaTable(table.place))
    with pytest.raises(TableRefused, match=reason):
        opened(table, spark)


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({"delta.generationExpression": "1"}, "the generated column id"),
        ({"delta.invariants": '{"expression":{"expression":"id > 0"}}'}, "the invariant on column id"),
        ({"delta.identity.start": "1"}, "the identity column id"),
        ({"delta.columnMapping.id": "1"}, "column mapping on id"),
        (None, "the NOT NULL column id"),
    ],
)
def test_trap_rules_of_a_column(
    table: DeltaSink, spark: SparkSession, metadata: dict[str, str] | None, reason: str
) -> None:
    """Planted in the log, since delta-rs can't make such columns itself."""
    append(opened(table, spark), frame(spark, 1))
    log = Path(table.place, "_delta_log", f"{0:020d}.json")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "metaData" in line:
            schema = json.loads(line["metaData"]["schemaString"])
            schema["fields"][0]["metadata"] = metadata or {}
            schema["fields"][0]["nullable"] = metadata is not None
            line["metaData"]["schemaString"] = json.dumps(schema)
    log.write_text("\n".join(json.dumps(line) for line in lines))
    with pytest.raises(TableRefused, match=reason):
        opened(table, spark)


def test_a_rule_that_comes_while_we_run_is_noticed_at_the_next_commit(table: DeltaSink, spark: SparkSession) -> None:
    sink = opened(table, spark)
    entry = append(sink, frame(spark, 1))
    DeltaTable(table.place).alter.add_constraint({"positive": "id > 0"})
    with pytest.raises(TableRefused, match="positive"):
        append(sink, frame(spark, 2), entry)


def test_harmless_features_are_not_refused(table: DeltaSink, spark: SparkSession) -> None:
    sink = opened(table, spark)
    entry = append(sink, frame(spark, 1))
    DeltaTable(table.place).alter.set_table_properties({"delta.appendOnly": "true"})
    DeltaTable(table.place).alter.add_feature(deltalake.TableFeatures.ChangeDataFeed, True)
    append(opened(table, spark), frame(spark, 2), entry)
    assert rows_of(table).num_rows == 2


# ------------------------------------------------------------------------------------------------ columns


def test_drift_shows_both_schemas(table: DeltaSink, spark: SparkSession) -> None:
    append(opened(table, spark), frame(spark, 1))
    with pytest.raises(SchemaDrift) as caught:
        opened(table, spark, "id int, label string, _shard_id string, _sequence_number string")
    text = str(caught.value)
    assert "the table has id long, name string, _sub_sequence_number long, no label" in text
    assert "the batch has id integer, no name, no _sub_sequence_number, label string" in text
    assert "evolve" in text


def test_columns_may_come_and_go_when_asked_for(tmp_path: Path, spark: SparkSession) -> None:
    table = sinks.delta(str(tmp_path / "t"), evolve="additive")
    entry = append(
        opened(table, spark, "id bigint, a string"), spark.createDataFrame([(1, "x")], "id bigint, a string")
    )
    wider = spark.createDataFrame([(2, 7)], "id bigint, b int")
    append(opened(table, spark, "id bigint, b int"), wider, entry)
    found = sorted(rows_of(table).to_pylist(), key=lambda row: row["id"])
    assert found == [{"id": 1, "a": "x", "b": None}, {"id": 2, "a": None, "b": 7}]


@pytest.mark.parametrize("columns", ["id string, a string", "id bigint, A string"])
def test_a_changed_type_or_case_is_never_additive(tmp_path: Path, spark: SparkSession, columns: str) -> None:
    table = sinks.delta(str(tmp_path / "t"), evolve="additive")
    append(opened(table, spark, "id bigint, a string"), spark.createDataFrame([(1, "x")], "id bigint, a string"))
    with pytest.raises(SchemaDrift):
        opened(table, spark, columns)


def test_a_batch_whose_transform_made_other_columns_is_refused_before_its_job(
    table: DeltaSink, spark: SparkSession
) -> None:
    sink = opened(table, spark)
    with pytest.raises(SchemaDrift, match="no extra"):
        sink.stage(spark.createDataFrame([], COLUMNS + ", extra int"), "batch")
    assert not Path(table.place).exists()


@pytest.mark.parametrize(
    ("columns", "partition_by", "reason"),
    [
        ("id bigint, v void", [], "column v is void"),
        ("id bigint, v interval day to second", [], "column v is interval"),
        ("id bigint, v variant", [], "column v is variant"),
        ("id bigint, v array<struct<w: void>>", [], "column v is"),
        ("id bigint", ["nope"], "partition column nope is none of id"),
        ("id bigint, t timestamp", ["t"], "partition column t is timestamp"),
        ("id bigint, t double", ["t"], "partition column t is double"),
        ("id bigint", ["id"], "every column is a partition column"),
    ],
)
def test_columns_that_no_table_could_hold(
    tmp_path: Path, spark: SparkSession, columns: str, partition_by: list[str], reason: str
) -> None:
    sink = sinks.delta(str(tmp_path / "t"), partition_by=partition_by).open("test")
    with pytest.raises(SchemaDrift, match=reason):
        sink.check(spark.createDataFrame([], columns).schema)


def test_other_partition_columns_are_refused(tmp_path: Path, spark: SparkSession) -> None:
    append(opened(sinks.delta(str(tmp_path / "t"), partition_by=["name"]), spark), frame(spark, 1))
    with pytest.raises(TableRefused, match="partitioned by"):
        opened(sinks.delta(str(tmp_path / "t")), spark)


TYPES = (
    "b byte, s short, i int, l long, f float, d double, dec decimal(12,3), t string, bin binary, flag boolean, "
    "day date, at timestamp, local timestamp_ntz, st struct<x: int, y: array<string>>, m map<string, long>"
)


def test_every_type_comes_back_as_it_went_in(tmp_path: Path, spark: SparkSession) -> None:
    table = sinks.delta(str(tmp_path / "t"))
    at_time = datetime(2026, 3, 29, 1, 30, 0, 123456, tzinfo=UTC)
    row = (
        1, 2, 3, 2**40, 1.5, 2.5, Decimal("123456789.125"), "\u00e9\U0001f600", b"\x00\xff", True,
        date(2026, 2, 28), at_time, at_time.replace(tzinfo=None), (7, ["x", None]), {"k": 2**50},
    )  # fmt: skip
    append(opened(table, spark, TYPES), spark.createDataFrame([row, (None,) * 15], TYPES))
    found = rows_of(table).to_pylist()[0]
    assert found["dec"] == Decimal("123456789.125")
    assert (found["t"], found["bin"], found["day"]) == (row[7], row[8], row[10])
    assert found["at"] == at_time
    assert found["local"] == row[12]
    assert found["st"] == {"x": 7, "y": ["x", None]}
    assert dict(found["m"]) == {"k": 2**50}


# ------------------------------------------------------------------------------------------------ files and statistics

AWKWARD = [
    "plain",
    "with space",
    "a/b",
    "50%",
    "\u00e9",
    "a=b",
    "x+y",
    "a%20b",
    "c:d",
    "#q?z",
    "\u00e9\U0001f600",
    "a\\b",
    "''",
]


def test_partition_values_of_every_kind(tmp_path: Path, spark: SparkSession) -> None:
    table = sinks.delta(str(tmp_path / "t"), partition_by=["p", "day", "n", "flag"])
    columns = "id bigint, p string, day date, n int, flag boolean"
    rows: list[tuple[Any, ...]] = [
        (index, value, date(2026, 1, 1 + index), index - 3, index % 2 == 0) for index, value in enumerate(AWKWARD)
    ]
    rows += [(90, None, None, None, None), (91, "", date(1, 1, 1), -(2**31), False)]
    append(opened(table, spark, columns), spark.createDataFrame(rows, columns).repartition(1))
    found = sorted((tuple(row.values()) for row in rows_of(table).to_pylist()), key=lambda row: row[0])
    assert found == [*rows[:-1], (91, None, *rows[-1][2:])], "the empty string is null, as in every Delta table"


def test_statistics_let_a_reader_skip_files(table: DeltaSink, spark: SparkSession) -> None:
    sink = opened(table, spark)
    entry = Entry()
    for first in (0, 1000, 2000):
        entry = append(sink, frame(spark, *range(first, first + 10)).coalesce(1), entry)
    dataset = DeltaTable(table.place).to_pyarrow_dataset()
    wanted = list(dataset.get_fragments(pa.compute.field("id") > 1500))
    assert len(wanted) == 1
    assert len(list(dataset.get_fragments(pa.compute.field("_sequence_number") == str(at(1005).sequence)))) == 1


VALUES: dict[str, list[Any]] = {
    "t string": ["z" * 90 + "\U0010ffff", "\U0010ffff" * 90, "", "plain", "\ud7ff" * 70],
    "at timestamp": [datetime(2026, 1, 1, 0, 0, 0, 999_999, tzinfo=UTC), datetime(1, 1, 2, tzinfo=UTC)],
    "local timestamp_ntz": [datetime(2026, 1, 1, 0, 0, 0, 1), datetime(1969, 12, 31, 23, 59, 59, 999_999)],  # noqa: DTZ001
    "d double": [float("inf"), float("-inf"), -0.0, 1.5, float("nan"), 5e-324],
    "f float": [float("inf"), 0.1],
    "day date": [date(9999, 12, 31), date(1, 1, 1)],
    "n decimal(38,10)": [Decimal("1.0000000001"), Decimal("-1234567890123456789012345678.5"), Decimal(0)],
    "small decimal(2,2)": [Decimal("0.99"), Decimal("-0.01"), Decimal("0.00")],
    "tiny decimal(18,18)": [Decimal("0.000000000000000001"), Decimal("-0.000000000000000001")],
    "flag boolean": [True, False],
    "b binary": [b"", b"\xff" * 100],
    "i int": [-(2**31), 2**31 - 1],
    "l bigint": [2**63 - 1, -(2**63)],
    "st struct<x: int, y: string>": [(1, "a"), (None, "z" * 100)],
}


@pytest.mark.parametrize("column", VALUES)
def test_trap_statistics_never_hide_a_row_that_is_there(column: str, tmp_path: Path, spark: SparkSession) -> None:
    """Long strings are cut, times rounded, infinities and NaN have no bounds; beside them a column that has some."""
    name = column.split(maxsplit=1)[0]
    table = sinks.delta(str(tmp_path / "t"))
    rows = [(index, value) for index, value in enumerate([*VALUES[column], None])]
    append(
        opened(table, spark, f"id bigint, {column}"), spark.createDataFrame(rows, f"id bigint, {column}").coalesce(1)
    )
    everything = rows_of(table)
    dataset = DeltaTable(table.place).to_pyarrow_dataset()
    assert dataset.to_table(filter=pa.compute.field(name).is_null()).num_rows == 1
    for value in everything[name]:
        if value.is_valid and not pa.types.is_struct(value.type) and value.as_py() == value.as_py():
            assert dataset.to_table(filter=pa.compute.field(name) == value).num_rows >= 1, value
    assert DeltaTable(table.place).count() == len(rows)


def test_trap_columns_beyond_the_thirty_second_are_found_too(tmp_path: Path, spark: SparkSession) -> None:
    columns = ", ".join(f"c{number} int" for number in range(40))
    table = sinks.delta(str(tmp_path / "t"))
    append(opened(table, spark, columns), spark.createDataFrame([tuple(range(40))], columns))
    dataset = DeltaTable(table.place).to_pyarrow_dataset()
    assert dataset.to_table(filter=pa.compute.field("c39") == 39).num_rows == 1


def test_a_column_of_unique_values_gets_no_dictionary_the_second_time(table: DeltaSink, spark: SparkSession) -> None:
    sink = opened(table, spark)
    rows = spark.range(20_000).selectExpr(
        "id", "cast(id % 7 as string) name", "'a' _shard_id", "cast(id as string) _sequence_number",
        "0L _sub_sequence_number",
    ).coalesce(1)  # fmt: skip
    append(sink, rows)
    assert sink._plain == {
        "parquet.enable.dictionary#id": "false",
        "parquet.enable.dictionary#_sequence_number": "false",
    }


# ------------------------------------------------------------------------------------------------ failures


class Broken:
    """A frame whose job fails after it has written something."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def frame(self) -> DataFrame:
        return self._spark.sql(
            "select id, if(id = 99, raise_error('boom'), 'x') name, 'a' _shard_id, cast(id as string) "
            "_sequence_number, 0L _sub_sequence_number from range(0, 100, 1, 2)"
        )


def test_a_job_that_fails_leaves_nothing_behind(table: DeltaSink, spark: SparkSession) -> None:
    sink = opened(table, spark)
    with pytest.raises(Exception, match="boom"):
        sink.stage(Broken(spark).frame(), "batch")
    assert [path for path in Path(table.place).rglob("*") if path.is_file()] == []


def test_what_is_abandoned_is_gone(table: DeltaSink, spark: SparkSession) -> None:
    sink = opened(table, spark)
    append(sink, frame(spark, 1))
    before = sorted(Path(table.place).rglob("*"))
    sink.abandon(sink.stage(frame(spark, 2), "batch"))
    assert sorted(Path(table.place).rglob("*")) == before
    sink.abandon(Staged(0, 0, sink.stage(frame(spark, 3), "batch").token))


def test_a_staging_folder_is_one_that_vacuum_sees_and_readers_do_not(table: DeltaSink, spark: SparkSession) -> None:
    """What a crash leaves is an orphan: invisible, and collectable by a full vacuum."""
    sink = opened(table, spark)
    append(sink, frame(spark, 1))
    sink.stage(frame(spark, 2).coalesce(1), "batch")
    raw = DeltaTable(table.place)
    orphans = raw.vacuum(0, dry_run=True, enforce_retention_duration=False, full=True)
    assert len(orphans) == 1
    assert rows_of(table)["id"].to_pylist() == [1]


def test_a_commit_whose_answer_was_lost_is_unknown(
    table: DeltaSink, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = opened(table, spark)
    append(sink, frame(spark, 1))
    write = OpenDelta._write

    def write_and_fail(self: OpenDelta, *arguments: Any) -> None:
        write(self, *arguments)
        raise OSError("connection reset")

    monkeypatch.setattr(OpenDelta, "_write", write_and_fail)
    with pytest.raises(OutcomeUnknown, match="connection reset"):
        append(sink, frame(spark, 2), Entry(1, Position(1)))
    assert sink.entries(["a"]) == {"a": Entry(2, Position(2))}


@pytest.mark.parametrize("attempt", range(5))
def test_trap_two_creations_at_once_both_succeed(table: DeltaSink, spark: SparkSession, attempt: int) -> None:
    workers = [opened(table, spark) for _ in range(2)]
    staged = [worker.stage(frame(spark, number), "batch") for number, worker in enumerate(workers)]
    results: list[str] = []
    barrier = threading.Barrier(2)

    def create(number: int) -> None:
        barrier.wait()
        try:
            workers[number].commit(staged[number], [Move("a", Entry(), at(number), 1)])
            results.append("made")
        except (CommitConflict, OutcomeUnknown):
            results.append("conflict")

    threads = [threading.Thread(target=create, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["conflict", "made"]
    assert rows_of(table).num_rows == 1


def test_a_table_that_is_no_table_says_so(tmp_path: Path) -> None:
    log = tmp_path / "t" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020d}.json").write_text("nonsense")
    with pytest.raises(SinkError, match="can't be read"):
        sinks.delta(str(tmp_path / "t")).open("test").entries(["a"])


def test_a_ledger_of_another_stream_is_refused(table: DeltaSink, spark: SparkSession) -> None:
    first = table.open("test", "flights")
    first.check(frame(spark).schema)
    append(first, frame(spark, 1))
    for stream in ("flights", None):
        table.open("test", stream).check(frame(spark).schema)
    with pytest.raises(TableRefused, match="another stream than trains"):
        table.open("test", "trains").check(frame(spark).schema)
    assert ledger.read_stream(DeltaTable(table.place), "test") == ledger.fingerprint("flights")


def test_the_history_says_which_records_a_commit_holds(table: DeltaSink, spark: SparkSession) -> None:
    append(opened(table, spark), frame(spark, 1))
    last = DeltaTable(table.place).history(1)[0]
    assert last["kclSpark.pipeline"] == "test"
    assert json.loads(last["kclSpark.ranges"]) == {"a": ["None", "1:0", 1]}


# ------------------------------------------------------------------------------------------------ compaction


def test_compaction_leaves_rows_and_marks_and_the_next_commit_alone(table: DeltaSink, spark: SparkSession) -> None:
    sink = opened(table, spark)
    entry = Entry()
    for number in range(8):
        entry = append(sink, frame(spark, number).coalesce(1), entry)
    job = {"table": table.place, "options": {}, "target": 1 << 20, "keep_hours": None}
    account = compact(job)
    assert account["numFilesRemoved"] == 8
    assert sink.entries(["a"]) == {"a": entry}
    append(sink, frame(spark, 8), entry)
    assert sorted(rows_of(table)["id"].to_pylist()) == list(range(9))


def test_compaction_runs_beside_the_commits_in_a_process_of_its_own(tmp_path: Path, spark: SparkSession) -> None:
    table = sinks.delta(str(tmp_path / "t"), optimize=Compaction(every=3))
    sink = opened(table, spark)
    entry = Entry()
    for number in range(6):
        entry = append(sink, frame(spark, number).coalesce(1), entry)
    assert sink._compactor is not None
    running = sink._compactor._running
    assert running is not None
    assert running.wait(60) == 0
    append(sink, frame(spark, 6), entry)
    assert sorted(rows_of(table)["id"].to_pylist()) == list(range(7))
    assert "OPTIMIZE" in {commit["operation"] for commit in DeltaTable(table.place).history()}
    sink.close()


def test_a_compaction_that_cannot_be_started_is_no_failure_of_the_commit(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    table = sinks.delta(str(tmp_path / "t"), optimize=Compaction(every=1))
    entry = append(opened(table, spark), frame(spark, 1))
    assert entry.version == 1
    assert rows_of(table)["id"].to_pylist() == [1]


def test_a_new_column_is_no_hole_in_the_fence(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table is altered by a commit of its own, and whoever commits meanwhile must still be a conflict."""
    table = sinks.delta(str(tmp_path / "t"), evolve="additive")
    first = append(opened(table, spark), frame(spark, 1))
    older = opened(table, spark, COLUMNS + ", extra string")
    staged = older.stage(frame(spark, 2).selectExpr("*", "'x' as extra"), "batch")
    newer = opened(table, spark)
    add_columns = OpenDelta._add_columns

    def overtaken(self: OpenDelta, *given: Any) -> None:
        monkeypatch.setattr(OpenDelta, "_add_columns", add_columns)
        append(newer, frame(spark, 2), first)
        add_columns(self, *given)

    monkeypatch.setattr(OpenDelta, "_add_columns", overtaken)
    with pytest.raises(CommitConflict):
        older.commit(staged, [Move("a", first, Position(2), 1)])
    assert sorted(rows_of(table)["id"].to_pylist()) == [1, 2]


def test_a_commit_in_the_middle_of_a_compaction(table: DeltaSink, spark: SparkSession) -> None:
    """The compaction has read its snapshot; we commit; it commits; neither is a conflict."""
    sink = opened(table, spark)
    entry = Entry()
    for number in range(4):
        entry = append(sink, frame(spark, number).coalesce(1), entry)
    early = DeltaTable(table.place)
    entry = append(sink, frame(spark, 4), entry)
    early.optimize.compact()
    append(sink, frame(spark, 5), entry)
    assert sorted(rows_of(table)["id"].to_pylist()) == list(range(6))


# ------------------------------------------------------------------------------------------------ declaring


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"table": "abfss://x/y"}, "can't be written to"),
        ({"table": " "}, "no place for a table"),
        ({"table": "t", "evolve": "maybe"}, "evolve is"),
        ({"table": "t", "partition_by": ["a", "a"]}, "named twice"),
    ],
)
def test_a_wrong_declaration_is_refused_when_it_is_made(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        sinks.delta(**arguments)


def test_compaction_settings() -> None:
    assert sinks.delta("t").optimize is None
    assert sinks.delta("t", optimize=True).optimize == Compaction()
    with pytest.raises(UsageError):
        Compaction(every=0)


@pytest.mark.parametrize("uri", ["s3://bucket/key/", "s3a://bucket/key"])
def test_a_table_on_s3_has_a_name_in_each_library(uri: str) -> None:
    place = Place(uri)
    assert (place.delta, place.spark, place.root) == ("s3://bucket/key", "s3a://bucket/key", "bucket/key")


def test_a_table_of_another_writer_is_appended_to(tmp_path: Path, spark: SparkSession) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": pa.array([1], pa.int64()), "name": ["x"]}))
    table = sinks.delta(str(tmp_path / "t"))
    append(opened(table, spark, "id bigint, name string"), spark.createDataFrame([(2, "y")], "id bigint, name string"))
    assert sorted(rows_of(table)["id"].to_pylist()) == [1, 2]
