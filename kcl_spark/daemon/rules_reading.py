"""Does the daemon read what is written? Keys that it ignores, values that it turns into others or ends at."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from kcl_spark.daemon import keys
from kcl_spark.daemon.keys import Key, Kind, version_order
from kcl_spark.daemon.properties import BLANKS, Entry
from kcl_spark.daemon.rule import Hit, Rule, Settings
from kcl_spark.daemon.values import CUT, FALSE, NUMBERS, TRUE, number

_NO_DUPLICATE: Final = "Keep one of them"
_DURATION: Final = re.compile(
    r"P(?=.)(\+?\d+D)?(T(?=.)(\+?\d+H)?(\+?\d+M)?(\+?\d+([.,]\d{0,9})?S)?)?", re.IGNORECASE | re.ASCII
)
_ALIKE: Final = 0.75
"""How much of two names must agree for one to be a misspelling of the other."""


def _malformed(settings: Settings) -> Iterator[Hit]:
    for line in settings.malformed:
        yield Hit(
            line, "", "a \\u without four hexadecimal digits ends the daemon's start", "Write a backslash as \\\\"
        )


def _unknown(settings: Settings) -> Iterator[Entry]:
    for entry in settings.entries:
        if keys.find(entry.key) is None and keys.builder_of(entry.key) is None:
            yield entry


def _folded(name: str) -> str | None:
    """The name with its letters in the right case, where that is all that is wrong with it."""
    front, dot, inner = name.partition(".")
    builders = {builder.lower(): builder for builder in (*keys.BUILDERS, *keys.CREDENTIAL_BUILDERS)}
    if dot and front.lower() in builders:
        return f"{builders[front.lower()]}.{inner}"
    return {known.lower(): known for known in keys.names()}.get(name.lower())


def _wrong_case(settings: Settings) -> Iterator[Hit]:
    for entry in _unknown(settings):
        meant = _folded(entry.key)
        if meant:
            message = f"{entry.key} is ignored: the case of its letters is wrong"
            yield Hit(entry.line, entry.key, message, f"Write {meant}")


def _alike(name: str) -> str | None:
    close = difflib.get_close_matches(name, keys.names(), 1, _ALIKE)
    return close[0] if close else None


def _misspelt(settings: Settings) -> Iterator[Hit]:
    for entry in _unknown(settings):
        meant = _alike(entry.key)
        if meant and not _folded(entry.key):
            message = f"{entry.key} is ignored: the daemon knows no such property"
            yield Hit(entry.line, entry.key, message, f"Did you mean {meant}?")


def _unknown_key(settings: Settings) -> Iterator[Hit]:
    for entry in _unknown(settings):
        if not _folded(entry.key) and not _alike(entry.key):
            message = f"{entry.key} is ignored: the daemon knows no such property"
            yield Hit(entry.line, entry.key, message, "Remove it")


def _unknown_of_client(settings: Settings) -> Iterator[Hit]:
    for entry in settings.entries:
        builder, dot, inner = entry.key.partition(".")
        known = keys.BUILDERS.get(builder)
        name = inner.partition(".")[0].partition("[")[0]
        if dot and known and name not in known:
            message = f"the AWS SDK's builder of {builder} has no {name}, and the start ends there"
            yield Hit(entry.line, entry.key, message, f"Set one of {', '.join(known)}")


def _newer(settings: Settings) -> Iterator[Hit]:
    for key, entry in settings.known():
        if version_order(key.since) > version_order(settings.version):
            message = f"{key.name} is ignored: the daemon knows it from {key.since} on, and this is {settings.version}"
            yield Hit(entry.line, entry.key, message, f"Remove it, or run bin/fetch-daemon --version {key.since}")


def _duplicate(settings: Settings) -> Iterator[Hit]:
    last = {entry.key: entry for entry in settings.entries}
    for entry in settings.entries:
        if entry.line != last[entry.key].line:
            message = f"{entry.key} is set again in line {last[entry.key].line}, which counts"
            yield Hit(entry.line, entry.key, message, _NO_DUPLICATE)


def _two_names(settings: Settings) -> Iterator[Hit]:
    lines = {entry.key: entry.line for entry in settings.entries}
    for one, other in keys.RIVALS:
        if one in lines and other in lines:
            message = f"{one} and {other} set the same thing, and nothing says which one wins"
            yield Hit(lines[other], other, message, _NO_DUPLICATE)
    spellings: dict[str, str] = {}
    for name, line in lines.items():
        if spellings.setdefault(keys.spelled(name), name) != name:
            message = f"{name} and {spellings[keys.spelled(name)]} are the same property, and two of it end the start"
            yield Hit(line, name, message, _NO_DUPLICATE)


def _consequence(key: Key | None, value: str) -> str:
    match key.kind if key else Kind.TEXT:
        case Kind.ENUM | Kind.STRICT_INT | Kind.EPOCH_SECONDS | Kind.URI | Kind.REGION | Kind.NEVER:
            return "and the start ends there"
        case Kind.BOOLEAN if value.strip(BLANKS).lower() in TRUE:
            return "which makes it false"
        case Kind.BOOLEAN:
            return "and counts as no boolean, which is false"
        case _:
            return "and belongs to the value"


def _trailing_blank(settings: Settings) -> Iterator[Hit]:
    for entry in settings.counting.values():
        key = keys.find(entry.key)
        if entry.value[-1:] in BLANKS and entry.value and not (key and key.kind in CUT):
            message = f"the value of {entry.key} ends in a blank, {_consequence(key, entry.value)}"
            yield Hit(entry.line, entry.key, message, "Remove the blank")


def _cut_blank(settings: Settings) -> Iterator[Hit]:
    for key, entry in settings.known():
        if key.kind in CUT and entry.value and entry.value[-1] in BLANKS:
            message = f"the value of {entry.key} ends in a blank, which does no harm here"
            yield Hit(entry.line, entry.key, message, "Remove the blank: after other keys it belongs to the value")


def _line_ends(settings: Settings) -> Iterator[Hit]:
    before, found, _ = settings.text.partition("\r\n")
    if found:
        message = "lines end in CR LF: Java reads them, but shells and greps that read this file see values with a CR"
        yield Hit(before.count("\n") + 1, "", message, "Save the file with Unix line ends")


def _not_ascii(settings: Settings) -> Iterator[Hit]:
    for number_, line in enumerate(re.split(r"\r\n|\r|\n", settings.text), 1):
        if not line.isascii() and line.lstrip(BLANKS)[:1] not in ("#", "!"):
            message = "a letter beyond ASCII: the daemon reads the file as ISO-8859-1, whatever it was saved as"
            yield Hit(number_, "", message, "Write it as \\u and four hexadecimal digits")


_UNREADABLE: Final = {
    "timeoutInSeconds": "becomes 0, which halts the daemon at the first message to a child",
    "maxActiveThreads": "ends the start",
    "initialPositionInStreamExtended": "ends the start",
}


def _not_a_number(settings: Settings) -> Iterator[Hit]:
    for key, entry in settings.known():
        if key.kind in NUMBERS and number(key.kind, entry.value.strip(BLANKS)) is None:
            becomes = "becomes 0, and 0 it is" if key.boxed else f"becomes 0, which means the default, {key.default}"
            message = (
                f"{entry.value.strip(BLANKS)!r} is no number for {entry.key}: it {_UNREADABLE.get(key.name, becomes)}"
            )
            yield Hit(entry.line, entry.key, message, "Write digits only")


def _zero(settings: Settings) -> Iterator[Hit]:
    for key, entry in settings.known():
        means_default = not key.boxed and not key.zero and key.default != "0" and key.kind is not Kind.EPOCH_SECONDS
        if key.kind in NUMBERS and means_default and number(key.kind, entry.value) == 0:
            message = f"0 for {entry.key} is taken for not set: the default holds, {key.default}"
            yield Hit(entry.line, entry.key, message, "Write another number, or remove the line")


def _negative(settings: Settings) -> Iterator[Hit]:
    for key, entry in settings.known():
        found = number(key.kind, entry.value) if key.kind in NUMBERS else None
        if found is not None and found < 0:
            message = f"{entry.key} is {entry.value.strip(BLANKS)}, which the daemon takes as it is"
            yield Hit(entry.line, entry.key, message, "Write a positive number")


def _not_a_boolean(settings: Settings) -> Iterator[Hit]:
    for key, entry in settings.known():
        word = entry.value.strip(BLANKS)
        if key.kind is Kind.BOOLEAN and word.lower() not in TRUE | FALSE:
            message = f"{word!r} is no boolean for {entry.key}: it becomes false"
            yield Hit(entry.line, entry.key, message, "Write true or false")


def _false_changes_nothing(settings: Settings) -> Iterator[Hit]:
    name = "cleanupLeasesUponShardCompletion"
    value = settings.value(name)
    if value is not None and value.lower() not in TRUE:
        message = f"{name} = false changes nothing: false is taken for not set, and the default is true"
        yield Hit(settings.line(name), name, message, "Remove the line")


def _bad_choice(settings: Settings) -> Iterator[Hit]:
    for key, entry in settings.known():
        word, values = entry.value.strip(BLANKS), key.values_of(settings.version)
        if key.kind is Kind.ENUM and word.upper() not in values:
            later = f" of the daemon {settings.version}" if key.later and word.upper() == key.later[0] else ""
            message = f"{word!r} is no value of {entry.key}{later}, and the start ends there"
            also = ", or set initialPositionInStreamExtended" if word.upper() == "AT_TIMESTAMP" else ""
            yield Hit(entry.line, entry.key, message, f"Write one of {', '.join(values)}{also}")


def _bad_duration(settings: Settings) -> Iterator[Hit]:
    for key, entry in settings.known():
        if key.kind is Kind.DURATION and not _DURATION.fullmatch(entry.value.strip(BLANKS)):
            message = f"{entry.value!r} is no duration for {entry.key}, and the start ends there"
            yield Hit(entry.line, entry.key, message, "Write a day as P1D, ten minutes as PT10M")


def _bad_tags(settings: Settings) -> Iterator[Hit]:
    for key, entry in settings.known():
        parts = entry.value.split(",") if key.kind is Kind.TAGS else []
        for part in parts:
            if part.count("=") != 1 or not all(side.strip() for side in part.split("=")):
                message = f"the tag {part.strip()!r} of {entry.key} is ignored"
                yield Hit(entry.line, entry.key, message, "Write name=value, separated by commas")


def _bad_endpoint(settings: Settings) -> Iterator[Hit]:
    for entry in (settings.counting[name] for name in keys.ENDPOINTS if name in settings.counting):
        url = urlsplit(entry.value.strip(BLANKS))
        if url.scheme not in ("http", "https") or not url.netloc:
            message = f"{entry.value!r} is no address for {entry.key}: every call to it fails"
            yield Hit(entry.line, entry.key, message, "Write https://HOST:PORT")


def _never(settings: Settings) -> Iterator[Hit]:
    for key, entry in settings.known():
        if key.kind is Kind.NEVER:
            yield Hit(entry.line, entry.key, f"{entry.key} is {key.note}: the start ends there", "Remove the line")


def _unused(settings: Settings) -> Iterator[Hit]:
    name = "validateSequenceNumberBeforeCheckpointing"
    if name in settings.counting:
        yield Hit(settings.line(name), name, f"{name} is read and used by nothing", "Remove the line")


RULES: Final[tuple[Rule, ...]] = (
    Rule("malformed-escape", "error", "a `\\u` without four hexadecimal digits ends the start", _malformed),
    Rule("wrong-case", "error", "a key whose letters have the wrong case is ignored without a word", _wrong_case),
    Rule("misspelt-key", "error", "a key that is nearly one of the daemon's is ignored without a word", _misspelt),
    Rule("unknown-key", "warning", "a key that the daemon does not know is ignored without a word", _unknown_key),
    Rule("unknown-client-setting", "error", "a name that the SDK's builder lacks ends the start", _unknown_of_client),
    Rule("newer-key", "warning", "a key that only a later daemon knows is ignored without a word", _newer),
    Rule("duplicate", "warning", "of several lines with one key the last one counts", _duplicate),
    Rule("two-names", "error", "two keys set the same thing, and nothing says which one wins", _two_names),
    Rule(
        "trailing-blank",
        "error",
        "a blank at a value's end makes `true` false and ends the start elsewhere",
        _trailing_blank,
    ),
    Rule("harmless-blank", "warning", "a blank at the end of a number or list is cut off", _cut_blank),
    Rule("line-ends", "warning", "CR LF is read by Java and misread by other tools", _line_ends),
    Rule("not-ascii", "warning", "the daemon reads the file as ISO-8859-1", _not_ascii),
    Rule("not-a-number", "error", "a number that can't be read becomes 0, or ends the start", _not_a_number),
    Rule("zero", "warning", "0 is taken for not set", _zero),
    Rule("negative", "error", "negative numbers are taken as they are", _negative),
    Rule("not-a-boolean", "error", "whatever is not true, yes, y, on or 1 is false", _not_a_boolean),
    Rule(
        "false-changes-nothing",
        "warning",
        "`cleanupLeasesUponShardCompletion = false` has no effect",
        _false_changes_nothing,
    ),
    Rule("bad-choice", "error", "an unknown value of a choice ends the start", _bad_choice),
    Rule("bad-duration", "error", "a duration that is not of ISO 8601 ends the start", _bad_duration),
    Rule("bad-tag", "warning", "a tag without name or value is ignored", _bad_tags),
    Rule("bad-endpoint", "error", "an endpoint without http:// or https:// can't be called", _bad_endpoint),
    Rule("never", "error", "`shardPrioritization` ends the start, whatever its value", _never),
    Rule("unused", "warning", "`validateSequenceNumberBeforeCheckpointing` is used by nothing", _unused),
)
