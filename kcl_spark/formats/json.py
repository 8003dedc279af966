"""JSON objects into typed columns: a record either fits the declared schema as a whole or is a dead letter.

Spark's own parser does the work, with four of its habits taken away:

* PERMISSIVE mode answers a wrong type with a null. The parser also reports the record as corrupt, so we ask for that
  report and believe it.
* It stops after the first value and never looks at what follows, so `{"a":1}{"a":2}` would lose its second half
  without a word. The payload is wrapped as `{"r":` payload `,"<end>":1}`, whose end is only reached through a payload
  that is one value, or that knows the end's name.
* It reads bytes that are not UTF-8 as replacement characters. They are refused beforehand.
* It ignores NOT NULL. Required fields are checked afterwards, inside structs, arrays and maps as well.

The parser's leniencies that remain are documented in docs/formats.md: a number or an object in a string column becomes
its text; unknown fields are ignored; of a repeated field the last one counts.
"""

from __future__ import annotations

import json as stdlib_json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc

from kcl_spark.errors import UsageError
from kcl_spark.formats.base import ERROR, PAYLOAD, VALUE, Prepared

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

_BEFORE: Final = '{"r":'
_END: Final = "__kcl_spark_end"
_AFTER: Final = f',"{_END}":1}}'
_PARSED: Final = "__kcl_spark_parsed"
_CORRUPT: Final = "__kcl_spark_corrupt"
_OPTIONS: Final = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT, "allowSingleQuotes": "false"}
_SHOWN: Final = 60
"""Characters of a value that a reason quotes."""


@dataclass(frozen=True)
class JsonFormat:
    """JSON with a declared schema.

    Attributes:
        schema: a DDL string such as "id bigint NOT NULL, name string", or a StructType.
    """

    schema: str | StructType

    spool_type: ClassVar[str] = "string"

    def prepare(self, payloads: pa.Array) -> Prepared:
        """Refuse what is empty or not UTF-8, and wrap the rest."""
        lengths = pc.binary_length(payloads)
        refused = dict.fromkeys(pc.indices_nonzero(pc.equal(lengths, 0)).to_pylist(), "the payload is empty")
        try:
            text = payloads.cast(pa.string())
        except pa.ArrowInvalid:  # says that some payload is bad, not which
            bad = (index for index, payload in enumerate(payloads.to_pylist()) if not _is_utf8(payload))
            refused |= dict.fromkeys(bad, "the payload is not UTF-8")
            text = None
        if refused:
            kept = payloads.take(pa.array(sorted(set(range(len(payloads))) - set(refused)), pa.int64()))
            text = kept.cast(pa.string())
        return Prepared(pc.binary_join_element_wise(_BEFORE, text, _AFTER, ""), refused)

    def original(self, prepared: bytes) -> bytes:
        """Unwrap."""
        return prepared[len(_BEFORE) : -len(_AFTER)]

    def decode(self, frame: DataFrame) -> DataFrame:
        """Parse in one pass; see the module's first lines for what is refused.

        The parsed column is a projection of its own, and what looks at it comes after: as one projection, the optimizer
        prunes the parser's schema for each use of it and parses as often as it is used (measured: 2.6 times slower).
        """
        from pyspark.sql import functions as F
        from pyspark.sql.types import IntegerType, StringType, StructField, StructType

        schema = self.struct()
        ends = [StructField(_END, IntegerType()), StructField(_CORRUPT, StringType())]
        wrapper = StructType([StructField("r", _nullable(schema)), *ends])
        frame = frame.withColumn(_PARSED, F.from_json(PAYLOAD, wrapper, _OPTIONS))
        value = F.col(_PARSED)["r"]
        unparsed = F.col(_PARSED)[_CORRUPT].isNotNull() | value.isNull() | F.col(_PARSED)[_END].isNull()
        error = F.when(unparsed, "the payload is no JSON object of the schema")
        for path, missing in _missing(value, schema, ""):
            error = error.when(missing, f"the required field {path} is missing")
        return frame.withColumns({VALUE: value, ERROR: error})

    def struct(self) -> StructType:
        """The schema as a StructType; a DDL string needs an active session to be read.

        Raises:
            UsageError: the DDL string can't be parsed, or is no list of columns.
        """
        from pyspark.errors import PySparkException
        from pyspark.sql.types import DataType, StructType

        if isinstance(self.schema, StructType):
            return self.schema
        try:
            parsed = DataType.fromDDL(self.schema)
        except PySparkException as error:
            reason = str(error).strip().splitlines()[0]
            raise UsageError(f"the JSON schema {self.schema!r} can't be read: {reason}", _DDL) from None
        if not isinstance(parsed, StructType) or not parsed.fields:
            raise UsageError(f"the JSON schema {self.schema!r} has no columns", _DDL)
        return parsed

    def sample(self, number: int) -> bytes:
        """A document with a value in each field."""
        return stdlib_json.dumps(_sample(self.struct(), number)).encode()

    def explain(self, payload: bytes) -> str | None:
        """Find the first place where the payload differs from JSON or from the schema."""
        try:
            document = stdlib_json.loads(payload)
        except (UnicodeDecodeError, RecursionError) as error:
            return type(error).__name__
        except ValueError as error:
            return str(error)
        if not isinstance(document, dict):
            return f"a JSON {type(document).__name__} instead of an object"
        return next(_misfits(document, self.struct(), ""), None)


_DDL: Final = 'Write a schema such as "id bigint NOT NULL, name string, tags array<string>"'


def json(schema: str | StructType) -> JsonFormat:
    """Parse each record as one JSON object.

    Args:
        schema: a DDL string such as "id bigint NOT NULL, name string", or a StructType. A record that does not parse,
            has a value of another type, or lacks a NOT NULL field becomes a dead letter.
    """
    return JsonFormat(schema)


def _is_utf8(payload: bytes) -> bool:
    try:
        payload.decode()
    except UnicodeDecodeError:
        return False
    return True


def _nullable(kind: Any) -> Any:
    """The same type with every null allowed, which is what the parser needs to report instead of guessing."""
    from pyspark.sql import types as t

    match kind:
        case t.StructType():
            return t.StructType([t.StructField(f.name, _nullable(f.dataType)) for f in kind.fields])
        case t.ArrayType():
            return t.ArrayType(_nullable(kind.elementType))
        case t.MapType():
            return t.MapType(kind.keyType, _nullable(kind.valueType))
        case _:
            return kind


def _missing(value: Column, kind: Any, path: str) -> Iterator[tuple[str, Column]]:
    """For each required place inside `value`: its path, and a condition that is true where it is null."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as t

    match kind:
        case t.StructType():
            for field in kind.fields:
                inner, name = value[field.name], f"{path}.{field.name}".lstrip(".")
                if not field.nullable:
                    yield name, value.isNotNull() & inner.isNull()
                yield from _missing(inner, field.dataType, name)
        case t.ArrayType():
            yield from _missing_inside(value, kind.elementType, required=not kind.containsNull, path=f"{path}[]")
        case t.MapType():
            values = F.map_values(value)
            yield from _missing_inside(values, kind.valueType, required=not kind.valueContainsNull, path=f"{path}{{}}")


def _missing_inside(array: Column, kind: Any, *, required: bool, path: str) -> Iterator[tuple[str, Column]]:
    from pyspark.sql import functions as F

    def lacks(element: Column) -> Column:
        inside = [condition for _, condition in _missing(element, kind, path)]
        return reduce(or_, [element.isNull(), *inside] if required else inside)

    if required or any(True for _ in _missing(array[0], kind, path)):
        yield path, F.exists(array, lacks)


def _misfits(value: Any, kind: Any, path: str) -> Iterator[str]:
    """What a person would say is wrong with a parsed document, field by field."""
    from pyspark.sql import types as t

    if value is None:
        return
    expected = _PYTHON.get(kind.typeName())
    if expected is not None and (not isinstance(value, expected) or (isinstance(value, bool) and bool not in expected)):
        yield f"field {path}: {stdlib_json.dumps(value)[:_SHOWN]} is no {kind.simpleString()}"
        return
    match kind:
        case t.StructType():
            for field in kind.fields:
                yield from _misfits(value.get(field.name), field.dataType, f"{path}.{field.name}".lstrip("."))
        case t.ArrayType():
            for index, element in enumerate(value):
                yield from _misfits(element, kind.elementType, f"{path}[{index}]")


def _sample(kind: Any, number: int) -> Any:
    from pyspark.sql import types as t

    match kind:
        case t.StructType():
            return {field.name: _sample(field.dataType, number + index) for index, field in enumerate(kind.fields)}
        case t.ArrayType():
            return [_sample(kind.elementType, number + index) for index in range(2)]
        case t.MapType():
            return {"key": _sample(kind.valueType, number)}
        case t.BooleanType():
            return number % 2 == 0
        case t.DateType():
            return f"2026-01-{number % 28 + 1:02d}"
        case t.TimestampType() | t.TimestampNTZType():
            return f"2026-01-31T12:{number % 60:02d}:00.125"
        case t.FloatType() | t.DoubleType():
            return number % 1000 + 0.25
        case t.NumericType():
            return number % 100
        case _:
            # Text of various lengths, few or many of a kind; base64 as well, where the column is binary.
            return f"{number % 10_000 if number % 3 else number % 5:08d}" * (1 + number % 4)


_PYTHON: Final[dict[str, tuple[type, ...]]] = {
    "struct": (dict,),
    "map": (dict,),
    "array": (list,),
    "boolean": (bool,),
    "byte": (int,),
    "short": (int,),
    "integer": (int,),
    "long": (int,),
    "date": (str,),
}
"""Spark's type name -> Python types that `json.loads` gives for a fitting value; types not listed are not judged."""
