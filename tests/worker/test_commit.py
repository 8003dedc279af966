"""The flush, step by step, with a table in memory and a Spark that is a loop: what is committed, in which order, and
what happens when something between two steps does.

The oracle is plain: rows and dead letters in the tables, each identity counted, nothing made distinct first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kcl_spark import formats
from kcl_spark.errors import (
    CommitConflict,
    DeadLetterLimitExceeded,
    DeadLetterRefused,
    KclSparkError,
    OutcomeUnknown,
    SinkError,
    SpoolError,
    TransformBroken,
)
from kcl_spark.pipeline import DeadLetterLimit
from kcl_spark.positions import Position
from kcl_spark.protocol import Record
from kcl_spark.sinks.base import Entry, Move, Staged
from kcl_spark.sinks.memory import MemorySink, MemoryTable, OpenMemory
from kcl_spark.worker.batching import Batch, Slice
from kcl_spark.worker.commit import Flusher
from kcl_spark.worker.compute import Computed
from kcl_spark.worker.deliveries import Chunk
from kcl_spark.worker.spool import Spool, Spooled
from kcl_spark.worker.steps import Step, Steps
from kcl_spark.worker.worker import Flushed, Settled

Fault = Exception | Callable[[], None]


class Frame(list[dict[str, Any]]):
    """Rows that can be collected, as a DataFrame can."""

    def collect(self) -> list[Any]:
        return [Row(row) for row in self]


class Row(dict[str, Any]):
    def asDict(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return dict(self)


@dataclass
class Loop:
    """Spark as a loop: `bad` payloads do not decode, `boom` ones break the transform, unless told otherwise."""

    decodes: Callable[[bytes], bool] = lambda payload: payload != b"bad"
    passes: Callable[[bytes], bool] = lambda payload: payload != b"boom"
    faults: list[Fault] = field(default_factory=list)
    runs: int = 0

    def compute(self, spooled: Spooled, stage: Callable[[Any], Staged]) -> Computed:
        self.runs += 1
        strike(self.faults)
        rows = pq.read_table(spooled.path).to_pylist()
        good = [row for row in rows if self.decodes(row["data"])]
        broken = {row["_row"]: "the transform failed" for row in good if not self.passes(row["data"])}
        if broken:
            return Computed(None, broken)
        failures = {row["_row"]: "undecodable" for row in rows if not self.decodes(row["data"])}
        return Computed(stage(Frame(good)), failures)

    def letters_frame(self, path: str) -> Any:
        return Frame(pq.read_table(path).to_pylist())


def skip() -> None:
    """Let this one pass."""


def strike(faults: list[Fault]) -> None:
    """Let the next planned fault happen, if there is one."""
    if faults:
        fault = faults.pop(0)
        if isinstance(fault, Exception):
            raise fault
        fault()


class Faulty(OpenMemory):
    """A table that fails on purpose, before or after a commit, or when it is read."""

    def __init__(self, table: MemoryTable) -> None:
        super().__init__(table, "test")
        self.before: list[Fault] = []
        self.after: list[Fault] = []
        self.reading: list[Fault] = []
        self.abandoned: list[Staged] = []

    def commit(self, staged: Staged | None, moves: Sequence[Move]) -> None:
        strike(self.before)
        super().commit(staged, moves)
        strike(self.after)

    def entries(self, shard_ids: Collection[str]) -> Mapping[str, Entry]:
        strike(self.reading)
        return super().entries(shard_ids)

    def abandon(self, staged: Staged) -> None:
        self.abandoned.append(staged)


class World:
    """One data table, one dead-letter table, and as many flushers on them as a test needs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = MemorySink("data")
        self.dead = MemorySink("dead")
        self.owned: set[tuple[str, int]] = set()
        self.patience = 100
        self.steps: list[Step] = []
        self.on_step: dict[Step, Callable[[], None]] = {}
        self.notes: list[str] = []
        self.number = 0

    def flusher(self, *, dead: bool = True, limit: DeadLetterLimit | None = None, marks: bool = True) -> Flusher:
        self.number += 1
        return Flusher(
            spool=Spool(self.folder / str(self.number), 1, formats.raw()),
            compute=Loop(),
            data=Faulty(self.data.table),
            dead=Faulty(self.dead.table) if dead else None,
            owns=lambda shard, life: (shard, life) in self.owned,
            limit=limit or DeadLetterLimit(),
            source=formats.raw(),
            steps=Steps(self._reached),
            clock=lambda: 0.0,
            now=lambda: datetime(2026, 1, 1, tzinfo=UTC),
            wait=self._wait,
            note=self.notes.append,
            keeps_marks=marks,
        )

    def _reached(self, step: Step) -> None:
        self.steps.append(step)
        self.on_step.pop(step, lambda: None)()

    def _wait(self, _: float) -> bool:
        self.patience -= 1
        return self.patience > 0

    def batch(self, *parts: Slice) -> Batch:
        self.owned |= {(part.shard_id, part.life) for part in parts}
        return Batch(1, parts, 0.0)

    def flush(self, flusher: Flusher, *parts: Slice) -> Flushed:
        return flusher.flush(flusher.prepare(self.batch(*parts)))

    # the oracle

    def rows(self, shard: str = "a") -> list[int]:
        return [int(row["_sequence_number"]) for row in self.data.table.rows if row["_shard_id"] == shard]

    def letters(self, shard: str = "a") -> list[int]:
        return [int(row["_sequence_number"]) for row in self.dead.table.rows if row["_shard_id"] == shard]

    def mark(self, shard: str = "a") -> Position | None:
        return self.data.table.entries.get(("test", shard), Entry()).mark

    def accounts_for(self, *numbers: int, shard: str = "a") -> None:
        """Every record once, in one of the two tables: rows in = rows out + dead letters."""
        assert Counter(self.rows(shard)) + Counter(self.letters(shard)) == Counter(numbers)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def part(*numbers: int | tuple[int, bytes], shard: str = "a", life: int = 1, base: Entry = Entry()) -> Slice:  # noqa: B008
    """A slice of records; a number alone has a payload that passes."""
    pairs = [number if isinstance(number, tuple) else (number, b"good") for number in numbers]
    chunks = [Chunk.of([Record(payload, "k", str(n), 0, 0)], {}, 0.0) for n, payload in pairs]
    return Slice(shard, life, base, tuple(chunks))


def settled(outcome: Flushed) -> dict[str, Entry]:
    return {done.shard_id: done.entry for done in outcome.settled}


def data_of(flusher: Flusher) -> Faulty:
    assert isinstance(flusher.data, Faulty)
    return flusher.data


def dead_of(flusher: Flusher) -> Faulty:
    assert isinstance(flusher.dead, Faulty)
    return flusher.dead


def loop_of(flusher: Flusher) -> Loop:
    assert isinstance(flusher.compute, Loop)
    return flusher.compute


# ------------------------------------------------------------------------------------------------ in order


def test_a_batch_is_committed_with_its_marks(world: World) -> None:
    outcome = world.flush(world.flusher(), part(1, 2), part(7, shard="b"))
    assert world.rows("a") == [1, 2]
    assert world.rows("b") == [7]
    assert settled(outcome) == {"a": Entry(2, Position(2)), "b": Entry(2, Position(7))}
    assert world.mark("a") == Position(2)
    assert world.steps == [Step.SPOOLED, Step.STAGED, Step.COMMITTED]


def test_nothing_is_left_on_disk(world: World) -> None:
    world.flush(world.flusher(), part(1, (2, b"bad"), (3, b"boom")))
    assert [path for path in world.folder.rglob("*") if path.is_file()] == []


def test_dead_letters_are_committed_before_the_commit_that_passes_over_them(world: World) -> None:
    flusher = world.flusher()
    outcome = world.flush(flusher, part(1, (2, b"bad"), 3, (4, b"boom"), 5))
    assert world.rows() == [1, 3, 5]
    assert world.letters() == [2, 4]
    assert settled(outcome)["a"].mark == Position(5)
    assert world.steps[-2:] == [Step.DEAD_LETTERS_COMMITTED, Step.COMMITTED]
    assert flusher.account.records == 5
    assert flusher.account.dead_letters == 2
    assert flusher.account.rows == 3


def test_a_batch_of_nothing_but_dead_letters_still_moves_the_mark(world: World) -> None:
    world.flush(world.flusher(), part((1, b"bad"), (2, b"bad")))
    assert world.mark() == Position(2)
    assert (world.rows(), world.letters()) == ([], [1, 2])


def test_a_record_whose_base64_was_broken_is_a_dead_letter(world: World) -> None:
    chunk = Chunk.of([Record(b"x", "k", "1"), Record(None, "k", "2"), Record(b"x", "k", "3")], {1: "??"}, 0.0)
    world.flush(world.flusher(), Slice("a", 1, Entry(), (chunk,)))
    assert (world.rows(), world.letters()) == ([1, 3], [2])
    assert world.dead.table.rows[0]["payload"] == b"??"
    assert world.dead.table.rows[0]["failed_at"] == datetime(2026, 1, 1, tzinfo=UTC)


def test_the_next_batch_builds_on_the_one_before_although_it_was_sealed_earlier(world: World) -> None:
    """Two batches in flight: the second one's slices still name the entry before the first."""
    flusher = world.flusher()
    first = flusher.prepare(world.batch(part(1, 2)))
    second = flusher.prepare(world.batch(part(3, 4)))
    flusher.flush(first)
    outcome = flusher.flush(second)
    world.accounts_for(1, 2, 3, 4)
    assert settled(outcome) == {"a": Entry(3, Position(4))}


def test_what_the_mark_has_overtaken_is_left_out(world: World) -> None:
    world.flush(world.flusher(dead=False), part(1, 2, base=Entry()))
    outcome = world.flush(world.flusher(dead=False), part(1, 2, 3, life=2, base=Entry(1, Position(2))))
    world.accounts_for(1, 2, 3)
    assert settled(outcome) == {"a": Entry(2, Position(3))}


# ------------------------------------------------------------------------------------------------ dead letters refused


def test_without_a_place_for_dead_letters_the_shard_stops_and_the_others_go_on(world: World) -> None:
    flusher = world.flusher(dead=False)
    outcome = world.flush(flusher, part(1, (2, b"bad")), part(5, shard="b"))
    assert world.rows("a") == []
    assert world.rows("b") == [5]
    assert [(shard, type(error)) for shard, _, error in outcome.stopped] == [("a", DeadLetterRefused)]
    assert set(settled(outcome)) == {"b"}


def test_too_many_dead_letters_stop_the_shard_and_none_of_them_is_written(world: World) -> None:
    flusher = world.flusher(limit=DeadLetterLimit(0.5, 4))
    outcome = world.flush(flusher, part((1, b"bad"), (2, b"bad"), (3, b"bad"), 4), part(5, shard="b"))
    assert (world.rows("a"), world.letters("a"), world.mark("a")) == ([], [], None)
    assert world.rows("b") == [5]
    assert isinstance(outcome.stopped[0][2], DeadLetterLimitExceeded)


def test_a_batch_behind_the_one_that_stopped_its_shard_is_dropped(world: World) -> None:
    flusher = world.flusher(dead=False)
    first = flusher.prepare(world.batch(part((1, b"bad"))))
    second = flusher.prepare(world.batch(part(2), part(9, shard="b")))
    flusher.flush(first)
    outcome = flusher.flush(second)
    assert world.rows("a") == []
    assert set(settled(outcome)) == {"b"}


def test_dead_letters_that_cannot_be_written_hold_the_batch(world: World) -> None:
    flusher = world.flusher()
    world.patience = 5
    dead_of(flusher).before = [lambda: None, *[SinkError("down") for _ in range(20)]]
    outcome = world.flush(flusher, part(1, (2, b"bad")))
    assert outcome == Flushed()
    assert (world.rows(), world.letters()) == ([], [])


# ------------------------------------------------------------------------------------------------ the fence


def foreign(world: World, *numbers: int, shard: str = "a", dead: bool = False) -> Callable[[], None]:
    """Another life of the shard commits these records, from whatever the ledger holds."""

    def commit() -> None:
        sink = (world.dead if dead else world.data).open("test")
        base = sink.entries([shard])[shard]
        rows = [{"_shard_id": shard, "_sequence_number": str(n), "_sub_sequence_number": 0} for n in numbers]
        mark = max([Position(n) for n in numbers] + ([base.mark] if base.mark else []))
        sink.commit(Staged(len(rows), 0, rows), [Move(shard, base, mark, len(rows))])

    return commit


@pytest.mark.parametrize("dead", [True, False])
def test_another_commit_on_a_shard_is_a_conflict_and_only_the_rest_is_written(world: World, dead: bool) -> None:
    flusher = world.flusher(dead=dead)
    data_of(flusher).before = [*[skip] * dead, foreign(world, 1, 2)]
    outcome = world.flush(flusher, part(1, 2, 3), part(7, shard="b"))
    world.accounts_for(1, 2, 3)
    world.accounts_for(7, shard="b")
    assert settled(outcome)["a"].mark == Position(3)


@pytest.mark.parametrize("dead", [True, False])
def test_a_conflict_with_a_commit_that_holds_everything_writes_nothing(world: World, dead: bool) -> None:
    flusher = world.flusher(dead=dead)
    data_of(flusher).before = [*[skip] * dead, foreign(world, 1, 2, 3)]
    outcome = world.flush(flusher, part(1, 2))
    assert world.rows() == [1, 2, 3]
    assert settled(outcome)["a"].mark == Position(3)


def test_a_first_life_that_flushes_after_the_second_has_begun_loses(world: World) -> None:
    """Planted: lives may not be told apart by memory alone, so both are "owned" here and only the ledger decides."""
    first, second = world.flusher(dead=False), world.flusher(dead=False)
    late = first.prepare(world.batch(part(1, 2, life=1)))
    world.flush(second, part(1, 2, 3, life=2))
    first.flush(late)
    world.accounts_for(1, 2, 3)


def test_a_shard_whose_lease_is_gone_leaves_the_batch(world: World) -> None:
    flusher = world.flusher()
    world.on_step[Step.STAGED] = lambda: world.owned.discard(("a", 1))
    data_of(flusher).before = [lambda: None, CommitConflict("so that it looks again")]
    outcome = world.flush(flusher, part(1), part(7, shard="b"))
    assert world.rows("a") == []
    assert world.rows("b") == [7]
    assert set(settled(outcome)) == {"b"}


def test_a_batch_that_nobody_owns_any_more_is_dropped(world: World) -> None:
    flusher = world.flusher()
    prepared = flusher.prepare(world.batch(part(1)))
    world.owned.clear()
    assert flusher.flush(prepared) == Flushed()
    assert world.data.table.commits == []


# ------------------------------------------------------------------------------------------------ outcome unknown


def test_a_commit_that_was_lost_on_the_way_back_is_recognised(world: World) -> None:
    flusher = world.flusher(dead=False)
    data_of(flusher).after = [OutcomeUnknown("timed out")]
    outcome = world.flush(flusher, part(1, 2))
    world.accounts_for(1, 2)
    assert settled(outcome) == {"a": Entry(1, Position(2))}
    assert data_of(flusher).abandoned == []


@pytest.mark.parametrize("fault", [OSError("no more processes"), RuntimeError("anything")])
@pytest.mark.parametrize("place", ["data", "dead"])
def test_an_error_that_is_no_verdict_says_nothing_about_the_outcome(world: World, fault: Exception, place: str) -> None:
    """Tried again blindly, our own commit is a conflict, and a conflict removes the files that the table now has."""
    flusher = world.flusher()
    sink = data_of(flusher) if place == "data" else dead_of(flusher)
    sink.after = [skip, fault]  # the first commit is the claim
    world.flush(flusher, part(1, (2, b"bad")))
    world.accounts_for(1, 2)
    assert sink.abandoned == []


def test_best_effort_repeats_nothing_after_such_an_error_either(world: World) -> None:
    flusher = world.flusher(dead=False, marks=False)
    data_of(flusher).after = [OSError("no more processes")]
    world.flush(flusher, part(1, 2))
    world.accounts_for(1, 2)


def test_files_of_a_commit_that_was_torn_away_are_never_removed(world: World) -> None:
    flusher = world.flusher(dead=False)

    def tear() -> None:
        raise KeyboardInterrupt

    data_of(flusher).after = [tear]
    with pytest.raises(KeyboardInterrupt):
        world.flush(flusher, part(1, 2))
    assert data_of(flusher).abandoned == []


def test_a_commit_that_did_not_happen_is_repeated_with_the_same_files(world: World) -> None:
    flusher = world.flusher(dead=False)
    data_of(flusher).before = [OutcomeUnknown("timed out"), OutcomeUnknown("timed out")]
    world.flush(flusher, part(1, 2))
    world.accounts_for(1, 2)
    assert loop_of(flusher).runs == 1, "whichever attempt lands, it is the same files"
    assert data_of(flusher).abandoned == []


def test_files_of_an_unknown_outcome_are_never_removed(world: World) -> None:
    """The commit may land after we have looked: then they are the table's."""
    flusher = world.flusher(dead=False)
    data_of(flusher).before = [OutcomeUnknown("timed out"), foreign(world, 1)]
    world.flush(flusher, part(1, 2))
    world.accounts_for(1, 2)
    assert data_of(flusher).abandoned == []


def test_an_unknown_outcome_is_read_back_until_the_table_answers(world: World) -> None:
    flusher = world.flusher(dead=False)
    data_of(flusher).after = [OutcomeUnknown("timed out")]
    data_of(flusher).reading = [lambda: None, SinkError("down"), SinkError("down")]
    world.flush(flusher, part(1, 2))
    world.accounts_for(1, 2)


@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("table", ["data", "dead"])
def test_an_unknown_claim(world: World, table: str, place: str) -> None:
    flusher = world.flusher()
    setattr(getattr(flusher, table), place, [OutcomeUnknown("timed out")])
    world.flush(flusher, part(1, (2, b"bad")))
    assert (world.rows(), world.letters()) == ([1], [2])
    assert world.mark() == Position(2)


def latest(world: World) -> Entry:
    return world.data.table.entries.get(("test", "a"), Entry())


@pytest.mark.parametrize("place", ["before", "after"])
def test_an_unknown_burial_is_neither_lost_nor_doubled(world: World, place: str) -> None:
    flusher = world.flusher()
    setattr(dead_of(flusher), place, [lambda: None, OutcomeUnknown("timed out")])
    world.flush(flusher, part(1, (2, b"bad"), 3))
    assert (world.rows(), world.letters()) == ([1, 3], [2])


# ------------------------------------------------------------------------------------------------ crashes


def crash(world: World, flusher: Flusher, step: Step, *parts: Slice) -> None:
    """The process ends at a step: nothing after it happens, and no memory survives."""

    class Killed(BaseException):
        pass

    def kill() -> None:
        raise Killed

    world.on_step[step] = kill
    with pytest.raises(Killed):
        world.flush(flusher, *parts)


STEPS = [Step.SPOOLED, Step.STAGED, Step.DEAD_LETTERS_COMMITTED, Step.COMMITTED]


@pytest.mark.parametrize("step", STEPS)
def test_a_crash_at_any_step_and_a_replay_lose_and_double_nothing(world: World, step: Step) -> None:
    records = (1, (2, b"bad"), 3, (4, b"boom"), 5)
    crash(world, world.flusher(), step, part(*records))
    entry = latest(world)
    replay = [r for r in records if entry.mark is None or (r if isinstance(r, int) else r[0]) > entry.mark.sequence]
    if replay:
        world.flush(world.flusher(), part(*replay, life=2, base=entry))
    assert (world.rows(), world.letters()) == ([1, 3, 5], [2, 4])


@pytest.mark.parametrize("step", STEPS)
def test_a_replay_that_is_cut_differently(world: World, step: Step) -> None:
    crash(world, world.flusher(), step, part(1, (2, b"bad"), 3, (4, b"bad"), 5))
    flusher = world.flusher()
    entry = latest(world)
    pieces: list[list[int | tuple[int, bytes]]] = [[1, (2, b"bad")], [3], [(4, b"bad"), 5, 6]]
    for piece in pieces:
        left = [r for r in piece if entry.mark is None or (r if isinstance(r, int) else r[0]) > entry.mark.sequence]
        if left:
            world.flush(flusher, part(*left, life=2, base=entry))
    assert (world.rows(), world.letters()) == ([1, 3, 5, 6], [2, 4])


def test_a_record_that_fails_in_one_life_and_passes_in_the_next_is_in_one_table_only(world: World) -> None:
    """Its dead letter is durable, so it stays one: whatever the transform thinks of it now."""
    crash(world, world.flusher(), Step.DEAD_LETTERS_COMMITTED, part(1, (2, b"boom"), 3))
    assert world.letters() == [2]
    healed = world.flusher()
    loop_of(healed).passes = lambda _: True
    world.flush(healed, part(1, (2, b"boom"), 3, life=2, base=latest(world)))
    assert (world.rows(), world.letters()) == ([1, 3], [2])


def test_a_record_that_passes_in_one_life_and_fails_in_the_next_is_not_lost(world: World) -> None:
    """The dead letters' mark has passed it already; only what is really buried may be left out."""
    first = world.flusher()
    loop_of(first).passes = lambda payload: payload != b"late"
    crash(world, first, Step.DEAD_LETTERS_COMMITTED, part((1, b"boom"), (2, b"x"), (3, b"late")))
    second = world.flusher()
    loop_of(second).passes = lambda payload: payload == b"boom"
    world.flush(second, part((1, b"boom"), (2, b"x"), (3, b"late"), life=2, base=latest(world)))
    assert (world.rows(), world.letters()) == ([1], [3, 2])


def test_an_older_life_can_bury_nothing_once_a_newer_one_has_claimed(world: World) -> None:
    """The older life is at its burial when the newer one commits the same record as a row: it must not be in both."""
    older, newer = world.flusher(), world.flusher()
    loop_of(newer).passes = lambda _: True

    def overtake() -> None:
        world.owned.discard(("a", 1))
        world.flush(newer, part(1, (2, b"boom"), 3, life=2, base=latest(world)))

    world.on_step[Step.STAGED] = overtake
    world.flush(older, part(1, (2, b"boom"), 3))
    assert (world.rows(), world.letters()) == ([1, 2, 3], [])


def test_an_older_life_that_claims_again_makes_the_newer_one_look(world: World) -> None:
    """Both believe that the shard is theirs; the older one buries a record that the newer one takes for good."""
    older, newer = world.flusher(), world.flusher()
    loop_of(newer).passes = lambda _: True
    world.flush(older, part(1))

    def bury_behind_its_back() -> None:
        world.flush(older, part((2, b"boom")))

    base = latest(world)
    newer_data = data_of(newer)
    newer_data.before = [lambda: None, bury_behind_its_back]
    world.flush(newer, part((2, b"boom"), 3, life=2, base=base))
    world.accounts_for(1, 2, 3)


# ------------------------------------------------------------------------------------------------ out of reach


def test_a_full_disk_holds_the_batch_until_there_is_room(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    flusher = world.flusher()
    full: Iterator[Exception] = iter(
        [SpoolError("the spool can't take a batch: No space left on device", "Free some")] * 3
    )
    write = flusher.spool.write

    def writes(batch: Batch) -> Spooled:
        error = next(full, None)
        if error:
            raise error
        return write(batch)

    monkeypatch.setattr(flusher.spool, "write", writes)
    world.flush(flusher, part(1))
    world.accounts_for(1)
    assert len([note for note in world.notes if "No space left" in note]) == 3


def test_a_sink_that_is_down_is_asked_again(world: World) -> None:
    flusher = world.flusher()
    data_of(flusher).before = [SinkError("down")] * 5
    world.flush(flusher, part(1))
    world.accounts_for(1)
    assert world.notes.count("down") == 5


def test_a_job_that_fails_for_reasons_of_its_own_is_tried_again(world: World) -> None:
    flusher = world.flusher()
    loop_of(flusher).faults = [OSError("No space left on device")] * 2
    world.flush(flusher, part(1))
    world.accounts_for(1)
    assert any("No space left" in note for note in world.notes)


@pytest.mark.parametrize("error", [TransformBroken("it is"), KclSparkError("anything")])
def test_what_waiting_does_not_mend_ends_the_worker(world: World, error: KclSparkError) -> None:
    flusher = world.flusher()
    loop_of(flusher).faults = [error]
    with pytest.raises(type(error)):
        world.flush(flusher, part(1))
    assert world.data.table.rows == []


def test_nobody_waits_for_a_sink_when_the_worker_is_ending(world: World) -> None:
    flusher = world.flusher()
    data_of(flusher).before = [SinkError("down")] * 50
    world.patience = 3
    assert world.flush(flusher, part(1)) == Flushed()
    assert world.data.table.rows == []


def test_nobody_waits_for_a_disk_when_the_worker_is_ending(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    flusher = world.flusher()

    def full(_: Batch) -> Spooled:
        raise SpoolError("full")

    monkeypatch.setattr(flusher.spool, "write", full)
    world.patience = 2
    assert world.flush(flusher, part(1)) == Flushed()


# ------------------------------------------------------------------------------------------------ best effort


def test_best_effort_appends_without_a_ledger(world: World) -> None:
    flusher = world.flusher(marks=False)
    outcome = world.flush(flusher, part(1, (2, b"bad"), 3))
    assert (world.rows(), world.letters()) == ([1, 3], [2])
    assert world.data.table.entries == world.dead.table.entries == {}
    assert outcome.settled == (Settled("a", 1, Entry(), Position(3)),)


def test_best_effort_never_repeats_a_commit_whose_outcome_is_unknown(world: World) -> None:
    flusher = world.flusher(marks=False)
    data_of(flusher).after = [OutcomeUnknown("timed out")]
    world.flush(flusher, part(1))
    assert world.rows() == [1]
