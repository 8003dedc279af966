"""Staged Parquet files as Delta adds: partition values from the folders' names, statistics from the footers.

The statistics are what lets readers skip files: rows, and for each plain column the least and greatest value and how
many nulls. They are taken from the footers that Spark has just written, so no data is read again. A column whose
footer statistics can't be turned into what Delta expects exactly gets none, which costs a reader time and never a row.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import pyarrow.parquet as pq
from deltalake.transaction import AddAction
from pyarrow import fs

NULL_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
"""Spark's folder name for null, and for the empty string, which Delta can't tell from null either."""

INDEXED_COLUMNS: Final = 32
"""Columns that get statistics: Delta's own default (delta.dataSkippingNumIndexedCols)."""

ENOUGH: Final = 10_000
"""Values from which on a column that needed no dictionary is taken for one that never will."""

TEXT: Final = 32
"""Characters of a string that a bound keeps, as Delta's own writers do: the log should not carry payloads."""


class StagedFile(NamedTuple):
    """One file: how the log will name it, and what it holds."""

    add: AddAction
    rows: int
    size: int
    varied: frozenset[str] = frozenset()
    """Columns whose values were too many for a dictionary: trying one again would cost time and gain nothing."""


def staged_files(filesystem: fs.FileSystem, root: str, folder: str, partition_by: tuple[str, ...]) -> list[StagedFile]:
    """Describe every data file below `root`/`folder`; files without rows are left out.

    Args:
        filesystem: where the table is.
        root: the table's folder on it.
        folder: the staging folder below it.
        partition_by: the partition columns, outermost first.
    """
    listing = filesystem.get_file_info(fs.FileSelector(f"{root}/{folder}", recursive=True))
    data = (entry for entry in listing if entry.type == fs.FileType.File and entry.base_name.endswith(".parquet"))
    described = (_describe(filesystem, root, entry, partition_by) for entry in data)
    return sorted((file for file in described if file.rows), key=lambda file: file.add.path)


def _describe(filesystem: fs.FileSystem, root: str, entry: fs.FileInfo, partition_by: tuple[str, ...]) -> StagedFile:
    with filesystem.open_input_file(entry.path) as source:
        footer = pq.ParquetFile(source).metadata
    path = entry.path.removeprefix(root).lstrip("/")
    modified = int((entry.mtime_ns or 0) // 1_000_000)
    stats = json.dumps(statistics(footer), separators=(",", ":"))
    add = AddAction(path, entry.size, partition_values(path, partition_by), modified, True, stats)
    return StagedFile(add, footer.num_rows, entry.size, varied_columns(footer))


def partition_values(path: str, partition_by: tuple[str, ...]) -> dict[str, str | None]:
    """Read the values that Spark wrote into folder names: `.../origin=New%20York/part-0.parquet`."""
    named = dict(part.split("=", 1) for part in path.split("/")[:-1] if "=" in part)
    escaped = {unquote(name): value for name, value in named.items()}
    return {name: None if escaped[name] == NULL_PARTITION else unquote(escaped[name]) for name in partition_by}


def statistics(footer: pq.FileMetaData) -> dict[str, Any]:
    """A file's statistics in Delta's words, over all its row groups."""
    stats: dict[str, Any] = {"numRecords": footer.num_rows, "minValues": {}, "maxValues": {}, "nullCount": {}}
    for index in _plain_columns(footer):
        groups = [footer.row_group(group).column(index) for group in range(footer.num_row_groups)]
        name = groups[0].path_in_schema
        if any(group.statistics is None or not group.statistics.has_null_count for group in groups):
            continue
        nulls = sum(group.statistics.null_count for group in groups)
        stats["nullCount"][name] = nulls
        bounds = _bounds([group for group in groups if group.statistics.null_count < group.num_values])
        if bounds is not None:
            stats["minValues"][name], stats["maxValues"][name] = bounds
    return stats


def varied_columns(footer: pq.FileMetaData) -> frozenset[str]:
    """Columns that the writer found no use for a dictionary in, by their path in the schema."""
    chunks = (
        footer.row_group(group).column(column)
        for group in range(footer.num_row_groups)
        for column in range(footer.num_columns)
    )
    return frozenset(chunk.path_in_schema for chunk in chunks if _is_varied(chunk))


def _is_varied(chunk: pq.ColumnChunkMetaData) -> bool:
    """Enough values to judge by, and plain pages: the writer tries a dictionary first for everything but booleans."""
    return chunk.num_values >= ENOUGH and "PLAIN" in chunk.encodings and chunk.physical_type != "BOOLEAN"


def _plain_columns(footer: pq.FileMetaData) -> Iterator[int]:
    """Indices of the first columns that are neither nested nor repeated."""
    if footer.num_row_groups == 0:
        return
    plain = (
        index
        for index in range(footer.num_columns)
        if footer.schema.column(index).max_repetition_level == 0 and "." not in footer.schema.column(index).path
    )
    for _, index in zip(range(INDEXED_COLUMNS), plain, strict=False):
        yield index


def _bounds(groups: list[pq.ColumnChunkMetaData]) -> tuple[Any, Any] | None:
    if not groups or not all(group.statistics.has_min_max for group in groups):
        return None
    try:
        least = lower(min(group.statistics.min for group in groups))
        most = upper(max(group.statistics.max for group in groups))
    except (ValueError, OverflowError):  # a time beyond what Python can hold
        return None
    return None if least is None or most is None else (least, most)


def lower(value: Any) -> Any:
    """A lower bound as Delta writes it, at or below `value`; None where there is no exact rule."""
    return value[:TEXT] if isinstance(value, str) else _exact(value, timedelta(0))


def upper(value: Any) -> Any:
    """An upper bound as Delta writes it, at or above `value`; None where there is no exact rule."""
    if isinstance(value, str):
        return value if len(value) <= TEXT else _above(value[:TEXT])
    return _exact(value, timedelta(milliseconds=1) - timedelta(microseconds=1))


def _exact(value: Any, towards: timedelta) -> Any:
    """Numbers as they are, times cut to the millisecond (Delta's unit) after moving them `towards` the safe side."""
    match value:
        case bool() | bytes():
            return None
        case float():
            return value if math.isfinite(value) else None
        case int():
            return value
        case Decimal():
            return float(value) if Decimal(float(value)) == value else None
        case datetime():
            moved = value.astimezone(UTC) if value.tzinfo else value
            return (moved + towards).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case _:
            return None


def _above(prefix: str) -> str | None:
    """The least string of at most that length that is above every string with this prefix, as code points go."""
    for index in range(len(prefix) - 1, -1, -1):
        following = ord(prefix[index]) + 1
        if 0xD800 <= following <= 0xDFFF:  # surrogates are no characters of their own
            following = 0xE000
        if following <= 0x10FFFF:
            return prefix[:index] + chr(following)
    return None
