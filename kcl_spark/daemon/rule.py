"""A rule of the lint is a row: a name, a level, one sentence, and a function from settings to hits.

Levels: an *error* ends the start, halts or dead-locks the daemon, can skip records, or is not what is written; a
*warning* costs money, time or replayed records. A worker refuses the first and reports the second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from kcl_spark.daemon.keys import Key, find, spelled
from kcl_spark.daemon.properties import Entry, effective, entry_of, logical_lines
from kcl_spark.daemon.values import number
from kcl_spark.errors import UsageError

Level = Literal["error", "warning"]


class Hit(NamedTuple):
    """Where a rule applies; line 0 where it is about what the file lacks."""

    line: int
    key: str
    message: str
    remedy: str


@dataclass(frozen=True)
class Settings:
    """A properties text as the daemon sees it, for rules to look at.

    Attributes:
        text: as read, line ends included.
        entries: every assignment, in order.
        malformed: numbers of the lines that can't be read.
        counting: the assignments that count, by the name that keys.py has for them.
        exactly_once: whether skipping records is a fault.
        version: the daemon's.
    """

    text: str
    entries: tuple[Entry, ...]
    malformed: tuple[int, ...]
    counting: Mapping[str, Entry]
    exactly_once: bool
    version: str

    @classmethod
    def of(cls, text: str, *, exactly_once: bool, version: str) -> Settings:
        """Read a text; lines that can't be read are noted, not raised."""
        entries, malformed = [], []
        for line in logical_lines(text):
            try:
                entries.append(entry_of(line))
            except UsageError:
                malformed.append(line.number)
        counting = {_name(entry.key): entry for entry in effective(entries).values()}
        return cls(text, tuple(entries), tuple(malformed), counting, exactly_once, version)

    def known(self) -> Iterator[tuple[Key, Entry]]:
        """The assignments that count, with what is known of their keys; unknown ones are left out."""
        for entry in self.counting.values():
            key = find(entry.key)
            if key:
                yield key, entry

    def value(self, name: str) -> str | None:
        """The text of a setting, by either of its paths."""
        entry = self.counting.get(name)
        return entry.value if entry else None

    def number(self, name: str) -> float | int:
        """A setting as a number, 0 where it is absent or unreadable: as the daemon has it."""
        entry, key = self.counting.get(name), find(name)
        return (number(key.kind, entry.value) or 0) if entry and key else 0

    def line(self, name: str) -> int:
        """Where a setting stands; 0 where it does not."""
        entry = self.counting.get(name)
        return entry.line if entry else 0


def _name(written: str) -> str:
    key = find(written)
    return key.name if key else spelled(written)


class Rule(NamedTuple):
    """One row; `says` is what the documentation prints."""

    name: str
    level: Level
    says: str
    find: Callable[[Settings], Iterator[Hit]]
