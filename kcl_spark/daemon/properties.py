r"""Read a .properties text exactly as the daemon's Java reads it, with the line that each entry begins on.

Exactly, because the differences are what goes wrong: a blank at the end of a line belongs to the value, a backslash
before it joins the next line, the last of several entries of one key wins, and bytes are ISO-8859-1.

The library jproperties was tried and differs: it keeps no line numbers and no duplicates, takes comments that begin
with `#:` for entries, joins `key \` and a line that begins with `=` to a value with an equals sign, and rejects half
a surrogate pair. tests/daemon_settings/test_properties.py holds this parser against java.util.Properties itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from kcl_spark.errors import UsageError

BLANKS: Final = " \t\f"
"""What Java takes for blanks in these files; a line's end apart."""

_EOL: Final = re.compile(r"\r\n|\r|\n")
_SPLIT: Final = re.compile(r"((?:[^\\=: \t\f]|\\.)*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_LETTERS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Line(NamedTuple):
    """A logical line: what joined lines come to, and the number of the first of them."""

    number: int
    text: str


class Entry(NamedTuple):
    """One assignment and the line that it begins on."""

    line: int
    key: str
    value: str


def read(path: Path) -> str:
    """The text of a file, decoded as the daemon does, with its line ends as they are.

    Raises:
        UsageError: the file can't be read.
    """
    try:
        return path.read_bytes().decode("iso-8859-1")
    except OSError as error:
        raise UsageError(f"the properties file {path} can't be read: {error.strerror}", "Name another file") from error


def logical_lines(text: str) -> Iterator[Line]:
    """The lines that hold an entry, joined where they end in a backslash, without comments and leading blanks."""
    joined: Line | None = None
    for number, line in enumerate(_natural_lines(text), 1):
        part = line.lstrip(BLANKS)
        if not (joined and joined.text):
            joined = None if part[:1] in ("", "#", "!") else Line(number, "")
        if joined is None:
            continue
        joined = Line(joined.number, joined.text + part)
        if _continues(part):
            joined = Line(joined.number, joined.text[:-1])
        else:
            yield joined
            joined = None
    if joined is not None:
        yield joined


def _natural_lines(text: str) -> list[str]:
    lines = _EOL.split(text)
    # What follows the last line's end is no line to Java, unless the end is CR LF, of which it then sees the LF alone.
    return lines[:-1] if lines[-1] == "" and not text.endswith("\r\n") else lines


def _continues(part: str) -> bool:
    backslashes = len(part) - len(part.rstrip("\\"))
    return backslashes % 2 == 1


def entry_of(line: Line) -> Entry:
    r"""Cut a logical line into key and value.

    Raises:
        UsageError: a `\u` without four hexadecimal digits, at which the daemon ends.
    """
    match = _SPLIT.fullmatch(line.text)
    assert match, "the pattern fits every text"
    try:
        return Entry(line.number, _unescape(match[1]), _unescape(match[2]))
    except ValueError:
        raise UsageError(
            f"line {line.number} has a \\u without four hexadecimal digits", "Write a backslash as \\\\"
        ) from None


def _unescape(text: str) -> str:
    plain = _ESCAPE.sub(_meaning, text)
    if plain.isascii():
        return plain
    # Java's strings are UTF-16: two escapes may be the halves of one character.
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _meaning(match: re.Match[str]) -> str:
    escape = match[1]
    if escape[0] == "u":
        return chr(int(escape[1:], 16))  # a lone `u` raises ValueError
    return _LETTERS.get(escape, escape)


def parse(text: str) -> list[Entry]:
    """Every entry in order, duplicates included.

    Raises:
        UsageError: as `entry_of`.
    """
    return [entry_of(line) for line in logical_lines(text)]


def effective(entries: Iterable[Entry]) -> dict[str, Entry]:
    """The entries that count, by key: the last of each."""
    return {entry.key: entry for entry in entries}


def write(key: str, value: str) -> str:
    """One line that reads back as this key and value."""
    name = _escape(key)
    for separator in "=: #!":
        name = name.replace(separator, f"\\{separator}")
    escaped = _escape(value)
    return f"{name} = \\{escaped}" if escaped.startswith(" ") else f"{name} = {escaped}"


def _escape(text: str) -> str:
    for letter, plain in {"\\": "\\", **_LETTERS}.items():
        text = text.replace(plain, f"\\{letter}")
    if text.isascii():
        return text
    units = text.encode("utf-16-be", "surrogatepass")
    codes = [int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2)]
    return "".join(chr(code) if code < 128 else f"\\u{code:04x}" for code in codes)
