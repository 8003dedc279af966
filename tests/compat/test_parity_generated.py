"""Any legal script, any records, any answers: amazon_kclpy and kcl_spark.compat say the same and show the same.

Both run inside the test, on text files, which is how `KCLProcess` is tested by its users too.
"""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcl_spark.compat import kcl as ours
from kcl_spark.compat.v2 import processor as ours2
from kcl_spark.compat.v3 import processor as ours3
from kcl_spark.protocol import Action, Initialize, ProcessRecords, Record
from tests.compat.apps import obedient
from tests.compat.daemon import LEASE_LOST, SHARD_ENDED, SHUTDOWN_REQUESTED, Answer, Daemon, Wires

theirs = pytest.importorskip("amazon_kclpy.kcl", reason="amazon_kclpy is not installed: pip install kcl-spark[kclpy]")
theirs2 = pytest.importorskip("amazon_kclpy.v2.processor")
theirs3 = pytest.importorskip("amazon_kclpy.v3.processor")

CONDUCT: dict[int, type] = {1: obedient.Version1, 2: obedient.Version2, 3: obedient.Version3}
THEIR_BASES = {1: theirs.RecordProcessorBase, 2: theirs2.RecordProcessorBase, 3: theirs3.RecordProcessorBase}
OUR_BASES = {1: ours.RecordProcessorBase, 2: ours2.RecordProcessorBase, 3: ours3.RecordProcessorBase}

ORDERS = [b"!checkpoint", b"!checkpoint here", b"!checkpoint number", b"!persist"]
LAST_MILLISECOND = 4_102_444_800_000

keys = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
numbers = st.integers(1, 10**56 - 1).map(str)


def datas(orders: list[bytes]) -> st.SearchStrategy[bytes]:
    return st.one_of(st.sampled_from(orders), st.binary(max_size=40))


def records(orders: list[bytes]) -> st.SearchStrategy[Record]:
    return st.builds(
        Record,
        data=datas(orders),
        partition_key=keys,
        sequence_number=numbers,
        sub_sequence_number=st.integers(0, 1000),
        approximate_arrival_timestamp=st.integers(0, LAST_MILLISECOND),
    )


begins = st.one_of(
    st.builds(Initialize, keys, st.sampled_from(["TRIM_HORIZON", "LATEST", "AT_TIMESTAMP"]), st.just(0)),
    st.builds(Initialize, keys, numbers, st.integers(0, 1000)),
    st.builds(Initialize, keys, st.none(), st.none()),
)


def scripts(orders: list[bytes]) -> st.SearchStrategy[list[Action]]:
    batches = st.builds(
        ProcessRecords, st.lists(records(orders), max_size=5), st.one_of(st.none(), st.integers(0, 10**9))
    )
    middles = st.lists(st.one_of(batches, batches, st.just(SHUTDOWN_REQUESTED)), max_size=5)
    ends: st.SearchStrategy[list[Action]] = st.sampled_from([[], [LEASE_LOST], [SHARD_ENDED]])
    return st.builds(lambda begin, middle, end: [begin, *middle, *end], begins, middles, ends)


THROTTLED = "ThrottlingException"
ERRORS = [THROTTLED, "KinesisClientLibDependencyException", "InvalidStateException", "ShutdownException", ""]


def live(
    kcl: Any, base: type, version: int, at_end: str, script: list[Action], answers: list[Answer]
) -> tuple[Any, Any]:
    processor = type("RecordProcessor", (CONDUCT[version], base), {})(at_end)
    daemon = Daemon(script, answers)
    wires = Wires(daemon)
    kcl.KCLProcess(processor, wires.file, wires.file, io.StringIO()).run()
    assert daemon.connection.ignored_lines == 0
    return daemon.heard, processor.seen


def compare(version: int, at_end: str, script: list[Action], answers: list[Answer]) -> None:
    parts = version, at_end, script, answers
    assert live(ours, OUR_BASES[version], *parts) == live(theirs, THEIR_BASES[version], *parts)


versions = st.sampled_from([1, 2, 3])


@settings(max_examples=300, deadline=None)
@given(versions, scripts(ORDERS), st.lists(st.sampled_from([None, None, THROTTLED]), max_size=10))
def test_a_processor_that_handles_its_errors(version: int, script: list[Action], answers: list[Answer]) -> None:
    compare(version, "persist", script, answers)


@settings(max_examples=300, deadline=None)
@given(
    versions,
    st.sampled_from(["persist", "once", "number", "forget", "raise"]),
    scripts([*ORDERS, b"!raise"]),
    st.lists(st.one_of(st.none(), st.sampled_from(ERRORS)), max_size=10),
)
def test_any_processor_with_on_error_as_it_was(
    version: int, at_end: str, script: list[Action], answers: list[Answer]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KCL_SPARK_COMPAT_ON_ERROR", "report_success")
        compare(version, at_end, script, answers)
