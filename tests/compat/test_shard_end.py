"""A finished shard is answered for only when its lease is known to be at SHARD_END: the table in shard_end.py."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kcl_spark.compat.shard_end import LONGEST_WAIT, PASSING, PATIENCE
from kcl_spark.protocol import ProcessRecords
from tests.compat.daemon import (
    BEGIN,
    FIRST,
    OURS,
    SHARD_ENDED,
    Answer,
    Child,
    Daemon,
    Foreign,
    Inside,
    batch,
    checkpoint,
    record,
    run_inside,
    status,
)
from tests.compat.processors import processor

BATCH = ProcessRecords([record(b"a", 0), record(b"b", 1, 0), record(b"c", 1, 4)], 0)
LAST = str(FIRST + 1)
DONE = [status("initialize"), status("processRecords")]
ENDED = status("shardEnded")


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waits: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


def end(at_end: Any, answers: Sequence[Answer] = (), time: Time | None = None, **options: Any) -> Inside:
    """Live to the shard's end; `at_end` is a word of apps/obedient.py, or what to checkpoint there."""
    time = time or Time()
    one = processor("once" if at_end == "once" else "forget")
    if not isinstance(at_end, str):

        def shard_ended(given: Any) -> None:
            for arguments in at_end:
                one.try_to(given.checkpointer.checkpoint, *arguments)

        one.shard_ended = shard_ended
    options = {"clock": lambda: time.now, "sleep": time.sleep} | options
    return run_inside(one, Daemon([BEGIN, BATCH, SHARD_ENDED], answers), **options)


@pytest.mark.parametrize("asked", [[()], [(None, 3)], [("SHARD_END",)], [(LAST, 4), ()], [(), (LAST, 0)]])
def test_a_recorded_end_is_answered_for(asked: list[Any]) -> None:
    inside = end(asked)
    assert len(inside.heard) == len(DONE) + len(asked) + 1
    assert inside.heard[-1] == ENDED
    assert inside.code is None


@pytest.mark.parametrize("error", sorted(PASSING))
def test_a_passing_error_that_was_swallowed_is_made_good(error: str) -> None:
    time = Time()
    inside = end("once", [error, error, error], time)
    assert inside.heard == [*DONE, checkpoint(), checkpoint(), checkpoint(), checkpoint(), ENDED]
    assert time.waits == [0.25, 0.5]
    assert inside.code is None


def test_patience_ends(tmp_path: Path) -> None:
    time = Time()
    inside = end("once", ["ThrottlingException"] * 1000, time)
    assert ENDED not in inside.heard
    assert inside.code == 1
    assert PATIENCE - LONGEST_WAIT <= time.now - 1000.0 <= PATIENCE
    assert max(time.waits) == LONGEST_WAIT
    assert "the checkpoint at the shard's end was answered ThrottlingException" in inside.log


def test_time_that_the_daemon_takes_counts_too() -> None:
    time = Time()
    clock = iter([0.0, PATIENCE + 1])
    inside = end("once", ["ThrottlingException"] * 3, time, clock=lambda: next(clock))
    assert inside.heard == [*DONE, checkpoint(), checkpoint()]
    assert inside.code == 1
    assert time.waits == []


@pytest.mark.parametrize("error", ["ShutdownException", "InvalidStateException", "NullPointerException"])
@pytest.mark.parametrize("tries", [1, 2])
def test_an_error_that_does_not_pass_is_not_asked_again(error: str, tries: int) -> None:
    inside = end("once", ["ThrottlingException", error][2 - tries :])
    assert inside.heard == [*DONE, *[checkpoint()] * tries]
    assert inside.code == 1
    assert f"was answered {error}" in inside.log


def test_the_last_record_by_its_numbers_is_not_the_end_yet() -> None:
    """If it was checkpointed before, the daemon does nothing, says success, and keeps the lease."""
    inside = end([(LAST, 4)])
    assert inside.heard == [*DONE, checkpoint(LAST, 4), checkpoint(), ENDED]
    assert inside.code is None


@pytest.mark.parametrize("answer", [None, "ThrottlingException"])
@pytest.mark.parametrize("place", [(LAST,), (LAST, 3), (str(FIRST), 9), ("TRIM_HORIZON", 0)])
def test_an_earlier_record_leaves_the_end_open(place: tuple[Any, ...], answer: Answer) -> None:
    inside = end([place], [answer])
    assert inside.heard[:-1] == DONE
    assert inside.code == 1
    assert "named an earlier record than the last" in inside.log


def test_with_nothing_delivered_any_place_will_do() -> None:
    one = processor("forget")
    one.shard_ended = lambda given: given.checkpointer.checkpoint("TRIM_HORIZON", 0)
    inside = run_inside(one, Daemon([BEGIN, batch(), SHARD_ENDED]))
    assert inside.heard == [*DONE, checkpoint("TRIM_HORIZON", 0), checkpoint(), ENDED]


def test_a_processor_that_makes_no_checkpoint_is_not_answered_for(tmp_path: Path) -> None:
    life = Child(OURS, "version3.py", tmp_path, {"AT_END": "forget"}).live(Daemon([BEGIN, BATCH, SHARD_ENDED]))
    assert (life.heard, life.code) == (DONE, 1)
    assert (
        "kcl-spark: the processor made no checkpoint at the shard's end. The shard's end is delivered again" in life.log
    )
    assert "Traceback" not in life.log


def test_a_checkpoint_of_an_earlier_action_is_not_the_end() -> None:
    inside = run_inside(processor("forget"), Daemon([BEGIN, batch(b"!checkpoint"), SHARD_ENDED]))
    assert ENDED not in inside.heard
    assert inside.code == 1


@pytest.mark.parametrize(
    ("at_end", "answers", "why"),
    [
        ("forget", [], "made no checkpoint"),
        ("once", ["ThrottlingException"], "was answered ThrottlingException"),
        ("once", ["InvalidStateException"], "was answered InvalidStateException"),
        ([(LAST, 4)], [], "was answered for a record, not for the end"),
        ([(LAST, 0)], [], "named an earlier record"),
    ],
)
def test_success_can_be_reported_as_before_but_loudly(at_end: Any, answers: list[Answer], why: str) -> None:
    inside = end(at_end, answers, on_error="report_success")
    asked = 0 if at_end == "forget" else 1
    assert len(inside.heard) == len(DONE) + asked + 1
    assert inside.heard[-1] == ENDED
    assert inside.code is None
    assert why in inside.log
    assert "the lease may stay held for ever" in inside.log


def test_a_daemon_that_goes_while_the_end_is_asked_for_again_stops_the_process() -> None:
    inside = end("once", ["ThrottlingException", Foreign(b"")])
    assert inside.heard == [*DONE, checkpoint(), checkpoint()]
    assert inside.code is None
    assert "stopped: the daemon closed the pipe before it answered a checkpoint" in inside.log
