"""The files that a user copies: as good as what is generated, and equal to what is packaged."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kcl_spark.daemon.command import LOGBACK
from kcl_spark.daemon.generate import DaemonOptions, generate
from kcl_spark.daemon.keys import TESTED_VERSION, find
from kcl_spark.daemon.lint import RULES, lint
from kcl_spark.daemon.properties import effective, parse, read

ROOT = Path(__file__).parents[2]
EXAMPLE = read(ROOT / "properties" / "kcl.properties")
FILLED = re.sub(r"<pipeline\.py>", "flights.py", re.sub(r"<([a-z]+)>", r"\1", EXAMPLE))
PLACES = {"applicationName", "streamName", "executableName", "workerId", "regionName"}


def test_only_what_has_to_be_filled_in_is_found_fault_with() -> None:
    assert {finding.key for finding in lint(EXAMPLE)} <= PLACES
    assert {entry.key for entry in parse(EXAMPLE) if "<" in entry.value} == PLACES


def test_nothing_is_wrong_with_it_once_it_is_filled_in() -> None:
    assert lint(FILLED) == []


def test_it_is_what_is_generated() -> None:
    options = DaemonOptions(
        application="application",
        stream="stream",
        executable=("kcl-spark", "child", "flights.py"),
        worker_id="worker",
        region="region",
    )
    values = [
        {key: entry.value for key, entry in effective(parse(text)).items()} for text in (FILLED, generate(options))
    ]
    assert values[0] == values[1]


@pytest.mark.parametrize("line", re.findall(r"^# (\w+ = .*)$", EXAMPLE, re.MULTILINE))
def test_a_line_that_is_commented_out_can_be_used(line: str) -> None:
    (entry,) = parse(line)
    assert find(entry.key)
    kept = [line for line in FILLED.splitlines() if not line.startswith("initialPositionInStream ")]
    text = "\n".join([*kept, line] if entry.key.startswith("initial") else [*FILLED.splitlines(), line])
    assert lint(text) == []


def test_the_copy_of_the_logging_is_the_packaged_one() -> None:
    assert (ROOT / "properties" / "logback.xml").read_bytes() == LOGBACK.read_bytes()


def test_what_children_say_is_logged_once_and_properties_never() -> None:
    levels = {
        logger.get("name", "").rpartition(".")[2]: logger.get("level")
        for logger in ElementTree.parse(LOGBACK).iter("logger")
    }
    assert levels["DrainChildSTDERRTask"] == "OFF"
    assert not {"KinesisClientLibConfigurator", "MessageWriter", "LineReaderTask", "MultiLangProtocol"} & set(levels)


def test_maven_gets_the_version_that_is_tested() -> None:
    text = (ROOT / "properties" / "pom.xml").read_text()
    ElementTree.fromstring(text)
    assert re.findall(r"<multilang\.version>(.*)</multilang\.version>", text) == [TESTED_VERSION]


def test_the_documentation_lists_every_rule() -> None:
    text = (ROOT / "docs" / "daemon.md").read_text()
    rows = re.findall(r"^\| `([a-z0-9-]+)` \| (error|warning) \| (.*) \|$", text, re.MULTILINE)
    assert rows == [(rule.name, rule.level, rule.says) for rule in RULES]
