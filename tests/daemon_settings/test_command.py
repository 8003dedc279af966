"""The daemon's command line, and that Java takes it."""

import os
import subprocess
from pathlib import Path

import pytest

from kcl_spark.daemon.command import LOGBACK, MAIN, daemon_command, find_java
from kcl_spark.daemon.jars import Jars
from kcl_spark.errors import UsageError
from tests.daemon_settings.jars import installed


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    home, other = program(tmp_path / "home/bin/java"), program(tmp_path / "path/java")
    environment = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(other.parent)}
    assert find_java(environment) == home
    assert find_java({"PATH": str(other.parent)}) == other


def test_a_java_home_without_java_is_not_passed_over(tmp_path: Path) -> None:
    other = program(tmp_path / "path/java")
    with pytest.raises(UsageError, match="where no bin/java is"):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": str(other.parent)})


def test_no_java_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        find_java({"PATH": str(tmp_path)})
    assert "apt-get install" in raised.value.remedy


@pytest.fixture
def properties(tmp_path: Path) -> Path:
    path = tmp_path / "kcl.properties"
    path.write_text("")
    return path


def test_the_command(properties: Path) -> None:
    jars = Jars(Path("/opt/my jars"), "3.1.3")
    command = daemon_command(Path("/usr/bin/java"), jars, properties, heap="512m", options=["-Da=b"])
    assert command == [
        "/usr/bin/java",
        "-Dfile.encoding=UTF-8",
        "-XX:+ExitOnOutOfMemoryError",
        "-Xmx512m",
        "-Da=b",
        "-cp",
        "/opt/my jars/*",
        MAIN,
        "--properties-file",
        str(properties),
        "-l",
        str(LOGBACK),
    ]


def test_files_are_named_in_full(properties: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(properties.parent)
    logback = Path("logback.xml")
    logback.write_text("<configuration/>")
    command = daemon_command(Path("java"), Jars(Path("/jars"), "1"), Path(properties.name), logback=logback)
    assert command[-3:] == [str(properties), "-l", str(properties.parent / "logback.xml")]
    assert not [word for word in command if word.startswith("-Xmx")]


def test_a_missing_file_is_refused(properties: Path) -> None:
    with pytest.raises(UsageError, match="there is no file"):
        daemon_command(Path("java"), Jars(Path("/jars"), "1"), properties.with_name("none"))


@pytest.mark.jvm
def test_the_daemon_finds_the_file_and_says_what_it_lacks(properties: Path) -> None:
    command = daemon_command(find_java(os.environ), installed(), properties, heap="128m")
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert "Must provide an executable name in the properties file" in ended.stderr


@pytest.mark.jvm
def test_the_log_goes_to_stderr_and_shows_no_property(properties: Path) -> None:
    properties.write_text("executableName=x\napplicationName=a\nsecretKey=hush\n")
    command = daemon_command(find_java(os.environ), installed(), properties)
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "Stream name or Stream Arn is required" in ended.stderr
    assert "hush" not in ended.stderr + ended.stdout
