"""bin/fetch-daemon, with a Maven of our own: complete or not at all, once, and one line for what is wrong."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "bin" / "fetch-daemon"

MAVEN = """#!/bin/bash
echo "$@" >> "$CALLS"
for word; do case $word in -DoutputDirectory=*) to=${word#*=} ;; -Dmultilang.version=*) version=${word#*=} ;; esac; done
echo PK > "$to/amazon-kinesis-client-multilang-$version.jar"
exit ${MAVEN_FAILS:-0}
"""


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in {"mvn": MAVEN, "java": "#!/bin/sh\n"}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    return {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(tmp_path / "home"),
        "CALLS": str(tmp_path / "calls"),
    }


def fetch(machine: dict[str, str], *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([SCRIPT, *words], env=machine, capture_output=True, text=True, timeout=30, check=False)


def calls(machine: dict[str, str]) -> list[str]:
    path = Path(machine["CALLS"])
    return path.read_text().splitlines() if path.exists() else []


def test_the_jars_come_to_the_cache_and_their_folder_is_printed(machine: dict[str, str]) -> None:
    done = fetch(machine)
    folder = Path(machine["HOME"]) / ".cache/kcl-spark/daemon-3.1.3"
    assert (done.returncode, done.stdout) == (0, f"{folder}\n")
    assert [path.name for path in folder.iterdir()] == ["amazon-kinesis-client-multilang-3.1.3.jar"]
    assert folder.stat().st_mode & 0o777 == 0o755
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_checksums_count_and_only_what_runs_is_fetched(machine: dict[str, str]) -> None:
    fetch(machine)
    (call,) = calls(machine)
    assert " -C " in call
    assert "-DincludeScope=runtime" in call


def test_a_second_time_nothing_is_done(machine: dict[str, str]) -> None:
    first, second = fetch(machine), fetch(machine)
    assert second.returncode == 0
    assert second.stdout == first.stdout
    assert len(calls(machine)) == 1


def test_another_version_and_another_folder(machine: dict[str, str], tmp_path: Path) -> None:
    done = fetch(machine, "--version", "3.5.1", "--to", str(tmp_path / "my jars"))
    assert done.stdout == f"{tmp_path}/my jars\n"
    assert (tmp_path / "my jars" / "amazon-kinesis-client-multilang-3.5.1.jar").exists()


def test_xdg_cache_home_is_honoured(machine: dict[str, str], tmp_path: Path) -> None:
    done = fetch({**machine, "XDG_CACHE_HOME": str(tmp_path / "xdg")})
    assert done.stdout == f"{tmp_path}/xdg/kcl-spark/daemon-3.1.3\n"


def test_an_empty_folder_is_filled(machine: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "to").mkdir()
    assert fetch(machine, "--to", str(tmp_path / "to")).returncode == 0


def test_a_folder_with_something_else_is_left_alone(machine: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "to").mkdir()
    (tmp_path / "to" / "mine").touch()
    done = fetch(machine, "--to", str(tmp_path / "to"))
    assert done.returncode == 2
    assert "holds something else" in done.stderr
    assert calls(machine) == []


def test_a_download_that_breaks_off_leaves_nothing(machine: dict[str, str]) -> None:
    done = fetch({**machine, "MAVEN_FAILS": "1"})
    assert done.returncode == 2
    assert "Maven can't get the daemon 3.1.3" in done.stderr.splitlines()[-1]
    assert list((Path(machine["HOME"]) / ".cache/kcl-spark").iterdir()) == []


@pytest.mark.parametrize(("missing", "package"), [("mvn", "maven"), ("java", "jre")])
def test_what_is_missing_is_named_with_the_command_that_installs_it(
    machine: dict[str, str], tmp_path: Path, missing: str, package: str
) -> None:
    # The system's programs without Maven, Java and apt-get, so that nothing can be installed here.
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "env", "sed", "dirname", "mkdir", "id", "ls", "rm"):
        (tools / name).symlink_to(next(p for p in (Path("/usr/bin") / name, Path("/bin") / name) if p.exists()))
    programs = tmp_path / "bin"
    (programs / missing).unlink()
    done = fetch({**machine, "PATH": f"{programs}:{tools}"})
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "apt-get install" in line
    assert package in line


def test_an_unknown_option_is_refused(machine: dict[str, str]) -> None:
    assert fetch(machine, "--colour").returncode == 2


def test_help_shows_the_usage(machine: dict[str, str]) -> None:
    done = fetch(machine, "--help")
    assert done.returncode == 0
    assert "bin/fetch-daemon [--version V] [--to DIR]" in done.stdout
    assert "#" not in done.stdout


def test_a_relative_folder_is_one_beside_the_caller(machine: dict[str, str], tmp_path: Path) -> None:
    done = subprocess.run(
        [SCRIPT, "--to", "jars"], env=machine, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout) == (0, f"{tmp_path}/jars\n")
    assert (tmp_path / "jars" / "amazon-kinesis-client-multilang-3.1.3.jar").exists()
    (call,) = calls(machine)
    assert f"-DoutputDirectory={tmp_path}/" in call
