"""The engine: one process that speaks for every shard, and flushes while it listens.

Four threads, each with one job and none with a lock on another's state:

    listening   (main) reads pipes, feeds the `Worker`, carries its effects out; never blocks on anything slow
    spooling    writes sealed batches to local disk, one ahead of the flush
    flushing    starts Spark, then takes one batch after the other to the sink
    ledger      reads marks for shards that open, so that none of the others waits for a table

They post their results to the listening thread and wake it; nothing else is shared but `Worker.owns`, which is
one dictionary look-up. `initialize` needs no Spark, so shards are taken while Spark still starts.
"""

from __future__ import annotations

import fcntl
import os
import selectors
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from socket import socket
from threading import Event as Flag
from threading import Thread
from typing import Final

from kcl_spark.errors import ExitCode, KclSparkError, RemoteProtocolError, SinkError
from kcl_spark.protocol import Connection, NeedData, Paused, Role, Status
from kcl_spark.sinks.base import Entry
from kcl_spark.worker import handover
from kcl_spark.worker.batching import Batch
from kcl_spark.worker.commit import Flusher, Prepared
from kcl_spark.worker.handover import Caller
from kcl_spark.worker.steps import Step
from kcl_spark.worker.worker import Effect, End, Fail, Flush, ReadLedger, Send, Worker

CHUNK: Final = 1 << 20
"""Bytes read at once, and the size that a pipe is enlarged to: the daemon then writes a batch in a few turns of the
scheduler instead of one per 64 KiB (measured: +20 % at 16 shards)."""

_WAITING: Final = 256
"""Children that may wait at the door."""

LEDGER_WAIT: Final = 2.0
"""Seconds between attempts to read the marks of a shard that opens while the table is out of reach."""


@dataclass(slots=True)
class Link:
    """One child's pipes, and the connection on which it waits for our word."""

    number: int
    incoming: int
    outgoing: int
    caller: Caller
    protocol: Connection = field(default_factory=lambda: Connection(Role.CHILD))


Report = Callable[[], str]
"""One line of JSON about the engine, for `status`."""


class Engine:
    """The listening thread's state.

    Args:
        door: the listening socket (`handover.claim`).
        worker: the pure machine.
        pipeline: the real path of the pipeline file; children of other ones are turned away.
        entry: reads a shard's ledger entry; blocks; may raise SinkError.
        start: called in the flushing thread before its first batch: starts Spark and returns the flusher.
        clock: monotonic seconds.
        log: told one line about a link's end or the engine's.
        report: answers `status`.
        idle: seconds without a child after which the engine leaves; None: it stays until it is told.
        notify: told `ready`, `stopped` (a shard can't go on) and `idle` (draining, and the last shard was given
            up; KCL takes its own leases again while it shuts down, and what it starts then is not waited for).
    """

    def __init__(
        self,
        door: socket,
        worker: Worker,
        *,
        pipeline: str,
        entry: Callable[[str], Entry],
        start: Callable[[], Flusher],
        clock: Callable[[], float],
        log: Callable[[str], None],
        report: Report,
        idle: float | None = None,
        notify: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._door = door
        self._worker = worker
        self._pipeline = pipeline
        self._entry = entry
        self._start = start
        self._clock = clock
        self._log = log
        self._report = report
        self._idle = idle
        self._notify = notify
        self._told: set[str] = set()
        self._last_to_drain = 0
        self._idle_since = clock()
        self._links: dict[int, Link] = {}
        self._numbers = 0
        self._posted: deque[Callable[[], list[Effect]]] = deque()
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._selector = selectors.DefaultSelector()
        self._sealed: SimpleQueue[Batch | None] = SimpleQueue()
        self._spooled: SimpleQueue[Prepared | None] = SimpleQueue()
        self._flusher: Flusher | None = None
        self._questions: SimpleQueue[ReadLedger | None] = SimpleQueue()
        self._failed: KclSparkError | None = None
        self.stopping = Flag()
        self.ready = Flag()

    def run(self) -> None:
        """Serve until told to stop, idle for too long, or unable to go on.

        Raises:
            KclSparkError: why it can't go on; every child has been told the exit code.
        """
        self._door.listen(_WAITING)
        self._selector.register(self._door, selectors.EVENT_READ, self._admit)
        self._selector.register(self._bell, selectors.EVENT_READ, self._take_posted)
        for work in (self._spooling, self._flushing, self._reading_ledger):
            Thread(target=work, name=work.__name__.strip("_"), daemon=True).start()
        try:
            while not self._is_over():
                wake = self._wakes_at()
                for key, _ in self._selector.select(None if wake is None else max(0.0, wake - self._clock())):
                    key.data()
                if wake is not None and self._clock() >= wake:
                    self._carry_out(self._worker.tick(self._clock()))
                self._tell()
        finally:
            self._leave()
        if self._failed is not None:
            raise self._failed

    def stop(self) -> None:
        """End soon; safe to call from a signal handler and from any thread."""
        self.stopping.set()
        self._ring()

    def post(self, event: Callable[[], list[Effect]]) -> None:
        """Have the listening thread do something; safe to call from any thread."""
        self._posted.append(event)
        self._ring()

    # -------------------------------------------------------------------------------------------- listening

    def _is_over(self) -> bool:
        if self._links:
            self._idle_since = self._clock()
        bored = self._idle is not None and self._clock() - self._idle_since > self._idle
        return self._failed is not None or bored or self.stopping.is_set()

    def _tell(self) -> None:
        true = {
            "ready": self.ready.is_set(),
            "stopped": bool(self._worker.stopped),
            "idle": self._worker.draining and not any(link <= self._last_to_drain for link in self._links),
        }
        for word in (word for word, holds in true.items() if holds and word not in self._told):
            self._told.add(word)
            self._notify(word)

    def _wakes_at(self) -> float | None:
        times = [self._worker.wakes_at()]
        if self._idle is not None and not self._links:
            times.append(self._idle_since + self._idle + 0.01)
        return min((time for time in times if time is not None), default=None)

    def _admit(self) -> None:
        caller = handover.admit(self._door)
        match caller:
            case Caller(words=("child", _, pipeline), descriptors=(incoming, outgoing)):
                if pipeline == self._pipeline:
                    self._open(caller, incoming, outgoing)
                else:
                    self._turn_away(caller, pipeline)
            case Caller(words=("status",)):
                caller.answer(self._report())
                caller.connection.close()
            case Caller(words=("drain",)):
                self._last_to_drain = self._numbers
                self._carry_out(self._worker.drain(self._clock()))
                caller.answer("ok")
                caller.connection.close()
            case Caller():
                caller.connection.close()

    def _turn_away(self, caller: Caller, pipeline: str) -> None:
        """A child of another pipeline: its records would end up in the wrong table."""
        self._log(f"child {caller.words[1]} is of {pipeline}, and this engine of {self._pipeline}. Mind executableName")
        caller.answer(f"exit {int(ExitCode.USAGE)}")
        caller.connection.close()
        for descriptor in caller.descriptors:
            os.close(descriptor)

    def _open(self, caller: Caller, incoming: int, outgoing: int) -> None:
        self._numbers += 1
        link = Link(self._numbers, incoming, outgoing, caller)
        with suppress(OSError):  # more than /proc/sys/fs/pipe-user-pages-soft allows: slower, not wrong
            fcntl.fcntl(incoming, fcntl.F_SETPIPE_SZ, CHUNK)
        self._links[link.number] = link
        self._selector.register(incoming, selectors.EVENT_READ, lambda: self._read(link))
        self._selector.register(caller.connection, selectors.EVENT_READ, lambda: self._child_gone(link))
        self._log(f"child {caller.words[1]} handed over its shard")

    def _read(self, link: Link) -> None:
        if link.number not in self._links:  # closed by another key of this round; its number may be another pipe's now
            return
        link.protocol.receive_data(os.read(link.incoming, CHUNK))
        try:
            while link.number in self._links:
                event = link.protocol.next_event()
                if isinstance(event, NeedData | Paused):
                    return
                self._carry_out(self._worker.received(link.number, event, self._clock()))
        except RemoteProtocolError as error:
            self._carry_out(self._worker.ended(link.number, error))

    def _child_gone(self, link: Link) -> None:
        """The child said nothing and must not: it is dead, and the daemon has to see its pipe close."""
        if link.number not in self._links:
            return
        self._log(f"child {link.caller.words[1]} ended before its shard did")
        self._carry_out(self._worker.ended(link.number, None))

    # -------------------------------------------------------------------------------------------- effects

    def _carry_out(self, effects: list[Effect]) -> None:
        waiting = deque(effects)
        while waiting:
            effect = waiting.popleft()
            match effect:
                case Send():
                    waiting.extend(self._send(effect))
                case ReadLedger():
                    self._questions.put(effect)
                case Flush(batch):
                    self._sealed.put(batch)
                case End():
                    if effect.error is not None:
                        self._log(str(effect.error))
                    self._close(effect)
                case Fail(error):
                    self._failed = self._failed or error

    def _send(self, effect: Send) -> list[Effect]:
        link = self._links.get(effect.link)
        if link is None:
            return []
        line = link.protocol.send(effect.message)
        try:
            os.write(link.outgoing, line)
        except OSError:
            link.protocol.send_failed()
            return self._worker.ended(link.number, None)
        self._worker.steps.reached(Step.STATUS_SENT if isinstance(effect.message, Status) else Step.CHECKPOINT_SENT)
        return []

    def _close(self, end: End) -> None:
        link = self._links.pop(end.link, None)
        if link is None:
            return
        for descriptor in (link.incoming, link.caller.connection):
            self._selector.unregister(descriptor)
        link.caller.answer(f"exit {int(end.code)} {end.error or ''}".rstrip().replace("\n", " "))
        link.caller.connection.close()
        os.close(link.incoming)
        os.close(link.outgoing)

    def _leave(self) -> None:
        """Tell each child its exit code, then let go of everything; the kernel closes what is missed."""
        code = self._failed.exit_code if self._failed else ExitCode.ENGINE_GONE
        for link in list(self._links):
            self._close(End(link, code, self._failed))
        self.stopping.set()
        self._sealed.put(None)
        self._spooled.put(None)
        self._questions.put(None)
        self._door.close()

    # -------------------------------------------------------------------------------------------- other threads

    def _ring(self) -> None:
        with suppress(OSError):
            os.eventfd_write(self._bell, 1)

    def _take_posted(self) -> None:
        with suppress(BlockingIOError):
            os.eventfd_read(self._bell)
        while self._posted:
            self._carry_out(self._posted.popleft()())

    def _spooling(self) -> None:
        try:
            while (batch := self._sealed.get()) is not None:
                self.ready.wait()
                assert self._flusher is not None
                self._spooled.put(self._flusher.prepare(batch))
        except BaseException as error:
            self._give_up(error)

    def _flushing(self) -> None:
        try:
            self._flusher = self._start()
            self.ready.set()
            self._ring()
            while (prepared := self._spooled.get()) is not None:
                outcome = self._flusher.flush(prepared)
                self.post(lambda outcome=outcome: self._worker.flushed(outcome, self._clock()))  # type: ignore[misc]
        except BaseException as error:
            self._give_up(error)

    def _reading_ledger(self) -> None:
        try:
            while (question := self._questions.get()) is not None:
                self._answer(question)
        except BaseException as error:
            self._give_up(error)

    def _answer(self, question: ReadLedger) -> None:
        try:
            entry = self._entry(question.shard_id)
        except SinkError as error:
            self._log(f"{error}; shard {question.shard_id} waits")
            if not self.stopping.wait(LEDGER_WAIT):
                self._questions.put(question)
            return
        self.post(lambda: self._begin(question, entry))

    def _begin(self, question: ReadLedger, entry: Entry) -> list[Effect]:
        effects = self._worker.ledger_read(question.link, entry, self._clock())
        shard = self._worker.shards.get(question.link)
        if shard is not None:
            self._log(f"shard {shard.shard_id} starts: its lease is at {shard.lease}, the table's mark at {entry.mark}")
        return effects

    def _give_up(self, error: BaseException) -> None:
        """A thread can't go on, so the engine can't: an error nobody foresaw is reported as what it is."""
        known = error if isinstance(error, KclSparkError) else KclSparkError(f"{type(error).__name__}: {error}")
        if known is not error:
            known.__cause__ = error
        self.post(lambda: [Fail(known)])
