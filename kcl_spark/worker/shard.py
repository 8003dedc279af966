"""One life of one shard on this worker: what it owes the daemon, and when it may say so. Pure; time comes in.

Status means accepted, checkpoint means durable (rule 3): the status of a delivery goes out as soon as its records are
buffered and there is room; the checkpoint goes out in the first open action after the commit, with explicit numbers.
What is owed decides what is said:

    owed for            said, first that applies
    -----------------   ----------------------------------------------------------------------------------------
    initialize          status, once the ledger has been read
    processRecords      checkpoint if the mark moved; status if there is room; heartbeat
    shutdownRequested   (until flushed or the deadline) heartbeat; checkpoint if the mark moved; status
    shardEnded          (until flushed) heartbeat; the null checkpoint, again and again; status; else leave without one
    leaseLost           status

A heartbeat is the lease's present checkpoint sent once more: the daemon answers without a write, and its timeout starts
anew. A sentinel is only ever sent back unchanged, as a heartbeat: the daemon would take LATEST for an answer to
TRIM_HORIZON and skip the stream on the next start.

A life ends with `leaseLost`, `shardEnded` or the end of the pipe. The next life of the same shard may begin while a
flush of this one still runs (seen one second after `leaseLost`), so lives are numbered and a batch names its life.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from kcl_spark import positions
from kcl_spark.errors import KclSparkError, RemoteProtocolError, ShardStopped
from kcl_spark.positions import Position, Sentinel
from kcl_spark.protocol import Checkpoint, CheckpointAnswer, Initialize, ProcessRecords, Status
from kcl_spark.sinks.base import Entry
from kcl_spark.worker import deliveries
from kcl_spark.worker.deliveries import Chunk


class Reaction(Enum):
    """What to do about a checkpoint that was answered with an error."""

    RETRY = auto()
    """The store was busy or out of reach; it may still have stored it, which is harmless: the ledger decides."""
    LEASE_GONE = auto()
    """Another worker owns the shard: drop what is not committed and wait for the end."""
    GIVE_UP = auto()
    """Asking again would get the same answer."""


REACTIONS: Final = {
    "ThrottlingException": Reaction.RETRY,
    "KinesisClientLibDependencyException": Reaction.RETRY,
    "KinesisClientLibIOException": Reaction.RETRY,
    "ShutdownException": Reaction.LEASE_GONE,
}
"""Java class name -> reaction; every other name (InvalidStateException, IllegalArgumentException, ...) is GIVE_UP."""

RETRY_FIRST: Final = 0.25
RETRY_MOST: Final = 5.0
END_ATTEMPTS: Final = 12
"""Attempts at the null checkpoint: with waits of 0.25 s doubling to 5 s they cover about 45 s of a throttled table,
longer than DynamoDB's bursts last and shorter than an operator's patience with a stuck reshard."""

HANDOVER_SECONDS: Final = 25.0
"""A graceful hand-over takes the lease away 30 s after `shutdownRequested` was decided, the rest of the running batch
included; five of them are left for the last checkpoint."""


@dataclass(frozen=True, slots=True)
class Leave:
    """End the child without a status, so that the daemon restarts and delivers the action again."""

    error: KclSparkError


Reply = Status | Checkpoint | Leave | None


class Shard:
    """A life, from `initialize` to its end.

    Args:
        opening: the `initialize` message.
        life: which life of which shard this is; no two lives on a worker share it.
        checkpoints: False for best-effort recovery, which never moves a lease before the shard's end.
        heartbeat: seconds of silence after which a heartbeat is due.
        handover: seconds after which `shutdownRequested` is answered with what is durable by then.
        now: monotonic seconds.
    """

    def __init__(
        self, opening: Initialize, life: int, *, checkpoints: bool, heartbeat: float, handover: float, now: float
    ) -> None:
        self.shard_id = opening.shard_id
        self.life = life
        self.lease = _lease(opening)
        self.base = Entry()
        self.mark: Position | None = None
        self.delivered: Position | None = None
        self.accepted: Position | None = None
        self.stopped: ShardStopped | None = None
        self.lease_gone = False
        self.disowned = False
        self.owed: str | None = opening.kind
        self.millis_behind_latest: int | None = None
        self._opening = opening
        self._checkpoints = checkpoints
        self._heartbeat = heartbeat
        self._handover = handover
        self._ready = False
        self._awaiting = False
        self._incomplete = False
        self._stored: positions.Checkpoint = self.lease
        self._looked_at = now
        self._asked: Position | None = None
        self._ending = False
        self._ended = False
        self._attempts = 0
        self._retry_at = now
        self._owed_since = now
        self._spoke_at = now

    # ------------------------------------------------------------------------------------------- what happens to it

    def ready(self, entry: Entry, done: Position | None) -> None:
        """The ledger has been read: build on `entry`, drop records up to `done`."""
        self.base, self.mark, self._ready = entry, done, True

    def owe(self, kind: str, now: float) -> None:
        """The daemon asked for something and waits."""
        self.owed, self._owed_since, self._spoke_at = kind, now, now
        self._attempts, self._retry_at = 0, now

    def deliver(self, event: ProcessRecords, now: float) -> Chunk | None:
        """Take a delivery; return the part of it that is new, or None.

        Raises:
            SequenceWentBackwards: the shard stops here.
        """
        self.millis_behind_latest = event.millis_behind_latest
        if self.stopped or self.disowned:
            self._incomplete = self._incomplete or bool(event.records)
            return None
        event = deliveries.in_order(self.shard_id, event, self.delivered)
        if event.records:
            self.delivered = deliveries.place(event.records[-1])
        event = deliveries.after(event, self.mark)
        if not event.records:
            return None
        chunk = Chunk.of(event.records, event.undecodable, now)
        self.accepted = chunk.span.last
        return chunk

    def settle(self, entry: Entry, mark: Position) -> None:
        """A flush of this life is over and the ledger holds `entry`; everything up to `mark` is settled."""
        self.base = entry
        self.mark = mark if self.mark is None else max(self.mark, mark)

    def stop(self, error: ShardStopped) -> None:
        """Nothing more of this life will be accepted; its lease is held until the worker ends."""
        self.stopped = error

    def forget(self) -> None:
        """Nothing more of this life will be committed: what is not durable yet is dropped.

        A life that has dropped anything must never send the null checkpoint, which means "all that was delivered".
        """
        self._incomplete = self._incomplete or self.pending
        self.disowned = True
        self.accepted = self.mark

    def answered(self, answer: CheckpointAnswer, now: float) -> Reaction | None:
        """Take the answer to the checkpoint that is in flight; return what an error means."""
        asked, self._asked, ending, self._ending = self._asked, None, self._ending, False
        self._awaiting, self._spoke_at = False, now
        if answer.error is None:
            self._ended = self._ended or ending
            if asked is not None:
                self._stored = asked
            return None
        reaction = REACTIONS.get(answer.error, Reaction.GIVE_UP)
        if reaction is Reaction.LEASE_GONE:
            self.lease_gone = True
            self.forget()
        elif asked is not None or ending:
            self._attempts += 1
            self._retry_at = now + min(RETRY_MOST, RETRY_FIRST * 2 ** (self._attempts - 1))
            if reaction is Reaction.GIVE_UP:
                self._attempts = END_ATTEMPTS
        return reaction

    # ------------------------------------------------------------------------------------------- what it says

    @property
    def pending(self) -> bool:
        """Whether records are accepted and not yet durable."""
        return self.accepted is not None and (self.mark is None or self.accepted > self.mark)

    def reply(self, now: float, *, has_room: bool, draining: bool) -> Reply:
        """Return what may be said now, and note that it is being said; None: nothing, wait.

        Args:
            now: monotonic seconds.
            has_room: whether another delivery may be invited.
            draining: the worker is shutting down, so that even a stopped shard lets the daemon go on to its end.
        """
        self._looked_at = now
        if self.owed is None or not self._ready or self._awaiting:
            return None
        said = self._reply(now, has_room=has_room, draining=draining)
        if isinstance(said, Status):
            self.owed = None
        self._awaiting = isinstance(said, Checkpoint)
        if said is not None:
            self._spoke_at = now
        return said

    def _reply(self, now: float, *, has_room: bool, draining: bool) -> Reply:
        match self.owed:
            case "processRecords":
                wait = not (has_room or draining) or (self.stopped is not None and not draining)
                return self._move(now) or (self._beat(now) if wait and not self.lease_gone else self._done())
            case "shutdownRequested":
                wait = self.pending and now < self._owed_since + self._handover
                return self._beat(now) if wait else self._move(now) or self._done()
            case "shardEnded":
                return self._end(now, draining=draining)
            case _:
                return self._done()

    def _done(self) -> Status:
        return Status(str(self.owed))

    def _move(self, now: float) -> Checkpoint | None:
        """The checkpoint that is due: as far as the ledger holds and the daemon has delivered."""
        if not self._checkpoints or self.mark is None or self.delivered is None or self.lease_gone:
            return None
        target = min(self.mark, self.delivered)
        behind = isinstance(self._stored, Sentinel) or target > self._stored
        if not behind or now < self._retry_at or self._attempts >= END_ATTEMPTS:
            return None
        self._asked = target
        return Checkpoint(target.sequence_number, target.sub)

    def _end(self, now: float, *, draining: bool) -> Reply:
        if self._ended:
            return self._done()
        if self.stopped is not None:
            return Leave(self.stopped) if draining else self._beat(now)
        if self.lease_gone or self._incomplete or self._attempts >= END_ATTEMPTS:
            return Leave(RemoteProtocolError(f"shard {self.shard_id}: its end could not be checkpointed"))
        if self.pending or now < self._retry_at:
            return self._beat(now)
        self._ending = True
        return Checkpoint(None, None)

    def _beat(self, now: float) -> Checkpoint | None:
        if now < self._spoke_at + self._heartbeat or self._opening.sequence_number is None:
            return None
        if isinstance(self._stored, Position):
            return Checkpoint(self._stored.sequence_number, self._stored.sub)
        return Checkpoint(self._opening.sequence_number, self._opening.sub_sequence_number)

    def wakes_at(self) -> float | None:
        """When `reply` could say something new by the passing of time alone; None where only an event can."""
        if self.owed is None or not self._ready or self._awaiting:
            return None
        times = [self._spoke_at + self._heartbeat, self._retry_at]
        if self.owed == "shutdownRequested":
            times.append(self._owed_since + self._handover)
        # One that has passed since the last look is due now; only those that were looked at say nothing new.
        return min((time for time in times if time > self._looked_at), default=None)

    @property
    def stored(self) -> positions.Checkpoint:
        """What the lease holds, as far as this life knows."""
        return self._stored


def _lease(opening: Initialize) -> positions.Checkpoint:
    try:
        return positions.parse_checkpoint(opening.sequence_number, opening.sub_sequence_number)
    except ValueError as error:
        raise RemoteProtocolError(f"initialize of shard {opening.shard_id}: {error}") from None
