"""The contract of every format: bytes become a row, or a reason why not; in Spark, as column expressions.

A format never raises on data and never answers with silent nulls: a record either has a value or has an error (rule 6:
rows in = rows out + dead letters).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from pyspark.sql import Column


class Decoded(NamedTuple):
    """The two halves of a record's fate: `value` is a struct, `error` is null where the value holds."""

    value: Column
    error: Column


class Format(Protocol):
    """How a record's payload becomes columns."""

    def decode(self, payload: Column) -> Decoded:
        """Build the expressions for a binary column; needs an active Spark session, runs nothing.

        Raises:
            UsageError: the format's own declaration is wrong, such as a schema that can't be parsed.
        """

    def sample(self) -> bytes:
        """A payload that decodes, to warm Spark up with; needs an active session."""

    def explain(self, payload: bytes) -> str | None:
        """Say more exactly why a payload was refused, for its dead letter; None where there is no more to say."""
