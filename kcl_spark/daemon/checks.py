"""What a machine must have before a worker is started on it, each as one line that says what to do about it.

A check never raises: whoever asks what is wrong wants an answer for every line. What AWS has is in `checks_aws`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from kcl_spark.daemon import jars
from kcl_spark.daemon.command import find_java
from kcl_spark.daemon.keys import TESTED_VERSION
from kcl_spark.daemon.lint import lint
from kcl_spark.errors import UsageError

OLDEST_JAVA: Final = 17
"""Spark 4 runs on no older one; the daemon alone would run on 8."""

MEMORY: Final = 3 * 2**29
"""Bytes: 1.5 GiB. The daemon takes 260 MB, measured; the engine and Spark's JVM the rest, with small batches."""

_SUN_PATH: Final = 107
"""Longest path of a Unix socket on Linux, in bytes."""


@dataclass(frozen=True, slots=True)
class Check:
    """One line of `kcl-spark doctor`.

    Attributes:
        name: what was looked at.
        level: whether a worker can run as it is.
        found: what is there.
        remedy: what to do; empty where all is well.
    """

    name: str
    level: Literal["ok", "warning", "error"]
    found: str
    remedy: str = ""


def java(environment: Mapping[str, str]) -> Check:
    """Whether there is a java that Spark runs on. Blocks while it starts."""
    try:
        program = find_java(environment)
        told = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=20, check=False).stderr
    except UsageError as error:
        return Check("java", "error", error.cause, error.remedy)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check("java", "error", f"java can't be run: {error}", "Install a JRE")
    version = java_version(told)
    if version is None:
        return Check("java", "error", f"{program} tells no version", "Set JAVA_HOME to a JRE's folder")
    if version < OLDEST_JAVA:
        remedy = f"Install Java {OLDEST_JAVA} or later, or set JAVA_HOME to one"
        return Check("java", "error", f"Java {version} in {program}, too old for Spark", remedy)
    return Check("java", "ok", f"Java {version} in {program}")


def java_version(told: str) -> int | None:
    """The major version in what `java -version` prints, or None."""
    match = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(match[1]) if match else None


def memory(needed: int = MEMORY, root: Path = Path("/")) -> Check:
    """Whether the machine, or the container, has memory left for the engine and two JVMs."""
    rooms = [room for room in (_free_of_machine(root), _free_of_cgroup(root)) if room is not None]
    if not rooms:
        return Check("memory", "warning", "the free memory can't be told", f"Make sure of {_size(needed)}")
    room = min(rooms)
    if room >= needed:
        return Check("memory", "ok", f"{_size(room)} free")
    level: Literal["warning", "error"] = "error" if room < needed // 2 else "warning"
    remedy = f"Give it {_size(needed)}, or less to Spark with --conf spark.driver.memory=512m"
    return Check("memory", level, f"{_size(room)} free", remedy)


def _free_of_machine(root: Path) -> int | None:
    text = _text(root / "proc/meminfo")
    match = re.search(r"^MemAvailable:\s+(\d+) kB", text, re.MULTILINE)
    return int(match[1]) * 1024 if match else None


def _free_of_cgroup(root: Path) -> int | None:
    """What is left below the limit of control groups, version 2 or 1; None where there is no limit."""
    for folder, limit, usage, cache in (
        ("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
        ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        most, used = _text(root / folder / limit).strip(), _text(root / folder / usage).strip()
        if most.isdigit() and used.isdigit():
            # Cached file pages count as used, and are given up when somebody asks.
            match = re.search(rf"^{cache} (\d+)$", _text(root / folder / "memory.stat"), re.MULTILINE)
            return int(most) - int(used) + (int(match[1]) if match else 0)
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _size(number: int) -> str:
    return f"{number / 2**30:.1f} GiB"


def disk(folder: Path, needed: int) -> Check:
    """Whether a folder, which need not be there yet, has room for what batches take on their way."""
    there = next(above for above in (folder, *folder.absolute().parents) if above.exists())
    try:
        free = shutil.disk_usage(there).free
    except OSError as error:
        return Check("disk", "error", f"{there} can't be looked at: {error.strerror}", "Name another folder: --spool")
    if free < needed:
        remedy = f"Make room for {_size(needed)}, or name another folder: --spool"
        return Check("disk", "error", f"{_size(free)} free at {there}", remedy)
    return Check("disk", "ok", f"{_size(free)} free at {there}")


def socket_folder(socket: Path) -> Check:
    """Whether the folder of the worker's socket can hold it, for this user alone."""
    remedy = "Name another folder: --folder"
    folder = socket.parent
    length = len(os.fsencode(socket))
    if length > _SUN_PATH:
        return Check("folder", "error", f"{socket} has {length} bytes, and a socket's path at most {_SUN_PATH}", remedy)
    try:
        found = folder.lstat()
    except FileNotFoundError:
        return Check("folder", "ok", f"{folder} will be made")
    except OSError as error:
        return Check("folder", "error", f"{folder} can't be looked at: {error.strerror}", remedy)
    if not folder.is_dir() or folder.is_symlink() or found.st_uid != os.getuid():
        return Check("folder", "error", f"{folder} is no folder of this user", remedy)
    if found.st_mode & 0o077:
        return Check("folder", "error", f"{folder} is open to others", f"Close it: chmod 700 {folder}")
    return Check("folder", "ok", str(folder))


def blanks(words: Sequence[str]) -> Check:
    """Whether the child's command survives the daemon, which cuts it at blanks."""
    for word in words:
        if any(letter.isspace() for letter in word):
            return Check("command", "error", f"{word!r} has a blank", "Move the file to a path without blanks")
    return Check("command", "ok", " ".join(words))


def daemon_jars(named: Path | None, environment: Mapping[str, str]) -> Check:
    """Whether the daemon's jars are there, and which."""
    try:
        found = jars.find(named, environment)
    except UsageError as error:
        return Check("daemon", "error", error.cause, error.remedy)
    text = f"{found.version} in {found.folder}"
    if found.version == TESTED_VERSION:
        return Check("daemon", "ok", text)
    return Check("daemon", "warning", f"{text}; tested is {TESTED_VERSION}", "Run your tests against it")


def properties(text: str, version: str = TESTED_VERSION) -> Check:
    """What the lint has to say about a properties text, in one line."""
    findings = lint(text, version=version)
    if not findings:
        return Check("properties", "ok", "nothing to find fault with")
    worst = min(findings, key=lambda finding: finding.level)  # `error` comes before `warning`
    errors = sum(finding.level == "error" for finding in findings)
    found = f"{errors} errors, {len(findings) - errors} warnings, such as: {worst.message}"
    return Check("properties", worst.level, found, f"{worst.remedy}. See all: kcl-spark properties FILE")
