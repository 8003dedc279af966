"""What the documentation says is what the code does: tables, the diagram, links, and the tests that it names."""

import re
from pathlib import Path

import pytest

from docs.make_state_diagram import FILE, with_diagram
from kcl_spark.errors import ExitCode

ROOT = Path(__file__).parents[1]

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


def test_the_state_diagram_is_the_table() -> None:
    assert FILE.read_text() == with_diagram(FILE.read_text()), "run: python docs/make_state_diagram.py"


def test_every_exit_code_is_documented() -> None:
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", (ROOT / "docs" / "exit-codes.md").read_text(), re.MULTILINE)
    assert rows == [(str(int(code)), code.name) for code in ExitCode]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_witnesses_exist(page: Path) -> None:
    """A claim names its test, from the project's folder or as docs/kclpy.md does, or a file alone."""
    for file, name in re.findall(r"`([\w/]*\w+\.py)::(\w+)", page.read_text()):
        folder = ROOT if file.startswith("tests/") else ROOT / "tests" / "compat"
        assert f"def {name}(" in (folder / file).read_text(), f"{page.name} names {file}::{name}"
    for file in re.findall(r"`((?:tests|kcl_spark)/[\w/]+\.py)`", page.read_text()):
        assert (ROOT / file).is_file(), f"{page.name} names {file}"
