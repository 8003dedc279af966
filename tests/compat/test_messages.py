"""What processors are given has kclpy's names, values and constructors, and is made when it is looked at."""

from __future__ import annotations

import inspect
from base64 import b64encode
from datetime import UTC, datetime
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

from kcl_spark.compat import messages
from kcl_spark.compat.aliases import MODULES
from kcl_spark.compat.messages import CheckpointInput, InitializeInput, ProcessRecordsInput, Record, ShutdownInput
from kcl_spark.protocol import ProcessRecords
from tests.compat.daemon import BEGIN, LEASE_LOST, Daemon, Raw, batch, line_of, record, run_inside
from tests.compat.processors import processor

needs_kclpy = pytest.mark.skipif(find_spec("amazon_kclpy") is None, reason="amazon_kclpy is not installed")


def public_classes(module: str) -> dict[str, type]:
    found = vars(import_module(module)).items()
    package = module.partition(".")[0]
    return {
        name: each
        for name, each in found
        if inspect.isclass(each) and each.__module__.startswith(package) and not name.startswith("_")
    }


@needs_kclpy
@pytest.mark.parametrize("name", MODULES)
def test_every_public_class_and_attribute_of_amazon_kclpy_is_here(name: str) -> None:
    ours = public_classes(f"kcl_spark.compat.{name}")
    for class_name, theirs in public_classes(f"amazon_kclpy.{name}").items():
        if class_name == "MessageDispatcher":  # abstract there: nothing of it is ever called
            continue
        for attribute in [each for each in dir(theirs) if not each.startswith("_")]:
            mine = getattr(ours[class_name], attribute)
            original = getattr(theirs, attribute)
            assert isinstance(mine, property) == isinstance(original, property), attribute
            if inspect.isfunction(original):
                assert [*inspect.signature(mine).parameters] == [*inspect.signature(original).parameters], attribute
            elif not isinstance(original, property):
                assert mine == original, attribute


FIELDS: dict[str, Any] = {
    "action": "record",
    "data": b64encode(b"\xffdata").decode(),
    "partitionKey": "k",
    "sequenceNumber": "12",
    "subSequenceNumber": 3,
    "approximateArrivalTimestamp": 1_700_000_000_123,
    "explicitHashKey": "7",
}


def properties(each: object) -> dict[str, Any]:
    names = [name for name, found in inspect.getmembers(type(each)) if isinstance(found, property)]
    return {name: getattr(each, name) for name in names}


@needs_kclpy
@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("Record", FIELDS),
        ("Record", FIELDS | {"approximateArrivalTimestamp": "1700000000123", "subSequenceNumber": None}),
        ("InitializeInput", {"action": "initialize", "shardId": "s", "sequenceNumber": "1", "subSequenceNumber": 0}),
        ("ProcessRecordsInput", {"action": "processRecords", "records": [1, 2], "millisBehindLatest": 5}),
        ("ShardEndedInput", {"action": "shardEnded"}),
        ("LeaseLostInput", {"action": "leaseLost"}),
        ("ShutdownRequestedInput", {"action": "shutdownRequested"}),
        ("CheckpointInput", {"action": "checkpoint", "sequenceNumber": "1", "subSequenceNumber": 2, "error": "E"}),
        ("CheckpointInput", {"action": "checkpoint", "sequenceNumber": None, "subSequenceNumber": None}),
    ],
)
def test_made_by_hand_they_are_what_amazon_kclpy_makes(name: str, fields: dict[str, Any]) -> None:
    """A processor's own tests make them so."""
    theirs = properties(getattr(import_module("amazon_kclpy.messages"), name)(fields))
    ours = properties(getattr(messages, name)(fields))
    assert {attribute: ours[attribute] for attribute in theirs} == theirs


def test_a_record_made_by_hand_keeps_what_it_was_made_of() -> None:
    made = Record(FIELDS)
    assert made["explicitHashKey"] == made.get("explicitHashKey") == "7"
    assert (made.binary_data, made["data"]) == (b"\xffdata", FIELDS["data"])


def test_a_record_that_arrived_answers_to_the_names_on_the_wire() -> None:
    arrived = Record(record(b"\xffdata", 5, 3))
    assert [arrived[name] for name in ("data", "partitionKey", "subSequenceNumber", "action")] == [
        FIELDS["data"],
        "key",
        3,
        "record",
    ]
    with pytest.raises(KeyError, match="explicitHashKey"):
        arrived["explicitHashKey"]
    with pytest.raises(KeyError):
        arrived.get("partition_key")


def test_the_arrival_time_is_there_in_two_ways() -> None:
    made = Record(record(b"", millis=1_700_000_000_123))
    assert made.arrival_time_utc == datetime(2023, 11, 14, 22, 13, 20, 123000, UTC)
    assert made.approximate_arrival_timestamp == datetime.fromtimestamp(1_700_000_000.123)  # noqa: DTZ006
    assert made.approximate_arrival_timestamp.tzinfo is None


def test_records_are_wrapped_when_they_are_first_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    def make(*given: Any) -> Any:
        made.append(given)
        return given

    monkeypatch.setattr(messages, "Record", make)
    given = ProcessRecordsInput.of(batch(b"a", b"b"))
    assert (given.millis_behind_latest, given.action, made) == (17, "processRecords", [])
    assert given.records is given.records
    assert len(made) == 2


def test_dates_are_made_when_they_are_looked_at() -> None:
    """amazon_kclpy makes them all in advance, and dies of one that is out of range."""
    made = Record(record(b"a", millis=10**20))
    assert (made.binary_data, made.timestamp_millis) == (b"a", 10**20)
    with pytest.raises((ValueError, OverflowError, OSError)):
        _ = made.approximate_arrival_timestamp


def test_records_are_a_list_of_the_processors_own() -> None:
    records = ProcessRecordsInput.of(batch(b"a", b"b", b"c")).records
    records.sort(key=lambda each: each.sequence_number, reverse=True)
    records[0].mark = 1  # type: ignore[attr-defined]
    assert [each.binary_data for each in records[:2] + records[2:]] == [b"c", b"b", b"a"]


def test_data_that_is_no_base64_costs_only_its_record() -> None:
    damaged = Raw(batch(b"a", b"b"), line_of(batch(b"a", b"b")).replace(b'"YQ=="', b'"Y"'))
    seen: list[Any] = []

    def process_records(self: Any, given: Any) -> None:
        seen.extend(each.data for each in given.records)
        seen.append(given.records[1].binary_data)
        with pytest.raises(ValueError, match="base64"):
            _ = given.records[0].binary_data

    inside = run_inside(processor(process_records=process_records), Daemon([BEGIN, damaged, LEASE_LOST]))
    assert (seen, inside.code) == (["Y", "Yg==", b"b"], None)


def test_messages_know_their_method() -> None:
    called: list[Any] = []

    class Spy:
        def __getattr__(self, name: str) -> Any:
            return lambda given: called.append((name, given))

    given = InitializeInput({"shardId": "s"})
    given.dispatch(None, Spy())  # type: ignore[arg-type]
    assert called == [("initialize", given)]
    assert given.sequence_number is None


def test_the_old_end_has_a_reason_and_a_checkpointer() -> None:
    taken: list[Any] = []

    class Checkpointer:
        def checkpoint(self, *given: Any) -> None:
            taken.append(given)

    terminate = ShutdownInput.terminate(Checkpointer())
    terminate.checkpointer.checkpoint()
    assert (terminate.action, terminate.reason, taken) == ("shutdown", "TERMINATE", [()])


def test_an_answer_may_have_no_error() -> None:
    assert CheckpointInput({"sequenceNumber": None, "subSequenceNumber": None}).error is None


def test_an_empty_batch_has_an_empty_list() -> None:
    assert ProcessRecordsInput.of(ProcessRecords([], None)).records == []
