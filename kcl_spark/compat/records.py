"""A record as processors know it, which costs nothing before it is looked at.

The line's parser has decoded the base64 already, so `binary_data` is at hand; the text of it, the date, and the fields
by their names on the wire are made when they are asked for.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from kcl_spark.protocol import Record as Arrived


class Record:
    """One record of the stream, or of an aggregate that a producer library made.

    Args:
        json_dict: the record as it came from the daemon; or, for a record made by hand as in a processor's own tests,
            a dict as it stands on the wire.
        text: its data as it came, where that was no base64.
    """

    def __init__(self, json_dict: Mapping[str, Any] | Arrived, text: str | None = None) -> None:
        if isinstance(json_dict, Arrived):
            self._arrived, self._text = json_dict, text
            self._json_dict: Mapping[str, Any] | None = None
        else:
            self._arrived, self._text = _by_hand(json_dict), json_dict["data"]
            self._json_dict = json_dict

    @property
    def binary_data(self) -> bytes | None:
        """The record's bytes."""
        return self._arrived.data if self._text is None else b64decode(self._text)

    @property
    def data(self) -> str | None:
        """The record's bytes as base64."""
        if self._text is None and self._arrived.data is not None:
            return b64encode(self._arrived.data).decode("ascii")
        return self._text

    @property
    def partition_key(self) -> str | None:
        """The key that decided on the shard."""
        return self._arrived.partition_key

    @property
    def sequence_number(self) -> str:
        """The place in the shard, in digits; shared by all records of an aggregate."""
        return self._arrived.sequence_number

    @property
    def sub_sequence_number(self) -> int | None:
        """The place within an aggregate, 0 in a plain record."""
        return self._arrived.sub_sequence_number

    @property
    def timestamp_millis(self) -> int | None:
        """When the stream took the record, in milliseconds since 1970; None where the daemon did not say."""
        return self._arrived.approximate_arrival_timestamp

    @property
    def approximate_arrival_timestamp(self) -> datetime | None:
        """When the stream took the record, in the machine's time zone and without saying so: what kclpy's users have.

        `arrival_time_utc` says it.
        """
        millis = self.timestamp_millis
        return None if millis is None else datetime.fromtimestamp(millis / 1000.0)  # noqa: DTZ006 - see above

    @property
    def arrival_time_utc(self) -> datetime | None:
        """When the stream took the record, as a moment that means the same on every machine."""
        millis = self.timestamp_millis
        return None if millis is None else datetime.fromtimestamp(millis / 1000.0, UTC)

    def get(self, field: str) -> Any:
        """Return a field by its name on the wire.

        Raises:
            KeyError: no such field.
        """
        return _FIELDS[field](self) if self._json_dict is None else self._json_dict[field]

    def __getitem__(self, field: str) -> Any:
        return self.get(field)


_FIELDS: Final[dict[str, Callable[[Record], Any]]] = {
    "data": lambda record: record.data,
    "partitionKey": lambda record: record.partition_key,
    "sequenceNumber": lambda record: record.sequence_number,
    "subSequenceNumber": lambda record: record.sub_sequence_number,
    "approximateArrivalTimestamp": lambda record: record.timestamp_millis,
    "action": lambda _: "record",
}


def _by_hand(json_dict: Mapping[str, Any]) -> Arrived:
    """Make a record of everything but the data, which is kept as it was given."""
    millis = json_dict.get("approximateArrivalTimestamp")
    return Arrived(
        None,
        json_dict["partitionKey"],
        json_dict["sequenceNumber"],
        json_dict["subSequenceNumber"],
        None if millis is None else int(millis),
    )
