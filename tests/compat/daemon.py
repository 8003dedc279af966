"""A daemon that follows a script: it says one action after the other, answers checkpoints, and notes what it hears.

What is in turn is decided by the protocol's own machine, in the daemon's role. The lines are written here, because the
real daemon's have what that machine's have not: `"action": "record"` in every record, which amazon_kclpy demands.
"""

from __future__ import annotations

import io
import json
import os
import select
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple, TextIO, cast

from kcl_spark.compat.kcl import KCLProcess
from kcl_spark.protocol import (
    Action,
    Checkpoint,
    CheckpointAnswer,
    Connection,
    Initialize,
    LeaseLost,
    NeedData,
    Paused,
    ProcessRecords,
    Record,
    Role,
    ShardEnded,
    ShutdownRequested,
    Status,
)

APPS = Path(__file__).parent / "apps"
ROOT = Path(__file__).parents[2]
PATIENCE = 30.0
"""Seconds without a word from a child before a test fails."""

BEGIN = Initialize("shardId-000000000001", "TRIM_HORIZON", 0)
LEASE_LOST, SHARD_ENDED, SHUTDOWN_REQUESTED = LeaseLost(), ShardEnded(), ShutdownRequested()

FIRST = 49590338271490256608559692538361571095921575989136588800
"""A sequence number of the usual length."""


def record(
    data: bytes, place: int = 0, sub: int = 0, key: str = "key", millis: int | None = 1_700_000_000_123
) -> Record:
    return Record(data, key, str(FIRST + place), sub, millis)


def batch(*data: bytes, start: int = 0, behind: int | None = 17) -> ProcessRecords:
    """A batch of plain records, from the `start`-th of the shard on."""
    return ProcessRecords([record(each, start + index) for index, each in enumerate(data)], behind)


class Raw(NamedTuple):
    """An action written in other words than the daemon's usual ones."""

    action: Action
    line: bytes


class Foreign(NamedTuple):
    """A line that is said when an answer is due, in place of it or of an action; then the pipe is closed."""

    line: bytes


def line_of(message: Action | CheckpointAnswer | Raw) -> bytes:
    """What the daemon writes, key by key."""
    return (
        message.line if isinstance(message, Raw) else json.dumps(_fields(message), ensure_ascii=False).encode() + b"\n"
    )


def _fields(message: Action | CheckpointAnswer) -> dict[str, Any]:
    match message:
        case Initialize():
            return {
                "action": "initialize",
                "shardId": message.shard_id,
                "sequenceNumber": message.sequence_number,
                "subSequenceNumber": message.sub_sequence_number,
            }
        case ProcessRecords():
            return {
                "action": "processRecords",
                "records": [_record_fields(each) for each in message.records],
                "millisBehindLatest": message.millis_behind_latest,
            }
        case CheckpointAnswer():
            return {
                "action": "checkpoint",
                "sequenceNumber": message.sequence_number,
                "subSequenceNumber": message.sub_sequence_number,
                "error": message.error,
            }
    return {"action": message.kind}


def _record_fields(each: Record) -> dict[str, Any]:
    return {
        "data": None if each.data is None else b64encode(each.data).decode(),
        "partitionKey": each.partition_key,
        "sequenceNumber": each.sequence_number,
        "approximateArrivalTimestamp": each.approximate_arrival_timestamp,
        "subSequenceNumber": each.sub_sequence_number,
        "action": "record",
    }


Answer = str | Foreign | None
"""What to answer a checkpoint: the name of an error, None for success, or something else altogether."""


class Daemon:
    """One life of one child, without the pipes.

    Args:
        actions: to say, in this order; then the pipe is closed.
        answers: to the checkpoints, in their order; success when they are used up. `Foreign(b"")` only closes the pipe.
        before: called with each action before it is said.
    """

    def __init__(
        self,
        actions: Iterable[Action | Raw | Foreign],
        answers: Iterable[Answer] = (),
        before: Callable[[Action], None] = lambda _: None,
    ) -> None:
        self.heard: list[dict[str, Any]] = []
        self.closed = False
        self.connection = Connection(Role.DAEMON)
        self._actions = iter(actions)
        self._answers = iter(answers)
        self._before = before

    def next_line(self) -> bytes:
        """Say the next action; empty where there is none left."""
        action = next(self._actions, None)
        if action is None or isinstance(action, Foreign):
            self.closed = True
            return action.line if action else b""
        self._before(action.action if isinstance(action, Raw) else action)
        self.connection.send(action.action if isinstance(action, Raw) else action)
        return line_of(action)

    def hear(self, data: bytes) -> bytes:
        """Listen to bytes, and say what they call for."""
        self.connection.receive_data(data)
        said = b""
        while not isinstance(event := self.connection.next_event(), NeedData | Paused):
            assert isinstance(event, Status | Checkpoint)
            self.heard.append(_as_json(event))
            said += self._answer(event) if isinstance(event, Checkpoint) else self.next_line()
        return said

    def _answer(self, asked: Checkpoint) -> bytes:
        answer = next(self._answers, None)
        if isinstance(answer, Foreign):
            self.closed = True
            return answer.line
        message = CheckpointAnswer(asked.sequence_number, asked.sub_sequence_number, answer)
        self.connection.send(message)
        return line_of(message)


def _as_json(event: Status | Checkpoint) -> dict[str, Any]:
    if isinstance(event, Status):
        return {"action": "status", "responseFor": event.response_for}
    return {
        "action": "checkpoint",
        "sequenceNumber": event.sequence_number,
        "subSequenceNumber": event.sub_sequence_number,
    }


def status(action: str) -> dict[str, Any]:
    """A status as it is heard."""
    return {"action": "status", "responseFor": action}


def checkpoint(sequence_number: str | None = None, sub_sequence_number: int | None = None) -> dict[str, Any]:
    """A checkpoint as it is heard."""
    return {"action": "checkpoint", "sequenceNumber": sequence_number, "subSequenceNumber": sub_sequence_number}


class Wires:
    """The two text files of a process that runs inside the test: what it writes the daemon hears, and the reverse."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self.lines = [daemon.next_line()]

    def readline(self) -> str:
        return self.lines.pop(0).decode() if self.lines else ""

    def write(self, text: str) -> int:
        self.lines += [line for line in self.daemon.hear(text.encode()).splitlines(keepends=True) if line]
        return len(text)

    def flush(self) -> None:
        pass

    @property
    def file(self) -> TextIO:
        return cast("TextIO", self)


@dataclass
class Life:
    """What came of a child.

    Attributes:
        heard: its messages.
        noise: how many lines it wrote that were none.
        code: its exit code.
        log: what it wrote to stderr.
        seen: what its processor noted.
    """

    heard: list[dict[str, Any]]
    noise: int
    code: int
    log: str
    seen: list[list[Any]] = field(default_factory=list)

    def noted(self, what: str) -> list[list[Any]]:
        """The notes of one kind, each without its name."""
        return [note[1:] for note in self.seen if note[0] == what]


KCLPY: Sequence[str] = (sys.executable,)
OURS: Sequence[str] = (sys.executable, "-m", "kcl_spark.compat")


class Child:
    """A child process with three pipes, as the daemon starts it."""

    def __init__(
        self,
        command: Sequence[str],
        app: str,
        folder: Path,
        environment: Mapping[str, str] | None = None,
        *arguments: str,
    ) -> None:
        self.seen = folder / f"{len(list(folder.iterdir()))}.seen"
        self.seen.touch()
        self.log = self.seen.with_suffix(".log")
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, str(APPS / app) if (APPS / app).exists() else app, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=_environment(self.seen) | dict(environment or {}),
                cwd=ROOT,
            )

    def live(self, daemon: Daemon) -> Life:
        """Talk with it to the end of its stdout, as the real daemon does, and wait for it."""
        try:
            self.talk(daemon)
            code = self.process.wait(PATIENCE)
        finally:
            self.end()
        log = self.log.read_text(encoding="utf-8")
        seen = [json.loads(line) for line in self.seen.read_text(encoding="utf-8").splitlines()]
        return Life(daemon.heard, daemon.connection.ignored_lines, code, log, seen)

    def end(self) -> None:
        """Leave no trace of it."""
        self.process.kill()
        self._input.close()
        self._output.close()
        self.process.wait()

    @property
    def _input(self) -> IO[bytes]:
        assert self.process.stdin
        return self.process.stdin

    @property
    def _output(self) -> IO[bytes]:
        assert self.process.stdout
        return self.process.stdout

    def talk(self, daemon: Daemon) -> None:
        """Talk with it to the end of its stdout."""
        self._say(daemon, daemon.next_line())
        while data := self._listen():
            self._say(daemon, daemon.hear(data))

    def _say(self, daemon: Daemon, line: bytes) -> None:
        try:
            self._input.write(line)
            self._input.flush()
        except BrokenPipeError:
            return
        if daemon.closed:
            self._input.close()

    def _listen(self) -> bytes:
        ready, _, _ = select.select([self._output], [], [], PATIENCE)
        assert ready, f"nothing heard from {self.process.args!r} for {PATIENCE} s"
        return os.read(self._output.fileno(), 1 << 16)


def _environment(seen: Path) -> dict[str, str]:
    """A time zone that is nobody's default, so that local time shows as such."""
    plain = {key: value for key, value in os.environ.items() if not key.startswith("KCL_SPARK")}
    return plain | {"SEEN": str(seen), "TZ": "Asia/Kathmandu", "PYTHONUTF8": "1", "PYTHONPATH": str(ROOT)}


class Inside(NamedTuple):
    """What came of a `KCLProcess` that ran inside the test; `code` is None where `run` returned."""

    heard: list[dict[str, Any]]
    seen: list[list[Any]]
    code: object
    log: str

    def noted(self, what: str) -> list[list[Any]]:
        """The notes of one kind, each without its name."""
        return [note[1:] for note in self.seen if note[0] == what]


def run_inside(processor: Any, daemon: Daemon, **options: Any) -> Inside:
    """Run a processor on text files."""
    wires, log, code = Wires(daemon), io.StringIO(), None
    try:
        KCLProcess(processor, wires.file, wires.file, log, **options).run()
    except SystemExit as leaving:
        code = leaving.code
    return Inside(daemon.heard, getattr(processor, "seen", []), code, log.getvalue())
