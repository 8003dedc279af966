"""A producer for local streams: records alone, or many in one as the Kinesis Producer Library aggregates them.

All records of one aggregate have its partition key. KCL drops a whole aggregate without a word when one of its keys
belongs to another shard, and an aggregate that was made before a split may be put after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

_CALL: Final = 500
"""Records that one PutRecords call may carry."""

_CALL_BYTES: Final = 4 << 20
"""And bytes: 5 MiB is the service's bound, keys included."""


class Outgoing(NamedTuple):
    """One Kinesis record, which may hold many user records."""

    key: str
    data: bytes


def alone(payloads: Iterable[bytes], prefix: str = "r") -> Iterator[Outgoing]:
    """Each payload as a record with a key of its own."""
    return (Outgoing(f"{prefix}{number}", payload) for number, payload in enumerate(payloads))


def aggregated(payloads: Iterable[bytes], size: int, prefix: str = "a") -> Iterator[Outgoing]:
    """Payloads in aggregates of `size`; needs aws-kinesis-agg."""
    from aws_kinesis_agg.aggregator import RecordAggregator

    waiting = iter(payloads)
    for number, group in enumerate(iter(lambda: list(islice(waiting, size)), [])):
        key = f"{prefix}{number}"
        aggregator = RecordAggregator()
        for payload in group:
            aggregator.add_user_record(key, payload)
        yield Outgoing(key, aggregator.clear_and_get().get_contents()[2])


def put(kinesis: Any, stream: str, records: Iterable[Outgoing]) -> int:
    """Put records in order, as many in a call as it may carry; returns how many Kinesis records that were.

    What a call refuses is put again by the next one: a record may then come behind later ones of its key.
    """
    done = 0
    for call in _calls(records):
        waiting: Sequence[Outgoing] = call
        while waiting:
            answer = kinesis.put_records(
                StreamName=stream, Records=[{"Data": record.data, "PartitionKey": record.key} for record in waiting]
            )
            waiting = [record for record, told in zip(waiting, answer["Records"], strict=True) if "ErrorCode" in told]
        done += len(call)
    return done


def _calls(records: Iterable[Outgoing]) -> Iterator[list[Outgoing]]:
    call: list[Outgoing] = []
    size = 0
    for record in records:
        weight = len(record.data) + len(record.key)
        if call and (len(call) == _CALL or size + weight > _CALL_BYTES):
            yield call
            call, size = [], 0
        call.append(record)
        size += weight
    if call:
        yield call
