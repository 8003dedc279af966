"""`python -m kcl_spark.compat app.py` runs a script as `python app.py` would, whatever `amazon_kclpy` is installed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from kcl_spark.compat.aliases import MODULES
from tests.compat.daemon import APPS, BEGIN, LEASE_LOST, OURS, ROOT, Child, Daemon, Life, batch, status


def live(command: Sequence[str], folder: Path, app: str, *arguments: str, **environment: str) -> Life:
    return Child(command, app, folder, environment, *arguments).live(Daemon([BEGIN]))


def test_the_old_names_are_ours_even_where_the_package_cannot_be_imported(tmp_path: Path) -> None:
    """An `amazon_kclpy` that raises stands first in the path."""
    broken = tmp_path / "path" / "amazon_kclpy"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('this is not to be imported')")
    path = f"{broken.parent}:{ROOT}"
    life = live(OURS, tmp_path, "wanderer.py", PYTHONPATH=path)
    assert life.log == ""
    assert (life.heard, life.code) == ([status("initialize")], 0)
    assert life.noted("started") == [["__main__", [], "apps", "kcl_spark.compat.kcl"]]
    assert "this is not to be imported" in live([sys.executable], tmp_path, "wanderer.py", PYTHONPATH=path).log


def test_a_script_gets_its_arguments(tmp_path: Path) -> None:
    life = live(OURS, tmp_path, "wanderer.py", "--table", "t")
    assert life.noted("started")[0][1] == ["--table", "t"]


def test_a_module_can_be_named_in_place_of_a_script(tmp_path: Path) -> None:
    life = live(OURS, tmp_path, "-m", "wanderer", "one", PYTHONPATH=f"{APPS}:{ROOT}")
    assert life.noted("started")[0][:2] == ["__main__", ["one"]]
    assert life.code == 0


def test_changed_imports_need_neither_the_package_nor_the_command(tmp_path: Path) -> None:
    life = Child([sys.executable], "changed_imports.py", tmp_path).live(Daemon([BEGIN, batch(b"a"), LEASE_LOST]))
    assert life.heard[-1] == status("leaseLost")
    assert life.code == 0


def test_a_name_that_does_not_exist_is_not_found(tmp_path: Path) -> None:
    script = tmp_path / "app.py"
    script.write_text("import amazon_kclpy.pipes")
    life = live(OURS, tmp_path, str(script))
    assert "No module named 'amazon_kclpy.pipes'" in life.log


@pytest.mark.parametrize(
    ("command", "why"), [("--help", "no script is named"), ("absent.py", "absent.py does not exist in ")]
)
def test_a_wrong_command_is_a_line_and_a_remedy(command: str, why: str, tmp_path: Path) -> None:
    life = live(OURS, tmp_path, command)
    assert (life.heard, life.code) == ([], 2)
    assert life.log.startswith(f"kcl-spark: {why}")
    assert len(life.log.splitlines()) == 1


def test_a_processor_without_a_version_is_a_line_and_a_remedy(tmp_path: Path) -> None:
    script = tmp_path / "app.py"
    script.write_text("from amazon_kclpy import kcl\nkcl.KCLProcess(object()).run()")
    life = live(OURS, tmp_path, str(script))
    assert life.code == 2
    assert "object has no attribute `version`. Derive it from a RecordProcessorBase" in life.log


def test_importing_changes_nothing_in_the_process(tmp_path: Path) -> None:
    """A processor's own tests import it, in processes whose stdin and stdout are theirs."""
    script = tmp_path / "app.py"
    names = ", ".join(f"kcl_spark.compat.{name}" for name in MODULES)
    script.write_text(
        "import os, signal, sys\n"
        "before = [os.fstat(fd) for fd in (0, 1)], signal.getsignal(signal.SIGTERM)\n"
        f"import {names}\n"
        "kcl_spark.compat.kcl.KCLProcess(kcl_spark.compat.kcl.RecordProcessorBase())\n"
        "assert before == ([os.fstat(fd) for fd in (0, 1)], signal.getsignal(signal.SIGTERM))\n"
        "assert 'amazon_kclpy' not in sys.modules\n"
    )
    life = live([sys.executable], tmp_path, str(script))
    assert (life.log, life.code) == ("", 0)
