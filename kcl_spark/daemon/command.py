"""The daemon's command line, as a list of arguments: no shell, so that signals reach the JVM and blanks do no harm.

Two flags are not a matter of taste. `-Dfile.encoding=UTF-8`: a JVM before 18 in the C locale turns every letter of a
partition key beyond ASCII into `?`. `-XX:+ExitOnOutOfMemoryError`: a JVM that goes on without one of its threads keeps
its leases and reads nothing.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from kcl_spark.daemon.jars import Jars
from kcl_spark.errors import UsageError

MAIN: Final = "software.amazon.kinesis.multilang.MultiLangDaemon"

LOGBACK: Final = Path(__file__).with_name("logback.xml")
"""A quiet log to stderr; properties/logback.xml is the same file, to be copied and edited."""

_FLAGS: Final = ("-Dfile.encoding=UTF-8", "-XX:+ExitOnOutOfMemoryError")


def find_java(environment: Mapping[str, str]) -> Path:
    """The java program: of JAVA_HOME, else on PATH.

    Raises:
        UsageError: there is none.
    """
    home = environment.get("JAVA_HOME")
    if home:
        program = Path(home) / "bin" / "java"
        if not os.access(program, os.X_OK):
            raise UsageError(f"JAVA_HOME is {home}, where no bin/java is", "Set JAVA_HOME to a JRE's folder")
        return program
    found = shutil.which("java", path=environment.get("PATH"))
    if found is None:
        raise UsageError("there is no java on PATH", "Install a JRE: apt-get install openjdk-17-jre-headless")
    return Path(found)


def daemon_command(
    java: Path,
    jars: Jars,
    properties: Path,
    *,
    heap: str | None = None,
    logback: Path = LOGBACK,
    options: Sequence[str] = (),
) -> list[str]:
    """The arguments that run the daemon.

    Args:
        java: the program.
        jars: what it runs.
        properties: the daemon's properties.
        heap: the most memory for Java's objects, such as "512m"; None means a quarter of the machine's.
        logback: how it logs.
        options: more for the JVM; the last word on each is theirs.

    Raises:
        UsageError: a file is missing.
    """
    for file in (properties, logback):
        if not file.is_file():
            raise UsageError(f"there is no file {file}", "Name a file that is there")
    memory = () if heap is None else (f"-Xmx{heap}",)
    paths = ("-cp", f"{jars.folder}/*")
    # Absolute, because a relative name is looked up on the class path first: a jar could have a file of that name.
    files = ("--properties-file", str(properties.absolute()), "-l", str(logback.absolute()))
    return [str(java), *_FLAGS, *memory, *options, *paths, MAIN, *files]
