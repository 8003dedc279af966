"""A worker on a desk: the pure machine, a clock that is set by hand, and everything it says written down."""

from dataclasses import dataclass, field, replace
from typing import Any

from kcl_spark import formats, sinks
from kcl_spark.pipeline import Pipeline, Trigger
from kcl_spark.positions import Position
from kcl_spark.protocol import (
    Checkpoint,
    CheckpointAnswer,
    Event,
    Initialize,
    LeaseLost,
    ProcessRecords,
    Record,
    ShardEnded,
    ShutdownRequested,
    Status,
)
from kcl_spark.sinks.base import Entry
from kcl_spark.worker.batching import Batch
from kcl_spark.worker.steps import Steps
from kcl_spark.worker.worker import Effect, End, Fail, Flush, Flushed, ReadLedger, Send, Settled, Worker

PIPELINE = Pipeline("test", formats.raw(), sinks.delta("out/test"), trigger=Trigger("1s", 1_000, "1MB"))


def records(*places: int | tuple[int, int], data: bytes = b"payload") -> ProcessRecords:
    pairs = [place if isinstance(place, tuple) else (place, 0) for place in places]
    return ProcessRecords([Record(data, "k", str(sequence), sub, 5) for sequence, sub in pairs], 0)


@dataclass
class Desk:
    """Drives a worker and keeps what it says, by link."""

    pipeline: Pipeline = PIPELINE
    heartbeat: float = 5.0
    now: float = 100.0
    said: dict[int, list[Checkpoint | Status]] = field(default_factory=dict)
    flushes: list[Batch] = field(default_factory=list)
    ends: list[End] = field(default_factory=list)
    failures: list[Fail] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    reads: list[ReadLedger] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.steps = Steps()
        self.worker = Worker(self.pipeline, self.heartbeat, self.steps, note=self.notes.append)

    def take(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send(link, message):
                    self.said.setdefault(link, []).append(message)
                case Flush(batch):
                    self.flushes.append(batch)
                case ReadLedger():
                    self.reads.append(effect)
                case End():
                    self.ends.append(effect)
                case Fail():
                    self.failures.append(effect)

    def hear(self, link: int, event: Event) -> None:
        self.take(self.worker.received(link, event, self.now))

    def open(self, link: int = 1, shard: str = "shard", at: str | None = "TRIM_HORIZON", **entry: Any) -> None:
        """Initialize a shard whose ledger entry is as given."""
        self.hear(link, Initialize(shard, at, 0))
        self.take(self.worker.ledger_read(link, Entry(**entry), self.now))

    def deliver(self, *places: int | tuple[int, int], link: int = 1) -> None:
        self.hear(link, records(*places))

    def tick(self, link: int = 1) -> None:
        """An empty batch, as an idle shard gets."""
        self.hear(link, ProcessRecords([], 0))

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.take(self.worker.tick(self.now))

    def answer(self, error: str | None = None, link: int = 1) -> None:
        asked = self.said[link][-1]
        assert isinstance(asked, Checkpoint)
        self.hear(link, CheckpointAnswer(asked.sequence_number, asked.sub_sequence_number, error))

    def commit(self) -> Batch:
        """The oldest batch in flight reaches the sink."""
        batch = self.worker.in_flight[0]
        settled = tuple(
            Settled(part.shard_id, part.life, Entry(part.base.version + 1, part.span.last), part.span.last)
            for part in batch.slices
            if self.worker.owns(part.shard_id, part.life)
        )
        self.flushed(Flushed(settled))
        return batch

    def flushed(self, outcome: Flushed) -> None:
        self.take(self.worker.flushed(outcome, self.now))

    def last(self, link: int = 1) -> Checkpoint | Status | None:
        return self.said.get(link, [None])[-1]

    def hush(self) -> None:
        """Forget what was said so far."""
        self.said.clear()


def desk(**changes: Any) -> Desk:
    """A desk whose pipeline differs in some field."""
    return Desk(replace(PIPELINE, **changes))


def at(sequence: int, sub: int = 0) -> Checkpoint:
    return Checkpoint(str(sequence), sub)


END = Checkpoint(None, None)
DONE = Status("processRecords")
LOST, ENDED, SHUTDOWN = LeaseLost(), ShardEnded(), ShutdownRequested()
MARK = Position
