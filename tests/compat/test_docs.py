"""docs/kclpy.md names a test for what it claims, and the tests it names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.compat.daemon import ROOT

PAGE = (ROOT / "docs" / "kclpy.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`((?:tests/\w+/)?test_\w+\.py)::(test_\w+)`", PAGE)))


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_a_named_test_exists(file: str, test: str) -> None:
    path = ROOT / file if "/" in file else Path(__file__).parent / file
    assert f"def {test}(" in path.read_text(encoding="utf-8")


def test_every_row_with_a_proof_has_one() -> None:
    tables = [table for table in PAGE.split("\n\n") if table.startswith("| ") and "proof" in table.splitlines()[0]]
    rows = [row for table in tables for row in table.splitlines()[2:]]
    assert len(rows) > 30
    assert [row for row in rows if "::test_" not in row] == []
