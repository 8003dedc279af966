"""Staged Parquet files as Delta adds: partition values from the folders' names, statistics from the footers.

The statistics are what lets readers skip files: rows, and for each column the least and greatest value and how many
nulls. They are taken from the footers that Spark has just written, so no data is read again.

A file has bounds for all of its columns or none at all. delta-rs' Arrow dataset compares a column without bounds, in a
file that has some, with null, and silently answers every filter on it with no rows (seen in 1.6.6, also with its own
writer where a column holds an infinity). So a value whose bound has no exact form costs a reader time and never a row.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.transaction import AddAction
from pyarrow import fs

_SMALLEST: Final = Decimal("0.0001")
"""Below this, a number's text has an exponent, which delta-rs can't read as a decimal."""

NULL_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
"""Spark's folder name for null, and for the empty string, which Delta can't tell from null either."""

ENOUGH: Final = 10_000
"""Values from which on a column that needed no dictionary is taken for one that never will."""

TEXT: Final = 64
"""Characters of a string that a bound keeps: the log should not carry payloads, but a sequence number, of which the
first 40 digits are alike for months, should be told from the next."""


class StagedFile(NamedTuple):
    """One file: how the log will name it, and what it holds."""

    add: AddAction
    rows: int
    size: int
    varied: frozenset[str] = frozenset()
    """Columns whose values were too many for a dictionary: trying one again would cost time and gain nothing."""


def staged_files(filesystem: fs.FileSystem, root: str, folder: str, partition_by: tuple[str, ...]) -> list[StagedFile]:
    """Describe every data file below `root`/`folder`; files without rows are removed.

    Args:
        filesystem: where the table is.
        root: the table's folder on it.
        folder: the staging folder below it.
        partition_by: the partition columns, outermost first.
    """
    listing = filesystem.get_file_info(fs.FileSelector(f"{root}/{folder}", recursive=True))
    data = [entry for entry in listing if entry.type == fs.FileType.File and entry.base_name.endswith(".parquet")]
    files = [_describe(filesystem, root, entry, partition_by) for entry in data]
    for entry, file in zip(data, files, strict=True):
        if not file.rows:  # Spark writes one to carry the schema; unreferenced, it would stay for ever
            filesystem.delete_file(entry.path)
    return sorted((file for file in files if file.rows), key=lambda file: file.add.path)


def _describe(filesystem: fs.FileSystem, root: str, entry: fs.FileInfo, partition_by: tuple[str, ...]) -> StagedFile:
    with filesystem.open_input_file(entry.path) as source:
        footer = pq.ParquetFile(source).metadata
    path = entry.path.removeprefix(root).lstrip("/")
    modified = int((entry.mtime_ns or 0) // 1_000_000)
    # Not as escapes: delta-rs 1.6.6 reads an escaped pair for a character above U+1FFFF as another character.
    stats = json.dumps(statistics(footer), separators=(",", ":"), ensure_ascii=False)
    add = AddAction(path, entry.size, partition_values(path, partition_by), modified, True, stats)
    return StagedFile(add, footer.num_rows, entry.size, varied_columns(footer))


def partition_values(path: str, partition_by: tuple[str, ...]) -> dict[str, str | None]:
    """Read the values that Spark wrote into folder names: `.../origin=New%20York/part-0.parquet`."""
    named = dict(part.split("=", 1) for part in path.split("/")[:-1] if "=" in part)
    escaped = {unquote(name): value for name, value in named.items()}
    return {name: None if escaped[name] == NULL_PARTITION else unquote(escaped[name]) for name in partition_by}


def statistics(footer: pq.FileMetaData) -> dict[str, Any]:
    """A file's statistics in Delta's words, over all its row groups; without bounds if a column has none."""
    stats: dict[str, Any] = {"minValues": {}, "maxValues": {}, "nullCount": {}}
    for path, index in _columns(footer.schema.to_arrow_schema()):
        found = _column(footer, index)
        if found is None:
            return {"numRecords": footer.num_rows}
        for kind, value in found.items():
            _put(stats[kind], path, value)
    return {"numRecords": footer.num_rows} | stats


def _columns(schema: pa.Schema) -> Iterator[tuple[tuple[str, ...], int]]:
    """Each column that Delta keeps bounds for: its path through structs, and its place among the file's leaves."""
    leaves = _leaves(list(schema), ())
    return ((path, index) for index, (path, kind) in enumerate(leaves) if kind is not None)


def _leaves(fields: Sequence[pa.Field], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], pa.DataType | None]]:
    """The leaves in the file's order; those inside lists and maps, and binary ones, have no type of interest."""
    for field in fields:
        inner = [field.type.field(number) for number in range(field.type.num_fields)]
        if pa.types.is_struct(field.type):
            yield from _leaves(inner, (*path, field.name))
        elif inner:
            yield from ((path, None) for _ in _leaves(inner, path))
        else:
            yield (*path, field.name), None if pa.types.is_binary(field.type) else field.type


def _column(footer: pq.FileMetaData, index: int) -> dict[str, Any] | None:
    """One column's part of the statistics; None where a bound can't be told."""
    groups = [footer.row_group(group).column(index) for group in range(footer.num_row_groups)]
    if any(group.statistics is None or not group.statistics.has_null_count for group in groups):
        return None
    nulls = sum(group.statistics.null_count for group in groups)
    if nulls == footer.num_rows:
        return {"nullCount": nulls}
    bounds = _bounds([group.statistics for group in groups if group.statistics.num_values])
    return bounds and {"nullCount": nulls, "minValues": bounds[0], "maxValues": bounds[1]}


def _bounds(found: Sequence[pq.Statistics]) -> tuple[Any, Any] | None:
    if not found or not all(statistics.has_min_max for statistics in found):
        return None
    try:
        least = lower(min(statistics.min for statistics in found))
        most = upper(max(statistics.max for statistics in found))
    except (ValueError, OverflowError):  # a time beyond what Python can hold
        return None
    return None if least is None or most is None else (least, most)


def _put(tree: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = value


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


def lower(value: Any) -> Any:
    """A lower bound as Delta writes it, at or below `value`; None where there is none."""
    match value:
        case str():
            return value[:TEXT]
        case Decimal():
            return _decimal(value, ROUND_FLOOR)
        case datetime():
            return _time(value)
        case _:
            return _exact(value)


def upper(value: Any) -> Any:
    """An upper bound as Delta writes it, at or above `value`; None where there is none."""
    match value:
        case str():
            return value if len(value) <= TEXT else _above(value[:TEXT]) or value
        case Decimal():
            return _decimal(value, ROUND_CEILING)
        case datetime():
            return _time(value + timedelta(microseconds=999))
        case _:
            return _exact(value)


def _decimal(value: Decimal, rounding: str) -> float | int:
    """A number whose JSON text readers take for a decimal: exact and without an exponent, or the next one that is."""
    if 0 < abs(value) < _SMALLEST:
        return float(value.quantize(_SMALLEST, rounding))
    near = float(value)
    exact = Decimal(repr(near)) == value and "e" not in repr(near)
    return near if exact else int(value.to_integral_value(rounding))


def _exact(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has no word for it
    return value.isoformat() if isinstance(value, date) else value


def _time(value: datetime) -> str:
    """A time cut to the millisecond, which is Delta's unit for bounds."""
    moved = value.astimezone(UTC) if value.tzinfo else value
    return moved.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _above(prefix: str) -> str | None:
    """The least string of at most that length that is above every string with this prefix, as code points go."""
    for index in range(len(prefix) - 1, -1, -1):
        following = ord(prefix[index]) + 1
        if 0xD800 <= following <= 0xDFFF:  # surrogates are no characters of their own
            following = 0xE000
        if following <= 0x10FFFF:
            return prefix[:index] + chr(following)
    return None
