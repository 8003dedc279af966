"""The parts that decide are pure: they read no clock, draw no number, and so do the same on every run."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import kcl_spark

ROOT = Path(kcl_spark.__file__).parent
WORKER = ("shard", "batching", "deliveries", "start", "worker", "isolation", "letters")
PURE = [*sorted((ROOT / "protocol").glob("*.py")), *(ROOT / "worker" / f"{name}.py" for name in WORKER)]

MODULES = {"time", "random", "secrets", "uuid", "threading", "socket", "subprocess", "selectors", "asyncio"}
CLOCKS = {"now", "utcnow", "today"}


def impurities(source: str) -> Iterator[str]:
    """What a module does that depends on when or where it runs."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.split(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in MODULES:
            yield str(node.module)
        elif isinstance(node, ast.Attribute) and node.attr in CLOCKS and "date" in ast.unparse(node.value):
            yield ast.unparse(node)


@pytest.mark.parametrize("path", PURE, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_clock_and_no_chance(path: Path) -> None:
    assert list(impurities(path.read_text())) == []


@pytest.mark.parametrize(
    "line",
    [
        "import time",
        "from time import monotonic",
        "import random as r",
        "from random import choice",
        "from datetime import datetime; x = datetime.now()",
        "import datetime; x = datetime.date.today()",
    ],
)
def test_the_search_finds_what_it_looks_for(line: str) -> None:
    assert list(impurities(line))
