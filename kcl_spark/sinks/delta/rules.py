"""Which tables may be written to by a raw commit, and which columns fit them.

A raw commit adds files that somebody else wrote; delta-rs takes them as they are. It evaluates no constraint, fills no
generated column, renames no mapped column, and accepts a file whose columns do not match the table (each was tried, and
each succeeded without a word). So what a raw commit would violate is refused here, before anything is written:
features are allowed by list, not forbidden by list, so that one that is invented tomorrow is refused too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from deltalake import DeltaTable

from kcl_spark.errors import SchemaDrift, TableRefused

HARMLESS: Final = frozenset(
    {
        "appendOnly",  # we only append
        "changeDataFeed",  # for appended files readers derive it from the adds
        "checkpointProtection",
        "checkConstraints",  # harmless while the table has none, which is checked by its properties
        "deletionVectors",  # new files have none
        "domainMetadata",
        "generatedColumns",  # as checkConstraints, checked by the columns
        "identityColumns",
        "invariants",
        "timestampNtz",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    }
)
"""Table features that appending whole files can't violate."""

_PARTITION_TYPES: Final = frozenset({"string", "byte", "short", "integer", "long", "date", "boolean"})
"""Types whose text in a folder's name is the text that Delta expects as a partition value, in any time zone."""

_STORABLE: Final = _PARTITION_TYPES | {"float", "double", "binary", "timestamp", "timestamp_ntz"}
"""Types that Parquet files of Spark and the Delta log agree on, beside decimals, structs, arrays and maps."""

_COLUMN_RULES: Final = (
    ("delta.invariants", "the invariant on column {}"),
    ("delta.generationExpression", "the generated column {}"),
    ("delta.identity.start", "the identity column {}"),
    ("delta.columnMapping.id", "column mapping on {}"),
)


def refuse_unsupported(table: DeltaTable) -> None:
    """Refuse a table that a raw commit would violate.

    Raises:
        TableRefused: with the first reason found.
    """
    reason = _first_reason(table)
    if reason:
        raise TableRefused(
            f"the table {table.table_uri} has {reason}, which a commit of finished files would violate unseen",
            "Remove it from the table, or write to a table of its own and merge from there",
        )


def _first_reason(table: DeltaTable) -> str | None:
    protocol = table.protocol()
    features = {*(protocol.writer_features or ()), *(protocol.reader_features or ())}
    for feature in sorted(features - HARMLESS):
        return f"the table feature {feature}"
    properties = table.metadata().configuration
    for key in sorted(properties):
        if key.startswith("delta.constraints."):
            return f"the constraint {key.removeprefix('delta.constraints.')}"
    if properties.get("delta.columnMapping.mode", "none") != "none":
        return "column mapping"
    return next(_column_reasons(json.loads(table.schema().to_json())["fields"]), None)


def _column_reasons(fields: Sequence[dict[str, Any]], prefix: str = "") -> Any:
    for field in fields:
        name = f"{prefix}{field['name']}"
        for key, reason in _COLUMN_RULES:
            if key in (field.get("metadata") or {}):
                yield reason.format(name)
        if not field["nullable"]:
            yield f"the NOT NULL column {name}"
        if isinstance(field["type"], dict) and field["type"].get("type") == "struct":
            yield from _column_reasons(field["type"]["fields"], f"{name}.")


def refuse_unsuitable(fields: Sequence[dict[str, Any]], partition_by: Sequence[str]) -> None:
    """Refuse columns that no Delta table of ours could hold.

    Args:
        fields: the columns that will be written, as Spark's JSON schema has them.
        partition_by: the declared partition columns.

    Raises:
        SchemaDrift: a column is of a type that Delta does not store; a partition column is missing or of a type
            without a fixed text; or nothing but partition columns is left.
    """
    types = {field["name"]: field["type"] for field in fields}
    for name, kind in types.items():
        if not _storable(kind):
            raise SchemaDrift(f"the column {name} is {_show(kind)}, which a table can't store", "Cast it")
    for name in partition_by:
        if name not in types:
            raise SchemaDrift(f"the partition column {name} is none of {', '.join(types)}", "Name one of the columns")
        if types[name] not in _PARTITION_TYPES:
            raise SchemaDrift(
                f"the partition column {name} is {_show(types[name])}, whose text depends on the reader",
                "Partition by a string, integer, date or boolean column, for example by cast(... as date)",
            )
    if len(types) <= len(set(partition_by)):
        raise SchemaDrift("every column is a partition column", "Leave at least one column in the files")


def _storable(kind: Any) -> bool:
    if isinstance(kind, str):
        return kind in _STORABLE or kind.startswith("decimal(")
    inner = [kind.get("elementType"), kind.get("keyType"), kind.get("valueType")]
    inner += [field["type"] for field in kind.get("fields", ())]
    return all(_storable(part) for part in inner if part is not None)


def new_columns(table: DeltaTable, fields: Sequence[dict[str, Any]], *, additive: bool) -> list[dict[str, Any]]:
    """Compare the columns that will be written with the table's.

    Args:
        table: in its loaded state.
        fields: the columns that will be written, as Spark's JSON schema has them.
        additive: whether columns may be added, and missing ones left null.

    Returns:
        the columns to add before the first commit; empty unless `additive`.

    Raises:
        SchemaDrift: with both schemas.
    """
    has = {field["name"]: plain(field["type"]) for field in json.loads(table.schema().to_json())["fields"]}
    comes = {field["name"]: plain(field["type"]) for field in fields}
    changed = [name for name in comes if name in has and comes[name] != has[name]]
    added = [name for name in comes if name not in has]
    missing = [name for name in has if name not in comes]
    folded = {name.lower() for name in has}
    clash = [name for name in added if name.lower() in folded]
    if changed or clash or (not additive and (added or missing)):
        raise drift(table.table_uri, has, comes)
    return [field for field in fields if field["name"] in added]


def drift(place: str, has: dict[str, Any], comes: dict[str, Any]) -> SchemaDrift:
    """The error that shows both schemas, only where they differ."""
    names = [name for name in {**has, **comes} if has.get(name) != comes.get(name)]
    table = ", ".join(f"{name} {_show(has[name])}" if name in has else f"no {name}" for name in names)
    batch = ", ".join(f"{name} {_show(comes[name])}" if name in comes else f"no {name}" for name in names)
    return SchemaDrift(
        f"the columns differ from the table {place}: the table has {table}; the batch has {batch}",
        'Change the schema or the transform, or add columns with sinks.delta(..., evolve="additive")',
    )


def plain(kind: Any) -> Any:
    """A column type without what does not matter to its files: nullability and metadata of inner fields."""
    if not isinstance(kind, dict):
        return kind
    match kind["type"]:
        case "struct":
            return {"struct": {field["name"]: plain(field["type"]) for field in kind["fields"]}}
        case "array":
            return {"array": plain(kind["elementType"])}
        case "map":
            return {"map": [plain(kind["keyType"]), plain(kind["valueType"])]}
        case _:
            return kind


def _show(kind: Any) -> str:
    return kind if isinstance(kind, str) else json.dumps(plain(kind), separators=(",", ":")).replace('"', "")
