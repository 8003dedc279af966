"""All shards of one worker as one pure machine: events in, effects out. No I/O, no clock, no threads.

    link opened ─▶ initialize ─▶ (ledger read) ─▶ status
    processRecords ─▶ shard judges and trims ─▶ batcher ─▶ status when there is room
    batch due and nothing in flight ─▶ Flush ─▶ … ─▶ flushed ─▶ marks move ─▶ checkpoints in the next open action

The engine carries the effects out; a simulation carries them out against a simulated world. Both feed this same class.
Two batches may be in flight: Spark works on one, a full one waits on disk, and a third one fills. A batch
that is not full waits for Spark instead: a job has a floor, and a larger batch pays it once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kcl_spark.errors import ExitCode, KclSparkError, ShardStopped
from kcl_spark.pipeline import Pipeline
from kcl_spark.positions import Position
from kcl_spark.protocol import (
    Checkpoint,
    CheckpointAnswer,
    Closed,
    Event,
    Initialize,
    LeaseLost,
    ProcessRecords,
    Status,
)
from kcl_spark.sinks.base import Entry
from kcl_spark.worker.batching import Batch, Batcher
from kcl_spark.worker.shard import HANDOVER_SECONDS, Leave, Shard
from kcl_spark.worker.start import last_done
from kcl_spark.worker.steps import Step, Steps

MOST_IN_FLIGHT: Final = 2
"""Batches that are sealed and not yet committed."""


class Send(NamedTuple):
    """Say this to the daemon on that link."""

    link: int
    message: Checkpoint | Status


class ReadLedger(NamedTuple):
    """Read the shard's entry and call `ledger_read` with it."""

    link: int
    shard_id: str


class Flush(NamedTuple):
    """Take the batch to the sink and call `flushed` with the outcome."""

    batch: Batch


class End(NamedTuple):
    """Close the link and let its child exit with this code."""

    link: int
    code: ExitCode
    error: KclSparkError | None = None


class Fail(NamedTuple):
    """End the engine: nothing can go on."""

    error: KclSparkError


Effect = Send | ReadLedger | Flush | End | Fail


class Settled(NamedTuple):
    """What a flush came to for one life of one shard."""

    shard_id: str
    life: int
    entry: Entry
    mark: Position


@dataclass(frozen=True, slots=True)
class Flushed:
    """What a flush came to. A life that is in neither list lost its lease while the flush ran."""

    settled: tuple[Settled, ...] = ()
    stopped: tuple[tuple[str, int, ShardStopped], ...] = ()


@dataclass
class Worker:
    """Every shard this worker holds.

    Args:
        pipeline: what the user declared.
        heartbeat: seconds of silence after which a waiting daemon gets a heartbeat.
        steps: told of each step as it is reached.
        handover: seconds after which `shutdownRequested` is answered with what is durable by then.
        note: told one line about things a user should know and need not act on.
    """

    pipeline: Pipeline
    heartbeat: float
    steps: Steps
    handover: float = HANDOVER_SECONDS
    note: Callable[[str], None] = lambda _: None
    shards: dict[int, Shard] = field(default_factory=dict)
    in_flight: deque[Batch] = field(default_factory=deque)
    draining: bool = False
    stopped: dict[str, ShardStopped] = field(default_factory=dict)
    """Why shards have stopped, by id: told even when the shard itself has left."""

    def __post_init__(self) -> None:
        self.batcher = Batcher(self.pipeline.trigger)
        self._owners: dict[str, int] = {}
        self._lives = 0

    def owns(self, shard_id: str, life: int) -> bool:
        """Whether this life is the shard's present one. Safe to ask from the flushing thread."""
        return self._owners.get(shard_id) == life

    # ------------------------------------------------------------------------------------------------ what happens

    def received(self, link: int, event: Event, now: float) -> list[Effect]:
        """The daemon said something on a link, or closed it."""
        self.steps.reached(Step.RECEIVED)
        match event:
            case Initialize():
                return self._initialize(link, event, now)
            case ProcessRecords():
                return self._records(link, event, now)
            case CheckpointAnswer():
                return self._answer(link, event, now)
            case LeaseLost():
                self._disown(self.shards[link])
                return self._owe(link, event.kind, now)
            case Closed():
                return self.ended(link, None)
            case _:
                self.batcher.close_early()
                return self._owe(link, event.kind, now)

    def ended(self, link: int, error: KclSparkError | None) -> list[Effect]:
        """A link is over: closed by the daemon (no error), or broken. Nothing of it is written any more (rule 7)."""
        shard = self.shards.pop(link, None)
        if shard is not None:
            self._disown(shard)
        return [End(link, error.exit_code if error else ExitCode.OK, error)]

    def ledger_read(self, link: int, entry: Entry, now: float) -> list[Effect]:
        """The ledger's entry for the shard that opened on this link is known."""
        shard = self.shards.get(link)
        if shard is None:
            return []
        try:
            done = last_done(shard.shard_id, shard.lease, entry.mark, adopt_checkpoints=self.pipeline.adopt_checkpoints)
        except KclSparkError as error:
            return [Fail(error)]
        if done is not None and entry.mark is None:
            self.note(f"shard {shard.shard_id}: adopted the lease's checkpoint {done}; nothing before it is read")
        shard.ready(entry, done)
        return self._replies([link], now)

    def flushed(self, outcome: Flushed, now: float) -> list[Effect]:
        """The oldest batch in flight is over: move the marks, and let the daemon know in each open action."""
        self.in_flight.popleft()
        shards = {(shard.shard_id, shard.life): shard for shard in self.shards.values()}
        for done in outcome.settled:
            if shard := shards.get((done.shard_id, done.life)):
                shard.settle(done.entry, done.mark)
        for shard_id, life, error in outcome.stopped:
            if shard := shards.get((shard_id, life)):
                self.batcher.drop(shard_id, life)
                self._stop(shard, error)
                shard.forget()
        if any(shard.owed in ("shardEnded", "shutdownRequested") and shard.pending for shard in shards.values()):
            self.batcher.close_early()
        return self._advance(now)

    def tick(self, now: float) -> list[Effect]:
        """Time has passed."""
        return self._advance(now)

    def drain(self, now: float) -> list[Effect]:
        """The worker is shutting down: flush what there is, and hold nothing back that lets the daemon end in order."""
        self.draining = True
        self.batcher.close_early()
        return self._advance(now)

    def wakes_at(self) -> float | None:
        """When `tick` is next worth calling; None where only an event can change anything."""
        times = [time for shard in self.shards.values() if (time := shard.wakes_at()) is not None]
        if not self.in_flight and self.batcher.due_at is not None:
            times.append(self.batcher.due_at)
        return min(times, default=None)

    # ------------------------------------------------------------------------------------------------ how it reacts

    def _initialize(self, link: int, event: Initialize, now: float) -> list[Effect]:
        self._lives += 1
        shard = Shard(
            event,
            self._lives,
            checkpoints=self.pipeline.keeps_marks,
            heartbeat=self.heartbeat,
            handover=self.handover,
            now=now,
        )
        for former in self.shards.values():
            if former.shard_id == shard.shard_id:
                self._disown(former)
        self.shards[link] = shard
        self._owners[shard.shard_id] = shard.life
        return [ReadLedger(link, shard.shard_id)]

    def _records(self, link: int, event: ProcessRecords, now: float) -> list[Effect]:
        shard = self.shards[link]
        shard.owe(event.kind, now)
        try:
            chunk = shard.deliver(event, now)
        except ShardStopped as error:
            self._stop(shard, error)
            self.note(str(error))
            chunk = None
        self.steps.reached(Step.TRIMMED)
        if chunk is not None and self.owns(shard.shard_id, shard.life):
            self.batcher.add(shard.shard_id, shard.life, chunk)
            self.steps.reached(Step.BUFFERED)
        return self._advance(now, [link])

    def _answer(self, link: int, event: CheckpointAnswer, now: float) -> list[Effect]:
        shard = self.shards[link]
        self.steps.reached(Step.CHECKPOINT_ANSWERED)
        reaction = shard.answered(event, now)
        if reaction is not None:
            self.note(f"shard {shard.shard_id}: checkpoint answered with {event.error}, {reaction.name.lower()}")
        if shard.lease_gone:
            self._disown(shard)
        return self._replies([link], now)

    def _owe(self, link: int, kind: str, now: float) -> list[Effect]:
        self.shards[link].owe(kind, now)
        return self._advance(now, [link])

    def _stop(self, shard: Shard, error: ShardStopped) -> None:
        shard.stop(error)
        self.stopped[shard.shard_id] = error

    def _disown(self, shard: Shard) -> None:
        """From here on nothing of this life may be committed, and what it has buffered is dropped."""
        self.batcher.drop(shard.shard_id, shard.life)
        shard.forget()
        if self.owns(shard.shard_id, shard.life):
            del self._owners[shard.shard_id]

    def _advance(self, now: float, links: Iterable[int] | None = None) -> list[Effect]:
        """Close the batch if it is due, then say what may be said; to every shard if room was made."""
        effects: list[Effect] = []
        while self._should_seal(now):
            bases = {(shard.shard_id, shard.life): shard.base for shard in self.shards.values()}
            self.in_flight.append(self.batcher.seal(bases, now))
            self.steps.reached(Step.SEALED)
            effects.append(Flush(self.in_flight[-1]))
            links = None
        return effects + self._replies(self.shards if links is None else links, now)

    def _should_seal(self, now: float) -> bool:
        if self.in_flight:
            return len(self.in_flight) < MOST_IN_FLIGHT and not self.batcher.has_room
        return self.batcher.is_due(now)

    def _replies(self, links: Iterable[int], now: float) -> list[Effect]:
        effects: list[Effect] = []
        for link in list(links):
            shard = self.shards[link]
            reply = shard.reply(now, has_room=self.batcher.has_room, draining=self.draining)
            if isinstance(reply, Leave):
                effects += self.ended(link, reply.error)
            elif reply is not None:
                effects.append(Send(link, reply))
                if reply == Status("shutdownRequested"):
                    self._disown(shard)
        return effects
