"""Find what is wrong with a properties file before the daemon does, which says nothing about most of it.

The rules are rows of two tables, `rules_reading` and `rules_running`; docs/daemon.md shows them, and a test holds it
against them. An error is a reason not to start; see `rule` for what makes one.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kcl_spark.daemon import rules_reading, rules_running
from kcl_spark.daemon.keys import TESTED_VERSION
from kcl_spark.daemon.rule import Level, Rule, Settings

RULES: Final[tuple[Rule, ...]] = rules_reading.RULES + rules_running.RULES


class Finding(NamedTuple):
    """One thing that is wrong.

    Attributes:
        line: where; 0 where it is about what the file lacks.
        key: the property; empty where it is about the line as such.
        level: error or warning.
        rule: the row that found it.
        message: what comes of it.
        remedy: what to write instead.
    """

    line: int
    key: str
    level: Level
    rule: str
    message: str
    remedy: str

    def __str__(self) -> str:
        where = f"line {self.line}: " if self.line else ""
        return f"{self.level}: {where}{self.message}. {self.remedy} [{self.rule}]"


def lint(text: str, *, exactly_once: bool = True, version: str = TESTED_VERSION) -> list[Finding]:
    """Everything that is wrong with a properties text, by line.

    Args:
        text: as `properties.read` returns it.
        exactly_once: whether settings that can skip records are errors.
        version: the daemon's, for keys that older ones ignore.
    """
    settings = Settings.of(text, exactly_once=exactly_once, version=version)
    return sorted(
        Finding(hit.line, hit.key, rule.level, rule.name, hit.message, hit.remedy)
        for rule in RULES
        for hit in rule.find(settings)
    )
