"""What the daemon makes of a value: numbers, booleans and choices as its Java converts them, mistakes included."""

from __future__ import annotations

import re
from typing import Final

from kcl_spark.daemon.keys import Key, Kind
from kcl_spark.daemon.properties import BLANKS

TRUE: Final = frozenset({"true", "yes", "y", "on", "1"})
FALSE: Final = frozenset({"false", "no", "n", "off", "0"})

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_DECIMAL: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?")
_BITS: Final = {Kind.INT: 32, Kind.STRICT_INT: 32, Kind.LONG: 64, Kind.EPOCH_SECONDS: 64}

NUMBERS: Final = frozenset({*_BITS, Kind.DOUBLE})
"""Kinds that are numbers."""

CUT: Final = frozenset({Kind.INT, Kind.LONG, Kind.DOUBLE, Kind.LIST, Kind.DURATION, Kind.TAGS, Kind.CREDENTIALS})
"""Kinds whose values lose the blanks at their ends."""

_ACCESS_KEY: Final = re.compile(r"(?<![A-Z0-9])A(?:KIA|SIA)[A-Z0-9]{16}(?![A-Z0-9])")
_SECRET_NAME: Final = re.compile(r"secret|password|session_?token|access_?key", re.IGNORECASE)


def number(kind: Kind, value: str) -> float | int | None:
    """The number that a value is, or None where the daemon can't read it."""
    text = value.strip(BLANKS) if kind in CUT else value
    if kind is Kind.DOUBLE:
        return float(text.rstrip("dDfF")) if _DECIMAL.fullmatch(text) else None
    if not _INTEGER.fullmatch(text):
        return None
    half = 1 << (_BITS[kind] - 1)
    return int(text) if -half <= int(text) < half else None


def is_true(value: str | None) -> bool:
    """Whether the daemon takes a value for true; a blank at its end makes it false."""
    return value is not None and value.lower() in TRUE


def is_secret(name: str, value: str) -> bool:
    """Whether an assignment looks like a credential itself."""
    return bool(_ACCESS_KEY.search(value) or (value and _SECRET_NAME.search(name)))


def holds_access_key(line: str) -> bool:
    """Whether a line, comments included, holds what looks like an AWS access key."""
    return bool(_ACCESS_KEY.search(line))


def understood(key: Key, value: str) -> str:
    """The value as the daemon takes it, with the reason where that is not what was written."""
    if key.kind in NUMBERS:
        return _understood_number(key, value)
    if key.kind is Kind.BOOLEAN:
        known = value.lower() in TRUE | FALSE
        return str(is_true(value)).lower() if known else f"false ({value!r} is no boolean)"
    return value.upper() if key.kind is Kind.ENUM else value


def _understood_number(key: Key, value: str) -> str:
    found = number(key.kind, value)
    if found is None:
        instead = "0" if key.boxed else key.default
        strict = key.kind in (Kind.STRICT_INT, Kind.EPOCH_SECONDS)
        return f"{value} (no number: ends the start)" if strict else f"{instead} ({value!r} is no number)"
    if found == 0 and not key.boxed:
        return f"0 ({key.zero})" if key.zero else f"{key.default} (0 means the default)"
    return str(found)
