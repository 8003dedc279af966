"""JSON: what becomes a row, what becomes a dead letter and why; each through real Spark."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcl_spark import formats
from kcl_spark.errors import UsageError
from kcl_spark.formats.json import JsonFormat

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = (
    "id bigint NOT NULL, name string, n int, d double, dec decimal(5,2), flag boolean, day date, at timestamp, "
    "inner struct<x: int NOT NULL, y: string>, list array<int>, rows array<struct<k: string NOT NULL>>, "
    "m map<string, int>"
)


def decode(spark: SparkSession, source: JsonFormat, *payloads: bytes) -> list[tuple[dict[str, Any] | None, str | None]]:
    """Value or reason of each payload, as the worker would come to it: prepared in Arrow, decoded in Spark."""
    prepared = source.prepare(pa.array(payloads, pa.binary()))
    rows = [(text,) for text in prepared.payloads.to_pylist()]
    found = iter(source.decode(spark.createDataFrame(rows, "data string")).select("_value", "_error").collect())
    outcomes: list[tuple[dict[str, Any] | None, str | None]] = []
    for index in range(len(payloads)):
        if index in prepared.refused:
            outcomes.append((None, prepared.refused[index]))
            continue
        row = next(found)
        outcomes.append((None, row["_error"]) if row["_error"] else (row["_value"].asDict(recursive=True), None))
    return outcomes


GOOD: list[tuple[bytes, dict[str, Any]]] = [
    (b'{"id":1}', {"id": 1}),
    (b'  {"id":1}  ', {"id": 1}),
    (b'{"id":1,"name":"\xc3\xa9\xf0\x9f\x98\x80"}', {"name": "\u00e9\U0001f600"}),
    (b'{"id":1,"name":"\\u00e9"}', {"name": "\u00e9"}),
    (b'{"id":1,"unknown":{"deep":[1]}}', {"id": 1}),
    (b'{"id":1,"n":null}', {"n": None}),
    (b'{"id":9223372036854775807,"n":-2147483648}', {"id": 2**63 - 1, "n": -(2**31)}),
    (b'{"id":1,"d":5}', {"d": 5.0}),
    (b'{"id":1,"dec":1.5}', {"dec": Decimal("1.50")}),
    (b'{"id":1,"flag":true}', {"flag": True}),
    (b'{"id":1,"day":"2026-02-28"}', {"day": date(2026, 2, 28)}),
    (b'{"id":1,"at":"2026-11-21T10:00:00.123Z"}', {"at": datetime(2026, 11, 21, 10, 0, 0, 123000, tzinfo=UTC)}),
    (b'{"id":1,"inner":{"x":1}}', {"inner": {"x": 1, "y": None}}),
    (b'{"id":1,"inner":null}', {"inner": None}),
    (b'{"id":1,"list":[1,null,2]}', {"list": [1, None, 2]}),
    (b'{"id":1,"rows":[{"k":"a"},{"k":"b"}]}', {"rows": [{"k": "a"}, {"k": "b"}]}),
    (b'{"id":1,"m":{"a":1,"b":null}}', {"m": {"a": 1, "b": None}}),
    (b'{"id":1,"name":7}', {"name": "7"}),
    (b'{"id":1,"name":{"a":[1]}}', {"name": '{"a":[1]}'}),
    (b'{"id":1,"id":2}', {"id": 2}),
]


@pytest.mark.parametrize(("payload", "expected"), GOOD, ids=[payload.decode() for payload, _ in GOOD])
def test_what_fits_becomes_a_row(spark: SparkSession, payload: bytes, expected: dict[str, Any]) -> None:
    value, reason = decode(spark, formats.json(SCHEMA), payload)[0]
    assert reason is None
    assert value is not None
    local = {k: v.astimezone(UTC) if isinstance(v, datetime) else v for k, v in value.items()}
    assert {key: local[key] for key in expected} == expected


NOT_JSON = "the payload is no JSON object of the schema"
BAD = [
    (b"", "the payload is empty"),
    (b'{"id":1,"name":"\xff"}', "the payload is not UTF-8"),
    (b'{"id":1,"name":"\xc3"}', "the payload is not UTF-8"),
    (b"\x00\x01\x02", NOT_JSON),
    (b" ", NOT_JSON),
    (b"null", NOT_JSON),
    (b"7", NOT_JSON),
    (b'"text"', NOT_JSON),
    (b"[]", NOT_JSON),
    (b'[{"id":1}]', NOT_JSON),
    (b"{", NOT_JSON),
    (b'{"id":1', NOT_JSON),
    (b'{"id":1}}', NOT_JSON),
    (b'{"id":1}}{', NOT_JSON),
    (b'{"id":1},"end":1}', NOT_JSON),
    (b'{"id":1}{"id":2}', NOT_JSON),
    (b'{"id":1}\n{"id":2}', NOT_JSON),
    (b'{"id":1},{"id":2}', NOT_JSON),
    (b'{"id":1} trailing', NOT_JSON),
    (b"{'id':1}", NOT_JSON),
    (b"{id:1}", NOT_JSON),
    (b'{"id":1,}', NOT_JSON),
    (b'{"id":01}', NOT_JSON),
    (b'{"id":1,/*c*/"n":2}', NOT_JSON),
    (b'\xef\xbb\xbf{"id":1}', NOT_JSON),
    (b'{"id":"1"}', NOT_JSON),
    (b'{"id":1.5}', NOT_JSON),
    (b'{"id":true}', NOT_JSON),
    (b'{"id":9223372036854775808}', NOT_JSON),
    (b'{"id":1,"n":2147483648}', NOT_JSON),
    (b'{"id":1,"d":"abc"}', NOT_JSON),
    (b'{"id":1,"dec":12345.678}', NOT_JSON),
    (b'{"id":1,"flag":"yes"}', NOT_JSON),
    (b'{"id":1,"day":"2026-13-01"}', NOT_JSON),
    (b'{"id":1,"at":"whenever"}', NOT_JSON),
    (b'{"id":1,"inner":[1]}', NOT_JSON),
    (b'{"id":1,"inner":{"x":"1"}}', NOT_JSON),
    (b'{"id":1,"list":[1,"x"]}', NOT_JSON),
    (b'{"id":1,"list":5}', NOT_JSON),
    (b'{"id":1,"rows":[{"k":"a"},7]}', NOT_JSON),
    (b'{"id":1,"m":{"a":"x"}}', NOT_JSON),
    (b"{}", "the required field id is missing"),
    (b'{"id":null}', "the required field id is missing"),
    (b'{"ID":1}', "the required field id is missing"),
    (b'{"id":1,"inner":{}}', "the required field inner.x is missing"),
    (b'{"id":1,"inner":{"y":"only"}}', "the required field inner.x is missing"),
    (b'{"id":1,"rows":[{"k":"a"},{}]}', "the required field rows[] is missing"),
]


def test_what_does_not_fit_becomes_a_dead_letter_with_its_reason(spark: SparkSession) -> None:
    """All at once, with good ones in between: a bad record costs only itself."""
    payloads = [payload for bad, _ in BAD for payload in (bad, b'{"id":1}')]
    outcomes = decode(spark, formats.json(SCHEMA), *payloads)
    assert [reason for _, reason in outcomes[::2]] == [reason for _, reason in BAD]
    assert all(reason is None for _, reason in outcomes[1::2])


def test_elements_and_values_that_may_not_be_null(spark: SparkSession) -> None:
    from pyspark.sql import types as t

    source = formats.json(
        t.StructType(
            [
                t.StructField("list", t.ArrayType(t.IntegerType(), containsNull=False)),
                t.StructField("m", t.MapType(t.StringType(), t.IntegerType(), valueContainsNull=False)),
                t.StructField("deep", t.ArrayType(t.ArrayType(t.IntegerType(), containsNull=False))),
            ]
        )
    )
    found = decode(
        spark,
        source,
        b'{"list":[1,null]}',
        b'{"m":{"a":null}}',
        b'{"deep":[[1],[null]]}',
        b'{"list":[],"m":{},"deep":[null,[]]}',
        b"{}",
    )
    assert [reason for _, reason in found] == [
        "the required field list[] is missing",
        "the required field m{} is missing",
        "the required field deep[] is missing",
        None,
        None,
    ]


EXPLAINED = [
    (b"{bad", "Expecting property name"),
    (b'{"id":1}{"id":2}', "Extra data"),
    (b"[1]", "a JSON list instead of an object"),
    (b'{"id":"1"}', 'field id: "1" is no bigint'),
    (b'{"id":true}', "field id: true is no bigint"),
    (b'{"id":1,"inner":{"x":"q"}}', 'field inner.x: "q" is no int'),
    (b'{"id":1,"list":[1,"x"]}', 'field list[1]: "x" is no int'),
    (b'{"id":1,"flag":"yes"}', 'field flag: "yes" is no boolean'),
    (b"\xff", "UnicodeDecodeError"),
    (b"[" * 100_000, "RecursionError"),
]


@pytest.mark.parametrize(("payload", "told"), EXPLAINED, ids=range(len(EXPLAINED)))
def test_a_reason_says_where(spark: SparkSession, payload: bytes, told: str) -> None:
    explained = formats.json(SCHEMA).explain(payload)
    assert explained is not None
    assert told in explained


def test_nothing_to_explain(spark: SparkSession) -> None:
    assert formats.json(SCHEMA).explain(b'{"id":1,"n":2147483648}') is None


@given(st.lists(st.binary(max_size=20) | st.sampled_from([b'{"id":1}', b""]), max_size=8))
def test_preparing_loses_and_changes_nothing(payloads: list[bytes]) -> None:
    source = formats.json("id bigint")
    prepared = source.prepare(pa.array(payloads, pa.binary()))
    kept = iter(prepared.payloads.to_pylist())
    for index, payload in enumerate(payloads):
        if index not in prepared.refused:
            assert source.original(next(kept).encode()) == payload
    assert next(kept, None) is None


@pytest.mark.parametrize("schema", ["id bignum", "", "id", "a int, a", "bigint"])
def test_a_schema_that_is_none(spark: SparkSession, schema: str) -> None:
    with pytest.raises(UsageError, match=r"JSON schema .*Write a schema such as"):
        formats.json(schema).struct()


def test_samples_decode(spark: SparkSession) -> None:
    source = formats.json(SCHEMA + ", b binary, f float, s smallint, local timestamp_ntz")
    outcomes = decode(spark, source, *(source.sample(number) for number in range(40)))
    assert [reason for _, reason in outcomes if reason] == []


def test_raw_keeps_every_byte(spark: SparkSession) -> None:
    source = formats.raw()
    payloads = [b"", b"\x00\xff", b"text"]
    prepared = source.prepare(pa.array(payloads, pa.binary()))
    frame = spark.createDataFrame([(bytearray(p),) for p in prepared.payloads.to_pylist()], "data binary")
    rows = source.decode(frame).select("_value.data", "_error").collect()
    assert [(bytes(row["data"]), row["_error"]) for row in rows] == [(payload, None) for payload in payloads]
    assert source.original(b"x") == b"x"
    assert source.explain(b"x") is None
