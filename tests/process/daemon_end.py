"""The daemon's end of one child's pipes, by hand: what a test says is what goes through the pipe, byte for byte."""

import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from kcl_spark.protocol import (
    Checkpoint,
    CheckpointAnswer,
    Closed,
    Connection,
    Event,
    FromDaemon,
    Initialize,
    NeedData,
    Paused,
    ProcessRecords,
    Record,
    Role,
    Status,
)


def record(number: int, data: bytes | None = None) -> Record:
    """A record whose sequence number is its id."""
    return Record(b'{"id": %d}' % number if data is None else data, "key", str(number), 0, 1_700_000_000_000)


def delivery(*numbers: int) -> ProcessRecords:
    return ProcessRecords([record(number) for number in numbers], 0)


class DaemonEnd:
    """A child's process and the conversation with it.

    Args:
        command: the child's command line.
        environment: the child's.
        log: where its stderr goes.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self.protocol = Connection(Role.DAEMON)
        self._log = log
        with log.open("wb") as target:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=target, env=dict(environment), bufsize=0
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout

    def end(self) -> None:
        """Leave nothing behind."""
        self.process.kill()
        self.process.wait()
        self.stdin.close()
        self.stdout.close()

    @property
    def log(self) -> str:
        return self._log.read_text()

    def say(self, event: FromDaemon) -> None:
        self.write(self.protocol.send(event))

    def write(self, line: bytes) -> None:
        while line:
            line = line[os.write(self.stdin.fileno(), line) :]

    def close(self) -> None:
        self.stdin.close()

    def hear(self, seconds: float = 60.0) -> Event:
        """The child's next message."""
        deadline = time.monotonic() + seconds
        while isinstance(event := self.protocol.next_event(), NeedData | Paused):
            assert self.is_readable(deadline - time.monotonic()), f"nothing for {seconds:g} s: {self.log}"
            self.protocol.receive_data(os.read(self.stdout.fileno(), 1 << 16))
        return event

    def is_readable(self, seconds: float) -> bool:
        """Whether the child says something, or closes its end, within that time."""
        return bool(select.select([self.stdout], [], [], max(0.0, seconds))[0])

    def open(self, shard: str = "shard", at: str | None = "TRIM_HORIZON", sub: int | None = 0) -> None:
        """Begin the shard and wait for the child's answer."""
        self.say(Initialize(shard, at, sub))
        assert self.hear() == Status("initialize")

    def deliver(self, *numbers: int) -> None:
        """Deliver records and wait for the status, taking each checkpoint on the way."""
        self.say(delivery(*numbers))
        self.until(Status("processRecords"))

    def until(self, wanted: Event) -> list[Checkpoint]:
        """Take checkpoints until the child says what is wanted; returns them."""
        taken = []
        while (heard := self.hear()) != wanted:
            assert isinstance(heard, Checkpoint), heard
            taken.append(heard)
            self.say(CheckpointAnswer(heard.sequence_number, heard.sub_sequence_number))
        return taken

    def until_checkpoint(self, number: int) -> None:
        """Tick the idle shard until the child has checkpointed that place."""
        deadline = time.monotonic() + 60.0
        while time.monotonic() < deadline:
            self.say(ProcessRecords([], 0))
            if Checkpoint(str(number), 0) in self.until(Status("processRecords")):
                return
            time.sleep(0.05)
        raise AssertionError(f"no checkpoint at {number}: {self.log}")

    def exit_code(self, seconds: float = 60.0) -> int:
        """Read to the end of the child's pipe, as the daemon does, then take in its exit code."""
        deadline = time.monotonic() + seconds
        while self.is_readable(deadline - time.monotonic()):
            if not os.read(self.stdout.fileno(), 1 << 16):
                return self.process.wait(max(0.1, deadline - time.monotonic()))
        raise AssertionError(f"the child's pipe is still open after {seconds:g} s: {self.log}")

    def sees_the_end(self) -> bool:
        """Whether the child's next word is that its end of the pipe is closed."""
        return isinstance(self.hear(), Closed)
