"""The doctor's look at the machine: each good thing, and each thing that can be wrong with it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kcl_spark.daemon import checks, jars
from kcl_spark.daemon.checks import Check
from kcl_spark.daemon.keys import TESTED_VERSION
from tests.daemon_settings.cases import GOOD

GIB = 2**30
JAVA_17 = 'openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment'
JAVA_8 = 'java version "1.8.0_392"'


@pytest.mark.parametrize(
    ("told", "version"), [(JAVA_17, 17), (JAVA_8, 8), ('openjdk version "21" 2023-09-19', 21), ("no java", None)]
)
def test_the_version_is_read_from_what_java_prints(told: str, version: int | None) -> None:
    assert checks.java_version(told) == version


def java_that_says(folder: Path, told: str) -> dict[str, str]:
    program = folder / "java"
    program.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{told}\nEND\n")
    program.chmod(0o755)
    return {"PATH": str(folder)}


@pytest.mark.parametrize(
    ("told", "level", "found"),
    [(JAVA_17, "ok", "Java 17"), (JAVA_8, "error", "Java 8"), ("Error: no JVM", "error", "tells no version")],
)
def test_java(tmp_path: Path, told: str, level: str, found: str) -> None:
    check = checks.java(java_that_says(tmp_path, told))
    assert check.level == level
    assert found in check.found


def test_no_java_and_a_java_that_cannot_run(tmp_path: Path) -> None:
    assert checks.java({"PATH": str(tmp_path)}).level == "error"
    environment = java_that_says(tmp_path, JAVA_17)
    (tmp_path / "java").write_bytes(b"\x7fELF no program")
    check = checks.java(environment)
    assert (check.level, check.found.partition(":")[0]) == ("error", "java can't be run")


def machine(root: Path, available: int, **control_group: int | str) -> Path:
    (root / "proc").mkdir(parents=True)
    (root / "proc/meminfo").write_text(f"MemTotal: 9 kB\nMemAvailable:   {available // 1024} kB\n")
    for name, value in control_group.items():
        path = root / "sys/fs/cgroup" / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")
    return root


@pytest.mark.parametrize(
    ("available", "control_group", "level", "found"),
    [
        (4 * GIB, {}, "ok", "4.0 GiB free"),
        (1 * GIB, {}, "warning", "1.0 GiB free"),
        (GIB // 2, {}, "error", "0.5 GiB free"),
        (8 * GIB, {"memory_DOT_max": 2 * GIB, "memory_DOT_current": GIB}, "warning", "1.0 GiB free"),
        (8 * GIB, {"memory_DOT_max": "max", "memory_DOT_current": GIB}, "ok", "8.0 GiB free"),
        (
            8 * GIB,
            {"memory_DOT_max": 3 * GIB, "memory_DOT_current": 2 * GIB, "memory_DOT_stat": f"x 5\ninactive_file {GIB}"},
            "ok",
            "2.0 GiB free",
        ),
        (
            8 * GIB,
            {"memory__memory.limit_in_bytes": 2 * GIB, "memory__memory.usage_in_bytes": 2 * GIB},
            "error",
            "0.0 GiB free",
        ),
        (GIB, {"memory_DOT_max": 8 * GIB, "memory_DOT_current": GIB}, "warning", "1.0 GiB free"),
    ],
)  # fmt: skip
def test_memory_is_what_the_tighter_of_machine_and_container_has(
    tmp_path: Path, available: int, control_group: dict[str, int | str], level: str, found: str
) -> None:
    check = checks.memory(3 * GIB // 2, machine(tmp_path, available, **control_group))
    assert (check.level, check.found) == (level, found)


def test_memory_that_cannot_be_told_is_a_warning(tmp_path: Path) -> None:
    assert checks.memory(GIB, tmp_path).level == "warning"


def test_memory_of_this_machine_can_be_told() -> None:
    assert "free" in checks.memory().found


def test_disk_is_that_of_the_first_folder_that_is_there(tmp_path: Path) -> None:
    check = checks.disk(tmp_path / "a" / "b", 1)
    assert check.level == "ok"
    assert check.found.endswith(f"free at {tmp_path}")


def test_too_small_a_disk_is_an_error(tmp_path: Path) -> None:
    check = checks.disk(tmp_path, 2**62)
    assert check.level == "error"
    assert "--spool" in check.remedy


def private(path: Path) -> None:
    path.mkdir(mode=0o700)


def open_to_others(path: Path) -> None:
    path.mkdir()
    path.chmod(0o750)


def link(path: Path) -> None:
    path.with_name("real").mkdir(mode=0o700)
    path.symlink_to(path.with_name("real"))


def below_a_file(path: Path) -> None:
    path.parent.rmdir()
    path.parent.touch()


@pytest.mark.parametrize(
    ("make", "level", "found"),
    [
        (lambda _: None, "ok", "will be made"),
        (private, "ok", "folder"),
        (open_to_others, "error", "is open to others"),
        (link, "error", "is no folder of this user"),
        (Path.touch, "error", "is no folder of this user"),
        (below_a_file, "error", "can't be looked at"),
    ],
)
def test_the_socket_folder(tmp_path: Path, make: Callable[[Path], None], level: str, found: str) -> None:
    folder = tmp_path / "worker" / "folder"
    folder.parent.mkdir()
    make(folder)
    check = checks.socket_folder(folder / "engine.sock")
    assert check.level == level
    assert found in check.found


@pytest.mark.skipif(os.getuid() != 0, reason="needs a folder of somebody else")
def test_a_socket_folder_of_somebody_else_is_an_error(tmp_path: Path) -> None:
    private(tmp_path / "folder")
    os.chown(tmp_path / "folder", 12345, 12345)
    assert checks.socket_folder(tmp_path / "folder" / "engine.sock").level == "error"


@pytest.mark.parametrize(("length", "level"), [(107, "ok"), (108, "error")])
def test_a_socket_path_has_107_bytes_at_most(length: int, level: str) -> None:
    folder = Path("/" + "é" * ((length - len("//engine.sock")) // 2) + "x" * ((length - len("//engine.sock")) % 2))
    assert len(os.fsencode(folder / "engine.sock")) == length
    assert checks.socket_folder(folder / "engine.sock").level == level


def test_a_blank_in_the_childs_command_is_an_error() -> None:
    assert checks.blanks(["kcl-spark", "child", "/my files/a.py"]).level == "error"
    assert checks.blanks(["kcl-spark", "child", "a.py"]) == Check("command", "ok", "kcl-spark child a.py")


@pytest.mark.parametrize(("version", "level"), [(TESTED_VERSION, "ok"), ("3.5.1", "warning")])
def test_the_daemons_jars(tmp_path: Path, version: str, level: str) -> None:
    for name in (f"amazon-kinesis-client-multilang-{version}", f"amazon-kinesis-client-{version}", "logback-classic-1"):
        (tmp_path / f"{name}.jar").write_bytes(b"PK")
    check = checks.daemon_jars(tmp_path, {})
    assert check.level == level
    assert version in check.found


def test_no_jars_say_how_to_get_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "find_spec", lambda _: None)
    check = checks.daemon_jars(None, {"HOME": str(tmp_path)})
    assert check.level == "error"
    assert "bin/fetch-daemon" in check.remedy


def test_properties_are_summed_up_by_the_worst() -> None:
    assert checks.properties(GOOD).level == "ok"
    assert checks.properties(GOOD + "colour=blue").level == "warning"
    check = checks.properties(GOOD + "colour=blue\nfailoverTimeMillis=x")
    assert check.level == "error"
    assert check.found.startswith("1 errors, 1 warnings, such as: 'x' is no number")
