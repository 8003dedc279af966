"""Where the daemon's jars are found, in which order, and what is refused."""

from pathlib import Path

import pytest

from kcl_spark.daemon import jars
from kcl_spark.daemon.jars import Jars, find, inspect
from kcl_spark.errors import UsageError

NAMES = ("amazon-kinesis-client-multilang-{}", "amazon-kinesis-client-{}", "logback-classic-1.3.14")


def folder(path: Path, version: str = "3.1.3", names: tuple[str, ...] = NAMES) -> Path:
    path.mkdir(parents=True)
    for name in names:
        (path / f"{name.format(version)}.jar").write_bytes(b"PK")
    return path


@pytest.fixture(autouse=True)
def _without_kclpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "find_spec", lambda _: None)


def test_the_version_is_that_of_the_multilang_jar(tmp_path: Path) -> None:
    assert inspect(folder(tmp_path / "a", "3.5.1")) == Jars(tmp_path / "a", "3.5.1")


def test_a_named_folder_comes_first_then_the_variable_then_the_cache_then_kclpy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Spec:
        origin = str(tmp_path / "amazon_kclpy" / "__init__.py")

    monkeypatch.setattr(jars, "find_spec", lambda _: Spec)
    named, variable = folder(tmp_path / "named"), folder(tmp_path / "variable")
    cached = folder(tmp_path / "cache" / "kcl-spark" / "daemon-3.1.3")
    of_kclpy = folder(tmp_path / "amazon_kclpy" / "jars")
    environment = {"KCL_SPARK_JARS": str(variable), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert find(named, environment).folder == named
    assert find(None, environment).folder == variable
    del environment["KCL_SPARK_JARS"]
    assert find(None, environment).folder == cached
    assert find(None, {"XDG_CACHE_HOME": str(tmp_path)}).folder == of_kclpy


def test_the_cache_is_below_home_and_the_newest_version_of_it_counts(tmp_path: Path) -> None:
    for version in ("3.9.0", "3.10.0", "3.1.3"):
        folder(tmp_path / ".cache" / "kcl-spark" / f"daemon-{version}", version)
    assert find(None, {"HOME": str(tmp_path)}).version == "3.10.0"


def test_a_folder_that_is_still_being_filled_is_not_seen(tmp_path: Path) -> None:
    folder(tmp_path / "kcl-spark" / ".daemon-3.1.3.abc123", names=NAMES[:1])
    with pytest.raises(UsageError, match="not on this machine"):
        find(None, {"XDG_CACHE_HOME": str(tmp_path)})


def test_none_at_all_says_how_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        find(None, {"HOME": str(tmp_path)})
    assert "bin/fetch-daemon" in raised.value.remedy


@pytest.mark.parametrize("missing", NAMES)
def test_a_folder_without_one_of_the_three_is_refused(tmp_path: Path, missing: str) -> None:
    path = folder(tmp_path / "a", names=tuple(name for name in NAMES if name != missing))
    with pytest.raises(UsageError) as raised:
        inspect(path)
    name = missing.removesuffix("-{}").removesuffix("-1.3.14")
    assert raised.value.cause == f"the folder {path} lacks the jar {name}"


def test_two_versions_in_one_folder_are_refused(tmp_path: Path) -> None:
    path = folder(tmp_path / "a")
    (path / "amazon-kinesis-client-multilang-3.5.1.jar").write_bytes(b"PK")
    with pytest.raises(UsageError, match=r"3\.1\.3 and 3\.5\.1"):
        inspect(path)


def test_an_empty_jar_is_refused(tmp_path: Path) -> None:
    path = folder(tmp_path / "a")
    (path / "netty-1.jar").touch()
    with pytest.raises(UsageError, match=r"netty-1\.jar .* is empty"):
        inspect(path)


def test_a_colon_would_cut_the_class_path(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="colon"):
        inspect(folder(tmp_path / "a:b"))


def test_a_folder_that_is_named_and_not_there_is_not_passed_over(tmp_path: Path) -> None:
    folder(tmp_path / "kcl-spark" / "daemon-3.1.3")
    environment = {"XDG_CACHE_HOME": str(tmp_path), "KCL_SPARK_JARS": str(tmp_path / "none")}
    with pytest.raises(UsageError, match="there is no folder"):
        find(None, environment)
