"""A sealed batch becomes visible exactly once: the numbered steps of a flush, and what happens when one fails.

1. Spool. Rows go to local disk; this step may run while the batch before is in the others.
2. Claim. A life's first commit on a shard moves only the version in both ledgers, data first. From then on no commit of
   an older life can pass (rule 4), and the dead letters that an older life has left behind the data's mark are known.
3. Compute. Spark decodes, transforms and stages; what fails is named.
4. Judge. A shard with too many dead letters stops and leaves the batch.
5. Bury. The batch's dead letters are committed, before the commit that passes over them (rule 6).
6. Commit. Data and marks, in one transaction (rule 2).
7. Settle. The new entries go back to the shards, which checkpoint them.

Whatever is interrupted, the ledger decides what has happened:

    what happened                   what follows
    -----------------------------   ------------------------------------------------------------------------------
    conflict in 2, 5 or 6           read the entries; drop what they hold; claim again; go on with what is left
    outcome unknown in 2, 5, 6      read the entries until they can be read; then as above, or commit the same files
    a shard's lease is gone         its part leaves the batch; nobody waits for it
    disk full, sink out of reach    wait and try again; the batch's cap holds the daemon back meanwhile
    no record passes the transform  the worker ends

Why the dead letters' ledger is claimed too: a record may fail for one life and pass for the next (a transform that asks
another service). Then it must not be in both tables. An older life can bury nothing once the claim stands; if it claims
again itself, it has to move the data's version first, so that our commit conflicts and we read its dead letters before
anything of ours is visible.

Staged files are never removed after an unknown outcome: the commit may still land, and then they are the table's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

from kcl_spark.errors import (
    CommitConflict,
    DeadLetterRefused,
    KclSparkError,
    OutcomeUnknown,
    SchemaDrift,
    ShardStopped,
    SinkError,
    SpoolError,
    TableRefused,
)
from kcl_spark.formats.base import Format
from kcl_spark.pipeline import DeadLetterLimit
from kcl_spark.positions import Position
from kcl_spark.sinks.base import Entry, Move, OpenSink, Staged
from kcl_spark.worker import letters
from kcl_spark.worker.batching import Batch, Slice
from kcl_spark.worker.compute import Computed
from kcl_spark.worker.deliveries import DeadLetter
from kcl_spark.worker.spool import Part, Spool, Spooled
from kcl_spark.worker.steps import Step, Steps
from kcl_spark.worker.worker import Flushed, Settled

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WAIT_FIRST: Final = 0.5
WAIT_MOST: Final = 30.0
"""Waits between attempts at something out of reach: half a second, doubling to half a minute, which a sink that is down
for half an hour is asked about sixty times."""

T = TypeVar("T")

_FINAL: Final = (SchemaDrift, TableRefused, CommitConflict, OutcomeUnknown)


class Compute(Protocol):
    """What the flush needs of Spark; `Computation` is the real one."""

    def compute(self, spooled: Spooled, stage: Callable[[DataFrame], Staged]) -> Computed:
        """Decode, transform and stage a batch."""

    def letters_frame(self, path: str) -> DataFrame:
        """Read a file of dead letters."""


@dataclass
class Account:
    """What the flushes have come to, for `status` and for the law that rows in = rows out + dead letters."""

    batches: int = 0
    records: int = 0
    rows: int = 0
    dead_letters: int = 0
    bytes: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    last: dict[str, float] = field(default_factory=dict)
    lags: dict[str, float] = field(default_factory=dict)
    committed_at: float | None = None
    least: float = math.inf
    """Seconds of the quickest batch."""


@dataclass
class Claim:
    """What a life knows of a shard's dead-letter ledger since it claimed it.

    `buried` are positions behind the data's mark that are dead letters already, of this life or of an older one.
    """

    entry: Entry
    buried: set[Position]


@dataclass
class Tenure:
    """What the flushes of one life have learned, for the next ones: the batch behind them was sealed before."""

    entry: Entry
    claim: Claim | None = None
    stopped: bool = False


class Abandoned(Exception):  # a way out, not an error: nobody waits for the batch any more
    """Every part's lease is gone, or the worker is ending."""


class Prepared(NamedTuple):
    """A batch on disk, and how long that took; no work where nobody waits for it any more."""

    number: int
    work: Spooled | None
    seconds: float


@dataclass
class Flusher:
    """Takes batches to the sink, one at a time. Blocks; runs in a thread of its own.

    Args:
        spool: local disk.
        compute: Spark.
        data: the sink.
        dead: the dead letters' sink; None stops a shard at its first dead letter.
        owns: whether a life of a shard is still the present one; asked again before each attempt.
        limit: how many dead letters are too many.
        source: the format, which gives dead letters their payload and a reason.
        steps: told of each step.
        clock: monotonic seconds.
        now: the time that dead letters are stamped with.
        wait: sleeps; False when the worker is ending, so that waiting makes no sense.
        note: told one line about what goes wrong and is tried again.
        keeps_marks: False for best-effort recovery: plain appends, no ledger.
    """

    spool: Spool
    compute: Compute
    data: OpenSink
    dead: OpenSink | None
    owns: Callable[[str, int], bool]
    limit: DeadLetterLimit
    source: Format
    steps: Steps
    clock: Callable[[], float]
    now: Callable[[], datetime]
    wait: Callable[[float], bool]
    note: Callable[[str], None]
    keeps_marks: bool = True
    account: Account = field(default_factory=Account)
    tenures: dict[tuple[str, int], Tenure] = field(default_factory=dict)
    watches: dict[str, letters.Watch] = field(default_factory=dict)

    def prepare(self, batch: Batch) -> Prepared:
        """Step 1, which may run while the batch before is in the others."""
        began = self.clock()
        try:
            work = self.patiently(lambda: self.spool.write(batch), batch.slices)
        except Abandoned:
            return Prepared(batch.number, None, 0.0)
        self.steps.reached(Step.SPOOLED)
        return Prepared(batch.number, work, self.clock() - began)

    def flush(self, prepared: Prepared) -> Flushed:
        """Steps 2 to 7.

        Raises:
            KclSparkError: the worker can't go on (a broken transform, a dead session, a refused table).
        """
        if prepared.work is None:
            return Flushed()
        self.tenures = {key: tenure for key, tenure in self.tenures.items() if self.owns(*key)}
        flush = _Flush(self, prepared.number, prepared.work, prepared.seconds)
        try:
            flush.run()
        except Abandoned:
            self.note(f"batch {prepared.number} was dropped: its shards are elsewhere, or the worker is ending")
        finally:
            flush.clean_up()
        return Flushed(tuple(flush.settled), tuple(flush.stopped))

    def patiently(self, action: Callable[[], T], parts: Sequence[Part | Slice]) -> T:
        """Do it; wait and do it again while what it needs is out of reach and somebody still wants it.

        Raises:
            Abandoned: nobody does.
            KclSparkError: waiting would not help.
        """
        wait = WAIT_FIRST
        while True:
            try:
                return action()
            except KclSparkError as error:
                if isinstance(error, _FINAL) or not isinstance(error, SpoolError | SinkError):
                    raise
                self.note(str(error))
            except Exception as error:
                self.note(f"a batch could not be written and is tried again: {error}")
            if not self.wait(wait) or not any(self.owns(part.shard_id, part.life) for part in parts):
                raise Abandoned
            wait = min(WAIT_MOST, 2 * wait)

    def watch(self, shard_id: str) -> letters.Watch:
        """The shard's dead-letter count, which outlives its lives on this worker."""
        return self.watches.setdefault(shard_id, letters.Watch(self.limit))


class _Flush:
    """One batch on its way; each step returns False for "start over with what is left"."""

    def __init__(self, flusher: Flusher, number: int, work: Spooled, spooling: float) -> None:
        self.work = work
        self.settled: list[Settled] = []
        self.stopped: list[tuple[str, int, ShardStopped]] = []
        self._f = flusher
        self._number = number
        self._staged: Staged | None = None
        self._computed = False
        self._uncertain = False
        self._dead: dict[tuple[str, int], int] = {}
        self._seconds: dict[str, float] = {"spool": spooling}

    def run(self) -> None:
        """Go through the steps until nothing is left to do."""
        self._rebase()
        while self._some_left():
            if self._claim() and self._compute() and self._judge() and self._bury() and self._commit():
                break

    def clean_up(self) -> None:
        """Let go of the file, and of what was staged and certainly not committed."""
        self._f.spool.remove(self.work)
        self._unstage()

    def _patiently(self, action: Callable[[], T]) -> T:
        return self._f.patiently(action, self.work.parts)

    # ----------------------------------------------------------------------------------------------- what is left

    def _rebase(self) -> None:
        """Build on what the batch before has left, which was in flight when this one was sealed."""
        for part in self.work.parts:
            self._f.tenures.setdefault(_key(part), Tenure(part.base))
        self._reparted(lambda part: replace(part, base=self._tenure(part).entry))
        marks = {p.shard_id: p.base.mark for p in self.work.parts if p.base.mark is not None}
        if any(p.base.mark is not None and p.span.first <= p.base.mark for p in self.work.parts):
            self._recut(self._patiently(lambda: self._f.spool.after(self.work, marks)))

    def _tenure(self, part: Part) -> Tenure:
        return self._f.tenures[_key(part)]

    def _still_wanted(self, part: Part) -> bool:
        return self._f.owns(part.shard_id, part.life) and not self._tenure(part).stopped

    def _some_left(self) -> bool:
        wanted = [part for part in self.work.parts if self._still_wanted(part)]
        if wanted and len(wanted) < len(self.work.parts):
            self._recut(self._patiently(lambda: self._f.spool.keep(self.work, wanted)))
        return bool(wanted)

    def _recut(self, work: Spooled) -> None:
        """Go on with less; what was staged holds too much and goes."""
        self.work = work
        self._unstage()

    def _unstage(self) -> None:
        if self._staged is not None and not self._uncertain:
            self._f.data.abandon(self._staged)
        self._staged, self._computed, self._uncertain = None, False, False

    def _reparted(self, change: Callable[[Part], Part]) -> None:
        self.work = replace(self.work, parts=tuple(change(part) for part in self.work.parts))

    # ----------------------------------------------------------------------------------------------- 2: claim

    def _claim(self) -> bool:
        dead = self._f.dead
        if dead is None or not self._f.keeps_marks:
            return True
        new = [part for part in self.work.parts if self._tenure(part).claim is None]
        try:
            if new:
                self._claim_both(dead, new)
        except (CommitConflict, OutcomeUnknown) as error:
            return self._reread(error)
        return self._leave_out_buried()

    def _claim_both(self, dead: OpenSink, parts: Sequence[Part]) -> None:
        moves = [Move(part.shard_id, part.base, part.base.mark, 0) for part in parts]
        self._patiently(lambda: self._commit_to(self._f.data, None, moves))
        bases = {move.shard_id: move.entry for move in moves}
        self._reparted(lambda part: replace(part, base=bases.get(part.shard_id, part.base)))
        entries = self._patiently(lambda: dead.entries([part.shard_id for part in parts]))
        claims = [Move(shard_id, entry, entry.mark, 0) for shard_id, entry in entries.items()]
        self._patiently(lambda: self._commit_to(dead, None, claims))
        for part, move in zip(parts, claims, strict=True):
            behind = move.mark is not None and (part.base.mark is None or move.mark > part.base.mark)
            buried = self._identities(dead, part) if behind else set()
            self._tenure(part).entry = bases[part.shard_id]
            self._tenure(part).claim = Claim(move.entry, buried)

    def _identities(self, dead: OpenSink, part: Part) -> set[Position]:
        return self._patiently(lambda: dead.identities(part.shard_id, part.base.mark))

    def _leave_out_buried(self) -> bool:
        """Records that are dead letters already must not become rows, nor dead letters once more."""
        claims = {part.shard_id: self._tenure(part).claim for part in self.work.parts}
        buried = {shard_id: claim.buried for shard_id, claim in claims.items() if claim is not None}
        if not any(buried.values()):
            return True
        rows = self._f.spool.rows_at(self.work, buried)
        for part in self.work.parts:
            twice = [letter for letter in part.dead if letter.position in buried.get(part.shard_id, ())]
            self._count_dead(part, len(twice))
        self._reparted(lambda part: _without_letters(part, buried.get(part.shard_id, set())))
        if rows:
            for part in self.work.parts:
                self._count_dead(part, sum(shard_id == part.shard_id for shard_id in rows.values()))
            parts = self.work.parts
            self._recut(self._patiently(lambda: self._f.spool.without(self.work, rows, parts)))
        return True

    # ----------------------------------------------------------------------------------------------- 3: compute

    def _compute(self) -> bool:
        if self._computed:
            return True
        if self.work.rows == 0:
            self._computed = True
            return True
        name = f"{self._number:06d}"
        with self._timed("compute"):
            computed = self._patiently(
                lambda: self._f.compute.compute(self.work, lambda frame: self._f.data.stage(frame, name))
            )
        self._staged, self._computed = computed.staged, computed.staged is not None
        if computed.failures:
            self._condemn(computed.failures)
        if self._staged is None:
            return False
        self._f.steps.reached(Step.STAGED)
        return True

    def _condemn(self, failures: Mapping[int, str]) -> None:
        """Make dead letters of failed rows and take them out of the file; what is staged never held them."""
        found = letters.from_rows(self._f.spool.read(self.work), failures, self._f.source)
        parts = [
            _with_letters(part, [letter for shard_id, letter in found if shard_id == part.shard_id])
            for part in self.work.parts
        ]
        self.work = self._patiently(lambda: self._f.spool.without(self.work, failures, parts))

    # ----------------------------------------------------------------------------------------------- 4: judge

    def _judge(self) -> bool:
        errors = {_key(part): error for part in self.work.parts if (error := self._fault_of(part))}
        if not errors:
            return True
        self.stopped += [(*key, error) for key, error in errors.items()]
        for key in errors:
            self._f.tenures[key].stopped = True
        return False

    def _fault_of(self, part: Part) -> ShardStopped | None:
        if part.dead and self._f.dead is None:
            letter = part.dead[0]
            return DeadLetterRefused(
                f"shard {part.shard_id}: record {letter.position} can't become a row ({letter.reason}) and the "
                "pipeline names no place for dead letters",
                "Give the pipeline a dead_letter sink, for example dead_letter=sinks.delta('out/dead')",
            )
        dead = len(part.dead) + self._dead.get(_key(part), 0)
        return self._f.watch(part.shard_id).judge(part.shard_id, part.span.records, dead)

    # ----------------------------------------------------------------------------------------------- 5: bury

    def _bury(self) -> bool:
        parts = [part for part in self.work.parts if part.dead]
        dead = self._f.dead
        if not parts or dead is None:
            return True
        with self._timed("dead letters"):
            staged = self._patiently(lambda: self._stage_letters(dead, parts))
            try:
                self._patiently(lambda: self._commit_to(dead, staged, self._burials(parts)))
            except CommitConflict as error:
                dead.abandon(staged)
                return self._unclaim(parts, error)
            except OutcomeUnknown as error:
                return self._unclaim(parts, error)
        self._f.steps.reached(Step.DEAD_LETTERS_COMMITTED)
        self._note_buried(parts)
        return True

    def _stage_letters(self, dead: OpenSink, parts: Sequence[Part]) -> Staged:
        table = letters.to_table([(part.shard_id, letter) for part in parts for letter in part.dead], self._f.now())
        path = self._f.spool.write_letters(table)
        try:
            return dead.stage(self._f.compute.letters_frame(str(path)), f"{self._number:06d}")
        finally:
            path.unlink(missing_ok=True)

    def _burials(self, parts: Sequence[Part]) -> list[Move]:
        if not self._f.keeps_marks:
            return []
        return [_burial(part, claim.entry) for part in parts if (claim := self._tenure(part).claim)]

    def _unclaim(self, parts: Sequence[Part], error: SinkError) -> bool:
        """Somebody else was at the dead letters: claim again, which reads what they have buried."""
        self._f.note(str(error))
        for part in parts:
            self._tenure(part).claim = None
        return False

    def _note_buried(self, parts: Sequence[Part]) -> None:
        for part in parts:
            if claim := self._tenure(part).claim:
                claim.entry = _burial(part, claim.entry).entry
                claim.buried |= {letter.position for letter in part.dead}
            self._count_dead(part, len(part.dead))
        self._reparted(lambda part: replace(part, dead=()))

    def _count_dead(self, part: Part, letters_: int) -> None:
        self._dead[_key(part)] = self._dead.get(_key(part), 0) + letters_

    # ----------------------------------------------------------------------------------------------- 6: commit

    def _commit(self) -> bool:
        moves = [part.move for part in self.work.parts] if self._f.keeps_marks else []
        try:
            with self._timed("commit"):
                self._patiently(lambda: self._commit_to(self._f.data, self._staged, moves))
        except CommitConflict as error:
            return self._reread(error)
        except OutcomeUnknown as error:
            return self._look(error)
        self._f.steps.reached(Step.COMMITTED)
        self._settle_all()
        return True

    def _commit_to(self, sink: OpenSink, staged: Staged | None, moves: Sequence[Move]) -> None:
        """Commit. An error that is no verdict of the sink's says nothing about what happened (rule 5).

        Trying again would meet our own commit as a conflict, and a conflict removes the staged files.
        """
        try:
            sink.commit(staged, moves)
        except KclSparkError:
            raise
        except Exception as error:
            raise OutcomeUnknown(f"the commit failed: {type(error).__name__}: {error}") from error
        except BaseException:
            self._uncertain = True
            raise

    def _look(self, error: OutcomeUnknown) -> bool:
        """Nobody knows whether it happened: the ledger does (rule 5)."""
        self._f.note(str(error))
        self._uncertain = True  # the files may be the table's already, or become so: they are never removed
        if not self._f.keeps_marks:  # best effort: never twice
            self._settle_all()
            return True
        entries = self._patiently(lambda: self._f.data.entries([part.shard_id for part in self.work.parts]))
        if all(entries[part.shard_id] == part.base for part in self.work.parts):
            return False  # not yet, perhaps never: the same files once more, so that whichever lands is the same
        done = all(entries[part.shard_id] == part.move.entry for part in self.work.parts)
        if done:
            self._f.steps.reached(Step.COMMITTED)
            self._settle_all()
            return True
        return self._reread(error)

    def _reread(self, error: SinkError) -> bool:
        """Read the entries, settle what they hold already, and go on with the rest. Always False: start over."""
        self._f.note(str(error))
        entries = self._patiently(lambda: self._f.data.entries([part.shard_id for part in self.work.parts]))
        moved = [part for part in self.work.parts if entries[part.shard_id] != part.base]
        marks = {part.shard_id: mark for part in moved if (mark := entries[part.shard_id].mark) is not None}
        for part in moved:
            self._tenure(part).claim = None
            mark = marks.get(part.shard_id)
            if mark is not None and mark >= part.span.last:
                self.settled.append(Settled(part.shard_id, part.life, entries[part.shard_id], mark))
            self._tenure(part).entry = entries[part.shard_id]
        self._reparted(lambda part: replace(part, base=entries[part.shard_id]))
        self._recut(self._patiently(lambda: self._f.spool.after(self.work, marks)))
        return False

    # ----------------------------------------------------------------------------------------------- 7: settle

    def _settle_all(self) -> None:
        account, now = self._f.account, self._f.clock()
        for part in self.work.parts:
            entry = part.move.entry if self._f.keeps_marks else Entry()
            self._tenure(part).entry = entry
            self.settled.append(Settled(part.shard_id, part.life, entry, part.span.last))
            dead = self._dead.get(_key(part), 0)
            self._f.watch(part.shard_id).count(part.span.records, dead)
            if claim := self._tenure(part).claim:
                claim.buried = {position for position in claim.buried if position > part.span.last}
            account.records += part.span.records
            account.dead_letters += dead
            account.lags[part.shard_id] = now - part.received_at
        account.batches += 1
        account.committed_at = now
        account.rows += self._staged.rows if self._staged else 0
        account.bytes += self._staged.size if self._staged else 0
        account.last = self._seconds
        account.least = min(account.least, sum(self._seconds.values()))
        for name, spent in self._seconds.items():
            account.seconds[name] = account.seconds.get(name, 0.0) + spent
        self._staged = None

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        start = self._f.clock()
        try:
            yield
        finally:
            self._seconds[name] = self._seconds.get(name, 0.0) + self._f.clock() - start


def _key(part: Part) -> tuple[str, int]:
    return part.shard_id, part.life


def _burial(part: Part, entry: Entry) -> Move:
    last = max(letter.position for letter in part.dead)
    mark = last if entry.mark is None else max(entry.mark, last)
    return Move(part.shard_id, entry, mark, len(part.dead))


def _with_letters(part: Part, found: Sequence[DeadLetter]) -> Part:
    return replace(part, dead=tuple(sorted((*part.dead, *found), key=lambda letter: letter.position)))


def _without_letters(part: Part, positions: set[Position]) -> Part:
    return replace(part, dead=tuple(letter for letter in part.dead if letter.position not in positions))
