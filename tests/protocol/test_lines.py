"""Each message, written and read; then what the daemon must never see and the child must survive."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcl_spark.errors import RemoteProtocolError
from kcl_spark.protocol import (
    Checkpoint,
    CheckpointAnswer,
    Initialize,
    LeaseLost,
    ProcessRecords,
    Record,
    Role,
    Status,
)
from kcl_spark.protocol.lines import decode, encode
from tests.protocol.cases import CASES, Case

ids = [f"{case.event.kind}-{index}" for index, case in enumerate(CASES)]


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_each_event_is_written_as_its_line_between_two_line_feeds(case: Case) -> None:
    assert encode(case.event) == b"\n" + case.wire + b"\n"


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_each_line_is_read_as_its_event(case: Case) -> None:
    assert decode(case.wire, case.sender) == case.event


@pytest.mark.parametrize("case", [c for c in CASES if c.sender is Role.CHILD], ids=lambda case: case.event.kind)
def test_replies_have_exactly_the_keys_that_the_daemon_knows(case: Case) -> None:
    """One key more and the daemon skips the line and waits for ever (protocol reference 2.3)."""
    keys = set(json.loads(encode(case.event)))
    assert keys in ({"action", "responseFor"}, {"action", "sequenceNumber", "subSequenceNumber"})


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.sender is Role.DAEMON], ids=lambda case: case.event.kind
)
def test_unknown_fields_of_the_daemon_are_ignored_and_the_action_may_stand_anywhere(case: Case) -> None:
    message = json.loads(case.wire)
    grown = {"zz": {"deep": [1]}, **{key: message[key] for key in reversed(message)}, "a": None}
    assert decode(json.dumps(grown).encode(), case.sender) == case.event


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.sender is Role.CHILD], ids=lambda case: case.event.kind
)
def test_an_unknown_field_of_the_child_makes_its_line_no_message_as_it_does_for_the_daemon(case: Case) -> None:
    with pytest.raises(RemoteProtocolError, match="unknown field"):
        decode(case.wire[:-1] + b',"pid":1}', Role.CHILD)


def test_a_record_may_call_itself_a_record() -> None:
    record = b'{"data":"","partitionKey":null,"sequenceNumber":"1","action":"record"}'
    line = b'{"action":"processRecords","records":[' + record + b"]}"
    assert decode(line, Role.DAEMON) == ProcessRecords([Record(b"", None, "1")], None)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"action":"rebalance"}', "rebalance"),
        (b'{"action":"Initialize","shardId":"x"}', "Initialize"),
        (b'{"action":"initialize"}', "shardId"),
        (b'{"action":"initialize","shardId":7}', "shardId"),
        (b'{"action":"processRecords"}', "records"),
        (b'{"action":"processRecords","records":[{"data":"","partitionKey":"k"}]}', "sequenceNumber"),
        (b'{"action":"processRecords","records":null}', "records"),
        (b'{"shardId":"x"}', "action"),
        (b"{}", "action"),
        (b"null", "null"),
        (b"[]", "array"),
        (b"hello", "malformed"),
        (b'{"action":"leaseLost"} trailing', "trailing"),
        (b'{"action":"initialize","shardId":"\xff"}', "UTF-8"),
    ],
)
def test_a_line_that_is_no_message_of_the_daemon_says_why(line: bytes, reason: str) -> None:
    with pytest.raises(RemoteProtocolError, match=reason):
        decode(line, Role.DAEMON)


def test_an_error_about_a_line_shows_no_more_than_its_beginning() -> None:
    secret = b"x" * 500 + b"SECRET"
    with pytest.raises(RemoteProtocolError) as caught:
        decode(secret, Role.DAEMON)
    assert "SECRET" not in str(caught.value)


def test_broken_base64_costs_only_its_own_record() -> None:
    line = (
        b'{"action":"processRecords","millisBehindLatest":5,"records":['
        b'{"data":"YQ==","partitionKey":"a","sequenceNumber":"1","subSequenceNumber":0},'
        b'{"data":"not base64!","partitionKey":"b","sequenceNumber":"2","subSequenceNumber":1},'
        b'{"data":null,"partitionKey":"c","sequenceNumber":"3","approximateArrivalTimestamp":9}]}'
    )
    event = decode(line, Role.DAEMON)
    assert isinstance(event, ProcessRecords)
    assert event.undecodable == {1: "not base64!"}
    assert [record.data for record in event.records] == [b"a", None, b""]
    assert [record.sequence_number for record in event.records] == ["1", "2", "3"]
    assert event.millis_behind_latest == 5


def test_broken_json_behind_broken_base64_is_still_no_message() -> None:
    line = b'{"action":"processRecords","records":[{"data":"!","partitionKey":"a","sequenceNumber":"1"}'
    with pytest.raises(RemoteProtocolError):
        decode(line, Role.DAEMON)


@pytest.mark.parametrize("line", [b'{"action":"status"}', b'{"action":"log","text":"x"}', b"print", b'{"action":7}'])
def test_a_line_that_is_no_message_of_the_child(line: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        decode(line, Role.CHILD)


text = st.text(st.characters(codec="utf-8"), max_size=20)
records = st.builds(
    Record,
    data=st.binary(max_size=50),
    partition_key=st.none() | text,
    sequence_number=st.integers(0, 10**128).map(str),
    sub_sequence_number=st.integers(0, 2**40),
    approximate_arrival_timestamp=st.none() | st.integers(0, 2**45),
)
number = st.none() | st.integers(0, 10**128).map(str)
from_daemon = st.one_of(
    st.builds(Initialize, text, number, st.none() | st.integers(0, 9)),
    st.builds(ProcessRecords, st.lists(records, max_size=4), st.none() | st.integers(0, 2**50)),
    st.builds(CheckpointAnswer, number, st.none() | st.integers(0, 9), st.none() | text),
    st.just(LeaseLost()),
)
from_child = st.one_of(st.builds(Checkpoint, number, st.none() | st.integers(0, 9)), st.builds(Status, text))


@given(from_daemon)
def test_whatever_the_daemon_may_say_comes_back_as_it_was(event: Initialize | ProcessRecords) -> None:
    line = encode(event).strip(b"\n")
    assert b"\n" not in line
    assert decode(line, Role.DAEMON) == event


@given(from_child)
def test_whatever_the_child_may_say_comes_back_as_it_was(event: Checkpoint | Status) -> None:
    assert decode(encode(event).strip(b"\n"), Role.CHILD) == event


@given(st.binary(max_size=200) | st.text(max_size=100).map(lambda line: line.encode("utf-8", "surrogatepass")))
def test_no_bytes_at_all_raise_anything_but_a_protocol_error(line: bytes) -> None:
    for sender in Role:
        with contextlib.suppress(RemoteProtocolError):
            decode(line, sender)


@given(st.data())
def test_a_message_with_any_one_byte_changed_is_read_or_refused(data: st.DataObject) -> None:
    case = data.draw(st.sampled_from(CASES))
    place = data.draw(st.integers(0, len(case.wire) - 1))
    broken = bytearray(case.wire)
    broken[place] = data.draw(st.integers(0, 255))
    with contextlib.suppress(RemoteProtocolError):
        decode(broken, case.sender)
