"""Decoding alone: a `processRecords` line of 2,000 records of 1 KiB, beside what amazon_kclpy does with it.

kclpy: json.loads, a Record for each record, and `binary_data`, which is what a processor asks for. kcl-spark: the
protocol's decode, to records with their bytes; and, as a second figure, on to the Arrow columns that are spooled. All
from the same bytes; best of seven, for noise only adds.
"""

import base64
import json
import time
from collections.abc import Callable
from importlib.metadata import version

from amazon_kclpy import dispatch

from kcl_spark.protocol import Connection, Initialize, ProcessRecords, Role, Status
from kcl_spark.worker.columns import to_columns

RECORDS, PAYLOAD = 2_000, 1_024


def line() -> bytes:
    """A batch as the daemon writes it."""
    payload = base64.b64encode(json.dumps({"text": "x" * (PAYLOAD - 12)}).encode()).decode()
    record = {
        "action": "record",
        "data": payload,
        "partitionKey": "key",
        "subSequenceNumber": 0,
        "approximateArrivalTimestamp": 10**12,
    }
    records = [record | {"sequenceNumber": str(49 * 10**54 + number)} for number in range(RECORDS)]
    return json.dumps({"action": "processRecords", "records": records, "millisBehindLatest": 0}).encode() + b"\n"


def decoded(batch: bytes) -> None:
    records_of(batch)


def to_arrow(batch: bytes) -> None:
    to_columns(records_of(batch).records)


def records_of(batch: bytes) -> ProcessRecords:
    connection = Connection(Role.CHILD)
    connection.receive_data(b'{"action":"initialize","shardId":"s","sequenceNumber":"TRIM_HORIZON"}\n')
    assert isinstance(connection.next_event(), Initialize)
    connection.send(Status("initialize"))
    connection.receive_data(batch)
    event = connection.next_event()
    assert isinstance(event, ProcessRecords)
    return event


def theirs(batch: bytes) -> None:
    message = json.loads(batch, object_hook=dispatch.message_decode)
    for record in message.records:
        record.binary_data  # noqa: B018 - decoding happens here


def best(work: Callable[[bytes], None], batch: bytes) -> float:
    def once() -> float:
        began = time.perf_counter()
        work(batch)
        return time.perf_counter() - began

    return min(once() for _ in range(7))


if __name__ == "__main__":
    whole = line()
    size, other = len(whole) / 1e9, best(theirs, whole)
    print(f"amazon_kclpy {version('amazon_kclpy')}: {size / other:.2f} GB/s")
    for what, work in (("decode", decoded), ("decode to Arrow columns", to_arrow)):
        seconds = best(work, whole)
        print(f"kcl-spark, {what}: {size / seconds:.2f} GB/s, {other / seconds:.1f} times as fast")
