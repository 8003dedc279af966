"""Spark's own Delta reads our tables as delta-rs does: rows, partitions, file skipping, types, after compaction too.

Delta Lake's jars come by Maven (`bin/setup services`) and need a Spark of their own, in a process of its own: no part
of the product loads them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from kcl_spark import sinks
from kcl_spark.daemon.jars import cache
from kcl_spark.sinks.delta.compaction import compact
from tests.sinks.test_delta import AWKWARD, append, opened

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

READER = """
import json, sys
from pyspark.sql import SparkSession

jars, questions = sys.argv[1], json.loads(sys.argv[2])
session = (
    SparkSession.builder.master("local[1]")
    .config("spark.jars", jars)
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.ui.enabled", "false").config("spark.sql.session.timeZone", "UTC")
    .getOrCreate()
)
answers = []
for path, condition in questions:
    frame = session.read.format("delta").load(path)
    rows = frame.where(condition).toJSON().collect() if condition else frame.toJSON().collect()
    answers.append([json.loads(row) for row in rows])
print("ANSWERS" + json.dumps(answers))
"""


def jars() -> str:
    found = [path for folder in cache(os.environ).glob("delta-*") for path in sorted(folder.glob("*.jar"))]
    # pyspark brings Hadoop, Jackson and the rest of them.
    ours = [path for path in found if path.name.startswith(("delta-", "unitycatalog-"))]
    if not ours:
        pytest.skip("Delta's jars are not on this machine: run bin/setup services")
    return ",".join(map(str, ours))


def ask(*questions: tuple[Path, str]) -> list[list[dict[str, Any]]]:
    """Rows of each table where a condition holds, as Spark's Delta sees them."""
    asked = json.dumps([(str(path), condition) for path, condition in questions])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", READER, jars(), asked], capture_output=True, text=True, check=False
    )
    found = [line for line in done.stdout.splitlines() if line.startswith("ANSWERS")]
    assert found, done.stderr[-3000:]
    answers: list[list[dict[str, Any]]] = json.loads(found[0].removeprefix("ANSWERS"))
    return answers


def test_spark_reads_what_delta_rs_reads(tmp_path: Path, spark: SparkSession) -> None:
    plain, parted = tmp_path / "plain", tmp_path / "parted"
    sink = opened(sinks.delta(str(plain)), spark, "id bigint, name string")
    entry = append(sink, spark.createDataFrame([(1, "a"), (2, None)], "id bigint, name string"))
    append(sink, spark.createDataFrame([(3, "\u00e9\U0001f600")], "id bigint, name string"), entry)

    columns = "id bigint, p string, day date"
    rows = [(index, value, date(2026, 1, 1 + index)) for index, value in enumerate([*AWKWARD, None])]
    declared = sinks.delta(str(parted), partition_by=["p", "day"])
    append(opened(declared, spark, columns), spark.createDataFrame(rows, columns).repartition(1))

    everything, skipped, values, one, none = ask(
        (plain, ""), (plain, "id > 2"), (parted, ""), (parted, "p = 'a/b'"), (parted, "p is null")
    )
    assert sorted(row["id"] for row in everything) == [1, 2, 3]
    assert skipped == [{"id": 3, "name": "\u00e9\U0001f600"}]
    assert {row["id"]: row.get("p") for row in values} == {row[0]: row[1] for row in rows}
    assert {row["id"]: row["day"] for row in values} == {row[0]: row[2].isoformat() for row in rows}
    assert [row["id"] for row in one] == [AWKWARD.index("a/b")]
    assert [row["id"] for row in none] == [len(AWKWARD)]


def test_spark_reads_a_table_after_compaction(tmp_path: Path, spark: SparkSession) -> None:
    path = tmp_path / "t"
    sink = opened(sinks.delta(str(path)), spark, "id bigint, name string")
    entry = append(sink, spark.createDataFrame([(0, "n0")], "id bigint, name string"))
    for number in range(1, 12):
        entry = append(sink, spark.createDataFrame([(number, f"n{number}")], "id bigint, name string"), entry)
    files = len(DeltaTable(path).file_uris())
    compact({"table": str(path), "options": {}, "target": 1 << 20, "keep_hours": None})
    assert len(DeltaTable(path).file_uris()) < files
    (rows,) = ask((path, ""))
    assert sorted(row["id"] for row in rows) == list(range(12))
