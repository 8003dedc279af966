"""Every message of the protocol once: as an event, as the daemon's or child's bytes, and where it is legal."""

from typing import NamedTuple

from kcl_spark.protocol import (
    Checkpoint,
    CheckpointAnswer,
    Event,
    Initialize,
    LeaseLost,
    ProcessRecords,
    Record,
    Role,
    ShardEnded,
    ShutdownRequested,
    State,
    Status,
)


class Case(NamedTuple):
    sender: Role
    before: State
    event: Event
    wire: bytes
    after: State


RECORD = Record(
    b"hi \xff", "k\u00e9y", "49590338271490256608559692538361571095921575989136588898", 3, 1_700_000_000_123
)
RECORD_WIRE = (
    '{"data":"aGkg/w==","partitionKey":"k\u00e9y",'
    '"sequenceNumber":"49590338271490256608559692538361571095921575989136588898",'
    '"subSequenceNumber":3,"approximateArrivalTimestamp":1700000000123}'
).encode()

CASES = [
    Case(
        Role.DAEMON,
        State.EXPECT_INITIALIZE,
        Initialize("shardId-000000000000", "TRIM_HORIZON", 0),
        b'{"action":"initialize","shardId":"shardId-000000000000","sequenceNumber":"TRIM_HORIZON","subSequenceNumber":0}',
        State.HANDLING_INITIALIZE,
    ),
    Case(
        Role.DAEMON,
        State.EXPECT_INITIALIZE,
        Initialize("shardId-000000000000", None, None),
        b'{"action":"initialize","shardId":"shardId-000000000000","sequenceNumber":null,"subSequenceNumber":null}',
        State.HANDLING_INITIALIZE,
    ),
    Case(
        Role.CHILD,
        State.HANDLING_INITIALIZE,
        Status("initialize"),
        b'{"action":"status","responseFor":"initialize"}',
        State.READY,
    ),
    Case(
        Role.DAEMON,
        State.READY,
        ProcessRecords([RECORD, RECORD], 17),
        b'{"action":"processRecords","records":[' + RECORD_WIRE + b"," + RECORD_WIRE + b'],"millisBehindLatest":17}',
        State.HANDLING_RECORDS,
    ),
    Case(
        Role.DAEMON,
        State.READY,
        ProcessRecords([], None),
        b'{"action":"processRecords","records":[],"millisBehindLatest":null}',
        State.HANDLING_RECORDS,
    ),
    Case(
        Role.CHILD,
        State.HANDLING_RECORDS,
        Checkpoint("123", 7),
        b'{"action":"checkpoint","sequenceNumber":"123","subSequenceNumber":7}',
        State.ANSWERING_IN_RECORDS,
    ),
    Case(
        Role.DAEMON,
        State.ANSWERING_IN_RECORDS,
        CheckpointAnswer("123", 7, None),
        b'{"action":"checkpoint","sequenceNumber":"123","subSequenceNumber":7,"error":null}',
        State.HANDLING_RECORDS,
    ),
    Case(
        Role.CHILD,
        State.HANDLING_RECORDS,
        Status("processRecords"),
        b'{"action":"status","responseFor":"processRecords"}',
        State.READY,
    ),
    Case(
        Role.DAEMON,
        State.READY,
        ShutdownRequested(),
        b'{"action":"shutdownRequested"}',
        State.HANDLING_SHUTDOWN_REQUESTED,
    ),
    Case(
        Role.CHILD,
        State.HANDLING_SHUTDOWN_REQUESTED,
        Checkpoint("9", 0),
        b'{"action":"checkpoint","sequenceNumber":"9","subSequenceNumber":0}',
        State.ANSWERING_IN_SHUTDOWN_REQUESTED,
    ),
    Case(
        Role.DAEMON,
        State.ANSWERING_IN_SHUTDOWN_REQUESTED,
        CheckpointAnswer("9", 0, "ThrottlingException"),
        b'{"action":"checkpoint","sequenceNumber":"9","subSequenceNumber":0,"error":"ThrottlingException"}',
        State.HANDLING_SHUTDOWN_REQUESTED,
    ),
    Case(
        Role.CHILD,
        State.HANDLING_SHUTDOWN_REQUESTED,
        Status("shutdownRequested"),
        b'{"action":"status","responseFor":"shutdownRequested"}',
        State.READY,
    ),
    Case(Role.DAEMON, State.READY, ShardEnded(), b'{"action":"shardEnded"}', State.HANDLING_SHARD_ENDED),
    Case(
        Role.CHILD,
        State.HANDLING_SHARD_ENDED,
        Checkpoint(None, None),
        b'{"action":"checkpoint","sequenceNumber":null,"subSequenceNumber":null}',
        State.ANSWERING_IN_SHARD_ENDED,
    ),
    Case(
        Role.DAEMON,
        State.ANSWERING_IN_SHARD_ENDED,
        CheckpointAnswer(None, None, None),
        b'{"action":"checkpoint","sequenceNumber":null,"subSequenceNumber":null,"error":null}',
        State.HANDLING_SHARD_ENDED,
    ),
    Case(
        Role.CHILD,
        State.HANDLING_SHARD_ENDED,
        Status("shardEnded"),
        b'{"action":"status","responseFor":"shardEnded"}',
        State.FINISHED,
    ),
    Case(Role.DAEMON, State.READY, LeaseLost(), b'{"action":"leaseLost"}', State.HANDLING_LEASE_LOST),
    Case(
        Role.CHILD,
        State.HANDLING_LEASE_LOST,
        Status("leaseLost"),
        b'{"action":"status","responseFor":"leaseLost"}',
        State.FINISHED,
    ),
]
