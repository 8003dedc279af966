"""A small MultiLangDaemon: the protocol machine in the DAEMON role, over real pipes to real children.

It holds every lease of one worker. It is synchronous per shard as the real one is, takes checkpoints by KCL's rules,
gives a shard's children a process only once all parents are at SHARD_END, ticks idle shards with empty batches, and
ends whole when one child fails. Where the real daemon has a thread per child it has one selector, so that many shards
cost little and a run is easy to follow.
"""

from __future__ import annotations

import os
import selectors
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from kcl_spark.errors import DaemonFailed, ExitCode
from kcl_spark.positions import Position
from kcl_spark.protocol import (
    Checkpoint,
    Closed,
    Connection,
    Event,
    FromDaemon,
    Initialize,
    LeaseLost,
    NeedData,
    Paused,
    ProcessRecords,
    Role,
    ShardEnded,
    ShutdownRequested,
    State,
    Status,
)
from kcl_spark.simulator.lease import Lease
from kcl_spark.simulator.stream import Shard, Stream

IDLE_SECONDS: Final = 0.2
"""Between two empty batches to an idle shard; the real daemon's floor (`idleTimeBetweenReadsInMillis`)."""

_READ: Final = 1 << 16


class Turn(Enum):
    """What a child is to be told next, once it has answered."""

    RECORDS = auto()
    SHUTDOWN = auto()
    LEASE_LOST = auto()
    OVER = auto()


@dataclass
class Child:
    """One shard's process and the conversation with it."""

    shard: Shard
    lease: Lease
    process: subprocess.Popen[bytes]
    protocol: Connection = field(default_factory=lambda: Connection(Role.DAEMON))
    outgoing: memoryview = field(default_factory=lambda: memoryview(b""))
    turn: Turn = Turn.RECORDS
    ending: bool = False
    idle_at: float = 0.0

    @property
    def stdin(self) -> int:
        """Where we write."""
        assert self.process.stdin is not None
        return self.process.stdin.fileno()

    @property
    def stdout(self) -> int:
        """Where we read."""
        assert self.process.stdout is not None
        return self.process.stdout.fileno()


@dataclass
class FakeDaemon:
    """The daemon of one worker.

    Args:
        stream: what it reads.
        command: a child's command line.
        environment: the children's.
        clock: monotonic seconds.
        max_records: how many records a delivery has at most.
        delivered: told of each delivery: the lease (with the last position delivered), how many records, and when.
        checkpointed: told when a lease has moved, and when.
    """

    stream: Stream
    command: Sequence[str]
    environment: Mapping[str, str]
    clock: Callable[[], float]
    max_records: int = 2_000
    delivered: Callable[[Lease, int, float], None] = lambda *_: None
    checkpointed: Callable[[Lease, float], None] = lambda *_: None
    leases: dict[str, Lease] = field(default_factory=dict)
    children: dict[str, Child] = field(default_factory=dict)
    _draining: bool = False
    _selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def step(self, timeout: float = IDLE_SECONDS) -> None:
        """Start what may start, say what may be said, and hear what comes; blocks for `timeout` seconds at most.

        Raises:
            DaemonFailed: a child failed, so that the real daemon would have exited.
        """
        for shard in [] if self._draining else list(self.stream.shards.values()):
            self._begin(shard)
        for child in list(self.children.values()):
            self._speak(child)
        for key, events in self._selector.select(timeout):
            child, write = key.data
            if write and events & selectors.EVENT_WRITE:
                self._write(child)
            elif not write:
                self._read(child)

    def shut_down(self) -> None:
        """Begin the graceful path: `shutdownRequested`, then `leaseLost`, then the end of the pipe, for each child."""
        self._draining = True
        for child in self.children.values():
            if child.turn is Turn.RECORDS:
                child.turn = Turn.SHUTDOWN

    def kill(self) -> None:
        """End as the real one does under SIGKILL: every pipe closes, no word is said."""
        for child in list(self.children.values()):
            self._drop(child)

    # -------------------------------------------------------------------------------------------- speaking

    def _begin(self, shard: Shard) -> None:
        lease = self.leases.setdefault(shard.shard_id, Lease(shard.shard_id))
        parents_done = all(parent in self.leases and self.leases[parent].ended for parent in shard.parents)
        if lease.ended or shard.shard_id in self.children or not parents_done:
            return
        process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(self.environment), bufsize=0
        )
        child = Child(shard, lease, process)
        shard.rewind(lease.checkpoint if isinstance(lease.checkpoint, Position) else None)
        lease.delivered = None
        os.set_blocking(child.stdin, False)
        os.set_blocking(child.stdout, False)
        self.children[shard.shard_id] = child
        self._selector.register(child.stdout, selectors.EVENT_READ, (child, False))
        self._say(child, Initialize(shard.shard_id, *lease.at))

    def _speak(self, child: Child) -> None:
        if child.protocol.state is not State.READY:
            return
        match child.turn:
            case Turn.SHUTDOWN:
                child.turn = Turn.LEASE_LOST
                self._say(child, ShutdownRequested())
            case Turn.LEASE_LOST:
                child.turn = Turn.OVER
                self._say(child, LeaseLost())
            case Turn.RECORDS if child.shard.unread:
                self._deliver(child)
            case Turn.RECORDS if child.shard.closed:
                child.turn, child.ending = Turn.OVER, True
                self._say(child, ShardEnded())
            case Turn.RECORDS if self.clock() >= child.idle_at:
                self._say(child, ProcessRecords([], 0))

    def _deliver(self, child: Child) -> None:
        records = child.shard.next(self.max_records)
        last = records[-1]
        child.lease.delivered = Position.parse(last.sequence_number, last.sub_sequence_number)
        self._say(child, ProcessRecords(records, 0))
        self.delivered(child.lease, len(records), self.clock())

    def _say(self, child: Child, event: FromDaemon) -> None:
        child.idle_at = self.clock() + IDLE_SECONDS
        line = child.protocol.send(event)
        if not child.outgoing:
            self._selector.register(child.stdin, selectors.EVENT_WRITE, (child, True))
        child.outgoing = memoryview(bytes(child.outgoing) + line)

    def _write(self, child: Child) -> None:
        try:
            written = os.write(child.stdin, child.outgoing)
        except BrokenPipeError:
            self._fail(child, "closed its pipe")
        child.outgoing = child.outgoing[written:]
        if not child.outgoing:
            self._selector.unregister(child.stdin)

    # -------------------------------------------------------------------------------------------- hearing

    def _read(self, child: Child) -> None:
        child.protocol.receive_data(os.read(child.stdout, _READ))
        while not isinstance(event := child.protocol.next_event(), NeedData | Paused):
            self._hear(child, event)
            if isinstance(event, Closed):
                return

    def _hear(self, child: Child, event: Event) -> None:
        match event:
            case Checkpoint():
                answer = child.lease.answer(event, at_end=child.protocol.state is State.ANSWERING_IN_SHARD_ENDED)
                self._say(child, answer)
                self._moved(child.lease)
            case Status() if child.protocol.state is State.FINISHED:
                self._finish(child)
            case Closed():
                self._fail(child, "ended while an answer was due")

    def _moved(self, lease: Lease) -> None:
        if isinstance(lease.checkpoint, Position):
            self.stream.shards[lease.shard_id].forget(lease.checkpoint)
        self.checkpointed(lease, self.clock())

    def _finish(self, child: Child) -> None:
        """The last word is said: close the pipe, read to its end, and wait for the process, as the real daemon does."""
        if child.ending and not child.lease.ended:
            self._fail(child, "did not checkpoint at the end of its shard")
        self._drop(child)

    def _drop(self, child: Child) -> None:
        del self.children[child.shard.shard_id]
        if child.outgoing:
            self._selector.unregister(child.stdin)
        self._selector.unregister(child.stdout)
        assert child.process.stdin is not None
        assert child.process.stdout is not None
        child.process.stdin.close()
        os.set_blocking(child.stdout, True)
        while os.read(child.stdout, _READ):
            pass
        child.process.stdout.close()
        child.process.wait()

    def _fail(self, child: Child, how: str) -> None:
        """One child's failure is the whole daemon's: it exits, and every other child sees its pipe close."""
        self.kill()
        code = child.process.returncode
        how = f"{how} (exit code {code})"
        error = DaemonFailed(f"the child of {child.shard.shard_id} {how}", "Its own message is in the log")
        if code in set(ExitCode) - {ExitCode.OK}:
            error.exit_code = ExitCode(code)  # the child knows better what it was
        raise error
