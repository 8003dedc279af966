"""Records as they are: one column `data` with the payload's bytes. Nothing fails to decode, the empty one included."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from kcl_spark.formats.base import ERROR, PAYLOAD, VALUE, Prepared

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class RawFormat:
    """Keep the bytes."""

    spool_type: ClassVar[str] = "binary"

    def prepare(self, payloads: pa.Array) -> Prepared:
        """Nothing to do."""
        return Prepared(payloads, {})

    def original(self, prepared: bytes) -> bytes:
        """The same."""
        return prepared

    def decode(self, frame: DataFrame) -> DataFrame:
        """Wrap the payload into a struct of one column."""
        from pyspark.sql import functions as F

        return frame.withColumns({VALUE: F.struct(PAYLOAD), ERROR: F.lit(None).cast("string")})

    def sample(self, number: int) -> bytes:
        """Any bytes do."""
        return b"sample %d" % number

    def explain(self, payload: bytes) -> str | None:  # noqa: ARG002 - the contract's signature
        """Nothing is ever refused."""
        return None


def raw() -> RawFormat:
    """Keep each record's bytes in a column `data`."""
    return RawFormat()
