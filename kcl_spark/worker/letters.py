"""Dead letters as rows: what, where from, why and when, so that each can be found, judged and replayed.

A dead letter is data (rule 6): it goes through the same spool, the same staging and the same kind of ledger as a row.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kcl_spark.errors import DeadLetterLimitExceeded
from kcl_spark.formats.base import PAYLOAD, Format
from kcl_spark.pipeline import DeadLetterLimit
from kcl_spark.worker.columns import ARRIVAL
from kcl_spark.worker.deliveries import DeadLetter, letter_of

SCHEMA: Final = pa.schema(
    [
        pa.field("_shard_id", pa.string()),
        pa.field("_sequence_number", pa.string()),
        pa.field("_sub_sequence_number", pa.int64()),
        pa.field("_partition_key", pa.string()),
        pa.field("_arrival_time", ARRIVAL),
        pa.field("payload", pa.binary()),
        pa.field("reason", pa.string()),
        pa.field("failed_at", ARRIVAL),
    ]
)

DDL: Final = (
    "_shard_id string, _sequence_number string, _sub_sequence_number bigint, _partition_key string, "
    "_arrival_time timestamp, payload binary, reason string, failed_at timestamp"
)
"""The same in Spark's words."""


def to_table(letters: Iterable[tuple[str, DeadLetter]], failed_at: datetime) -> pa.Table:
    """Make rows of dead letters, each with its shard."""
    rows = [
        {
            "_shard_id": shard_id,
            "_sequence_number": letter.position.sequence_number,
            "_sub_sequence_number": letter.position.sub,
            "_partition_key": letter.partition_key,
            "_arrival_time": letter.arrival_time,
            "payload": letter.payload,
            "reason": letter.reason,
            "failed_at": failed_at,
        }
        for shard_id, letter in letters
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def from_rows(rows: pa.Table, reasons: Mapping[int, str], source: Format) -> list[tuple[str, DeadLetter]]:
    """Make dead letters of spooled rows, each with its shard.

    Args:
        rows: spooled rows, among them the failed ones.
        reasons: row number -> reason.
        source: the format, which gives the payload back as it came and may know more about what is wrong with it.
    """
    picked = rows.filter(pc.is_in(rows["_row"], value_set=pa.array(sorted(reasons), pa.int64())))
    return [(row["_shard_id"], _letter(row, reasons[row["_row"]], source)) for row in picked.to_pylist()]


def _letter(row: Mapping[str, Any], reason: str, source: Format) -> DeadLetter:
    spooled = row[PAYLOAD]
    payload = source.original(spooled.encode() if isinstance(spooled, str) else spooled)
    told = source.explain(payload)
    return letter_of(row, payload, f"{reason}: {told}" if told else reason)


@dataclass
class Watch:
    """Counts one shard's dead letters over its latest records and says when they are too many.

    Batches are counted whole, the latest ones that together hold at least `limit.over` records.
    """

    limit: DeadLetterLimit
    _batches: deque[tuple[int, int]] = field(default_factory=deque)
    _seen: int = 0
    _dead: int = 0

    def judge(self, shard_id: str, records: int, dead: int) -> DeadLetterLimitExceeded | None:
        """Return the error that stops the shard if a batch like this is one too many; counts nothing yet."""
        seen, bad, _ = self._with(records, dead)
        if seen < self.limit.over or bad <= self.limit.ratio * seen:
            return None
        return DeadLetterLimitExceeded(
            f"shard {shard_id}: {bad} of its last {seen} records are dead letters, more than {self.limit.ratio:.0%}",
            "Look at the reasons in the dead-letter table; correct the schema or the transform, "
            "or raise dead_letter_limit",
        )

    def count(self, records: int, dead: int) -> None:
        """A batch is durable."""
        self._seen, self._dead, forgotten = self._with(records, dead)
        self._batches.append((records, dead))
        for _ in range(forgotten):
            self._batches.popleft()

    def _with(self, records: int, dead: int) -> tuple[int, int, int]:
        """Records and dead letters of the window once the batch is in it, and how many old batches then fall out."""
        seen, bad, forgotten = self._seen + records, self._dead + dead, 0
        for old_records, old_dead in self._batches:
            if seen - old_records < self.limit.over:
                break
            seen, bad, forgotten = seen - old_records, bad - old_dead, forgotten + 1
        return seen, bad, forgotten
