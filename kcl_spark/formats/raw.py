"""Records as they are: one column `data` with the payload's bytes. Nothing can fail to decode, the empty one included."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kcl_spark.formats.base import Decoded

if TYPE_CHECKING:
    from pyspark.sql import Column


@dataclass(frozen=True)
class RawFormat:
    """Keep the bytes."""

    def decode(self, payload: Column) -> Decoded:
        """Wrap the payload into a struct of one column."""
        from pyspark.sql import functions as F

        return Decoded(F.struct(payload.alias("data")), F.lit(None).cast("string"))

    def sample(self) -> bytes:
        """Any bytes do."""
        return b"sample"

    def explain(self, payload: bytes) -> str | None:  # noqa: ARG002 - the contract's signature
        """Nothing is ever refused."""
        return None


def raw() -> RawFormat:
    """Keep each record's bytes in a column `data`."""
    return RawFormat()
