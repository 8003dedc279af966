"""How the product's code is built: short functions, one idea a file that its first lines name, no catch-all names."""

import ast
import statistics
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "kcl_spark"

FILES = sorted(PACKAGE.rglob("*.py"))


def functions() -> Iterator[tuple[str, int]]:
    """Each function's name, and the lines of its body without the docstring."""
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef):
                body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
                yield f"{file.relative_to(PACKAGE)}:{node.name}", (body[-1].end_lineno or 0) - body[0].lineno + 1


def test_functions_are_short() -> None:
    lengths = dict(functions())
    assert statistics.median(lengths.values()) <= 10
    assert statistics.quantiles(lengths.values(), n=10)[-1] <= 40
    assert {name: length for name, length in lengths.items() if length > 70} == {}


def test_every_file_says_what_it_is_for() -> None:
    assert [file for file in FILES if not ast.get_docstring(ast.parse(file.read_text()))] == []


def test_no_file_is_named_after_nothing() -> None:
    assert [file for file in FILES if file.stem in ("util", "utils", "helper", "helpers", "manager", "common")] == []
