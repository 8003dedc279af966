"""Find the daemon's jars: one folder, complete and of one version, or an error that says how to get them.

Where they are looked for, in this order; a place that somebody named is not passed over when it is wrong:

1. the folder that the caller names;
2. the folder that KCL_SPARK_JARS names;
3. `kcl-spark/daemon-VERSION` below XDG_CACHE_HOME or ~/.cache, where bin/fetch-daemon puts them: the newest of several;
4. those of an installed `amazon_kclpy`.

The cache is the user's and not the checkout's, so that an installed package and every checkout find the same jars.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from kcl_spark.daemon.keys import version_order
from kcl_spark.errors import UsageError

VARIABLE: Final = "KCL_SPARK_JARS"
"""Names a folder of jars."""

FETCH: Final = "Run bin/fetch-daemon, or name a folder of jars with KCL_SPARK_JARS"

_NEEDED: Final = ("amazon-kinesis-client-multilang", "amazon-kinesis-client", "logback-classic")
_VERSION: Final = r"-(\d[\w.]*)\.jar"


class Jars(NamedTuple):
    """A folder that has everything, and the multilang version in it."""

    folder: Path
    version: str


def find(named: Path | None, environment: Mapping[str, str]) -> Jars:
    """The jars to run.

    Args:
        named: a folder that the user asks for.
        environment: where KCL_SPARK_JARS, XDG_CACHE_HOME and HOME are looked up.

    Raises:
        UsageError: there are none, or the folder that was named is not complete.
    """
    if named is not None:
        return inspect(named)
    if environment.get(VARIABLE):
        return inspect(Path(environment[VARIABLE]))
    fetched = _fetched(cache(environment)) or _of_kclpy()
    if fetched is None:
        raise UsageError("the daemon's jars are not on this machine", FETCH)
    return fetched


def inspect(folder: Path) -> Jars:
    """Check that a folder has what the daemon needs, once.

    Raises:
        UsageError: it does not.
    """
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder} with the daemon's jars", FETCH)
    if ":" in str(folder):
        raise UsageError(f"the folder {folder} has a colon in its name, where a class path is cut", "Rename it")
    jars = sorted(folder.glob("*.jar"))
    for name in _NEEDED:
        found = _versions(jars, name)
        if len(found) != 1:
            what = f"has {' and '.join(found)} of" if found else "lacks"
            raise UsageError(f"the folder {folder} {what} the jar {name}", FETCH)
    empty = [jar.name for jar in jars if jar.stat().st_size == 0]
    if empty:
        raise UsageError(f"{empty[0]} in {folder} is empty: its download broke off", f"Remove the folder. {FETCH}")
    return Jars(folder.resolve(), _versions(jars, _NEEDED[0])[0])


def cache(environment: Mapping[str, str]) -> Path:
    """The folder below which bin/fetch-daemon keeps a folder for each version."""
    base = environment.get("XDG_CACHE_HOME") or f"{environment.get('HOME', '/')}/.cache"
    return Path(base) / "kcl-spark"


def _versions(jars: list[Path], name: str) -> list[str]:
    matches = (re.fullmatch(re.escape(name) + _VERSION, jar.name) for jar in jars)
    return [match[1] for match in matches if match]


def _fetched(folder: Path) -> Jars | None:
    found = [inspect(version) for version in folder.glob("daemon-*[0-9]") if version.is_dir()]
    return max(found, key=lambda jars: version_order(jars.version), default=None)


def _of_kclpy() -> Jars | None:
    spec = find_spec("amazon_kclpy")
    folder = Path(spec.origin).with_name("jars") if spec and spec.origin else None
    return inspect(folder) if folder and any(folder.glob("*.jar")) else None
