"""The contract of every format: bytes become a row, or a reason why not; in Spark, as a plan.

A format never raises on data and never answers with silent nulls: a record either has a value or has an error (rule 6:
rows in = rows out + dead letters).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PAYLOAD: Final = "data"
"""The column of payloads that comes in."""

VALUE: Final = "_value"
ERROR: Final = "_error"
"""The two halves of a record's fate: a struct of columns, and a string that is null where the value holds."""


class Prepared(NamedTuple):
    """Payloads as they are spooled: whole columns at once, in Arrow, for checks and framing that Spark is slow at.

    `refused` names payloads that can't be spooled, by index, with the reason; they are no longer in `payloads`.
    """

    payloads: pa.Array
    refused: dict[int, str]


class Format(Protocol):
    """How a record's payload becomes columns."""

    @property
    def spool_type(self) -> str:
        """The type of the spooled payloads in Spark's words: "binary" or "string"."""

    def prepare(self, payloads: pa.Array) -> Prepared:
        """Turn a binary column into the column that is spooled; by Arrow's kernels, never row by row."""

    def original(self, prepared: bytes) -> bytes:
        """What the payload was before `prepare`."""

    def decode(self, frame: DataFrame) -> DataFrame:
        """Add the columns `_value` and `_error` to a frame with the column `data`, as it was prepared.

        Builds a plan, runs nothing.

        Raises:
            UsageError: the format's own declaration is wrong, such as a schema that can't be parsed.
        """

    def sample(self, number: int) -> bytes:
        """A payload that decodes, to warm Spark up with, different for each number; needs an active session."""

    def explain(self, payload: bytes) -> str | None:
        """Say more exactly why a payload was refused, for its dead letter; None where there is no more to say."""
