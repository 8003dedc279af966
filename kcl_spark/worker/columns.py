"""Records as columns: what the daemon delivered becomes one Arrow batch at once, and stays columns from there on.

Python objects for small records cost several times their payload; converted on arrival, a buffered byte is counted as
what it is, which is what makes the memory cap a cap.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import le, lt
from typing import Final

import pyarrow as pa

from kcl_spark.protocol import Record

ARRIVAL: Final = pa.timestamp("us", tz="UTC")

COLUMNS: Final = pa.schema(
    [
        pa.field("data", pa.binary(), nullable=False),
        pa.field("_sequence_number", pa.string(), nullable=False),
        pa.field("_sub_sequence_number", pa.int64(), nullable=False),
        pa.field("_partition_key", pa.string()),
        pa.field("_arrival_time", ARRIVAL),
    ]
)
"""A delivery as columns. The shard is a property of the delivery and joins when the batch is spooled."""


def to_columns(records: Sequence[Record]) -> pa.RecordBatch:
    """Turn records into columns; a null payload becomes an empty one, arrival times become microseconds."""
    return pa.RecordBatch.from_arrays(
        [
            pa.array([record.data or b"" for record in records], pa.binary()),
            pa.array([record.sequence_number for record in records], pa.string()),
            pa.array([record.sub_sequence_number or 0 for record in records], pa.int64()),
            pa.array([record.partition_key for record in records], pa.string()),
            _arrival_times(records),
        ],
        schema=COLUMNS,
    )


def _arrival_times(records: Sequence[Record]) -> pa.Array:
    milliseconds = pa.array([record.approximate_arrival_timestamp for record in records], pa.int64())
    return milliseconds.cast(pa.timestamp("ms", tz="UTC")).cast(ARRIVAL)


def strictly_ascending(records: Sequence[Record]) -> bool:
    """Tell whether every record's position is greater than the one before, without making integers of them.

    Text order is number order as long as all are of one length, which they are in all streams seen; any doubt (another
    length, a character that is no digit) is answered with False, and the caller looks again with integers.
    """
    numbers = [record.sequence_number for record in records]
    if len(set(map(len, numbers))) > 1 or not "".join(numbers).isdigit():
        return False
    if all(map(lt, numbers, numbers[1:])):
        return all((record.sub_sequence_number or 0) >= 0 for record in records)
    if not all(map(le, numbers, numbers[1:])):
        return False
    places = [(record.sequence_number, record.sub_sequence_number or 0) for record in records]
    return all(map(lt, places, places[1:]))
