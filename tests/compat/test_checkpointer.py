"""What may be checkpointed, and when; what may not is refused with the daemon's own words for it."""

from __future__ import annotations

from typing import Any

import pytest

from kcl_spark.compat.checkpoint_error import CheckpointError
from kcl_spark.compat.checkpointer import Checkpointer
from kcl_spark.compat.requests import checked
from kcl_spark.protocol import Action, Checkpoint, Initialize
from tests.compat.daemon import (
    BEGIN,
    LEASE_LOST,
    SHARD_ENDED,
    SHUTDOWN_REQUESTED,
    Daemon,
    Inside,
    batch,
    checkpoint,
    run_inside,
    status,
)
from tests.compat.processors import processor

DIGITS = "49590338271490256608559692538361571095921575989136588898"


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ((None, None), Checkpoint()),
        ((None, 3), Checkpoint(None, 3)),
        ((DIGITS, None), Checkpoint(DIGITS)),
        ((DIGITS, 0), Checkpoint(DIGITS, 0)),
        ((DIGITS, 12), Checkpoint(DIGITS, 12)),
        ((int(DIGITS), "12"), Checkpoint(DIGITS, 12)),
        (("TRIM_HORIZON", 0), Checkpoint("TRIM_HORIZON", 0)),
    ],
)
def test_what_may_be_asked_for(given: tuple[Any, Any], sent: Checkpoint) -> None:
    assert checked(*given, {"TRIM_HORIZON"}) == sent


@pytest.mark.parametrize(
    "given",
    [
        ("LATEST", None),
        ("AT_TIMESTAMP", 0),
        ("SHARD_END", None),
        ("None", None),
        ("", None),
        ("-1", None),
        (-1, None),
        ("1.0", None),
        (1.0, None),
        ("\u0661", None),
        ("1" * 130, None),
        (True, None),
        (b"12", None),
        (DIGITS, -1),
        (DIGITS, "x"),
        (DIGITS, 1.5),
        (DIGITS, False),
    ],
)
def test_what_may_not_be_asked_for(given: tuple[Any, Any]) -> None:
    with pytest.raises(CheckpointError) as caught:
        checked(*given, {"TRIM_HORIZON"})
    assert caught.value.value == "IllegalArgumentException"
    assert "nothing was sent" in caught.value.__notes__[0]


def ask(*arguments: Any, begin: Initialize = BEGIN, then: Action = LEASE_LOST) -> Inside:
    """Checkpoint in process_records, and note what comes of it."""

    def process_records(self: Any, given: Any) -> None:
        self.try_to(given.checkpointer.checkpoint, *arguments)

    one = processor(process_records=process_records)
    return run_inside(one, Daemon([begin, batch(b"a"), then]))


def test_latest_never_passes_while_the_lease_is_at_trim_horizon() -> None:
    """The daemon would take it, and the next start would skip the stream."""
    inside = ask("LATEST")
    assert inside.heard == [status("initialize"), status("processRecords"), status("leaseLost")]
    assert [error[1] for error in inside.noted("error")] == ["IllegalArgumentException"]
    assert "kcl-spark: checkpoint refused: 'LATEST' is no sequence number" in inside.log


@pytest.mark.parametrize("word", ["TRIM_HORIZON", "LATEST", "AT_TIMESTAMP"])
def test_where_the_lease_began_may_be_said_again(word: str) -> None:
    assert ask(word, 0, begin=Initialize("s", word, 0)).heard[1] == checkpoint(word, 0)


def test_the_shards_end_may_be_named_at_the_end_only() -> None:
    assert [error[1] for error in ask("SHARD_END").noted("error")] == ["IllegalArgumentException"]
    one = processor("forget")
    one.shard_ended = lambda given: given.checkpointer.checkpoint("SHARD_END")
    assert checkpoint("SHARD_END") in run_inside(one, Daemon([BEGIN, SHARD_ENDED])).heard


def test_an_uncaught_refusal_says_why_in_the_traceback() -> None:
    one = processor()
    one.process_records = lambda given: given.checkpointer.checkpoint("LATEST")
    inside = run_inside(one, Daemon([BEGIN, batch(b"a")]))
    traceback = inside.log[inside.log.index("Traceback") :]
    assert "'LATEST' is no sequence number that can be checkpointed" in traceback


class Keeper:
    """A version 3 processor that keeps the checkpointer of its first batch, and uses it in the methods named."""

    version = 3

    def __init__(self, use_in: set[str]) -> None:
        self.use_in = use_in
        self.kept: Checkpointer | None = None
        self.errors: list[str] = []

    def initialize(self, _: Any) -> None: ...

    def process_records(self, given: Any) -> None:
        self.kept = given.checkpointer

    def shutdown_requested(self, _: Any) -> None:
        self.use("shutdown_requested")

    def shard_ended(self, _: Any) -> None:
        self.use("shard_ended")

    def lease_lost(self, _: Any) -> None:
        self.use("lease_lost")

    def use(self, method: str) -> None:
        assert self.kept
        if method in self.use_in:
            try:
                self.kept.checkpoint()
            except CheckpointError as error:
                self.errors.append(error.value)


def test_a_checkpointer_may_be_kept() -> None:
    keeper = Keeper({"shutdown_requested", "shard_ended"})
    inside = run_inside(keeper, Daemon([BEGIN, batch(b"a"), SHUTDOWN_REQUESTED, SHARD_ENDED]))
    assert [each["action"] for each in inside.heard] == ["status", "status", *["checkpoint", "status"] * 2]
    assert keeper.errors == []


def test_when_the_lease_is_lost_nothing_is_sent_and_the_error_is_the_daemons() -> None:
    keeper = Keeper({"lease_lost"})
    inside = run_inside(keeper, Daemon([BEGIN, batch(b"a"), LEASE_LOST]))
    assert inside.heard == [status("initialize"), status("processRecords"), status("leaseLost")]
    assert keeper.errors == ["InvalidStateException"]
    assert "no checkpoint is possible in state HANDLING_LEASE_LOST" in inside.log
    assert inside.code is None


def test_between_actions_nothing_is_sent() -> None:
    """The daemon would leave it unread, and take the next action's answers for this one's."""
    keeper = Keeper(set())
    errors: list[str] = []

    def between(action: Action) -> None:
        if action is LEASE_LOST:  # the status of the batch is out, and the next action is not
            assert keeper.kept
            with pytest.raises(CheckpointError) as caught:
                keeper.kept.checkpoint()
            errors.append(caught.value.value)

    inside = run_inside(keeper, Daemon([BEGIN, batch(b"a"), LEASE_LOST], before=between))
    assert inside.heard == [status("initialize"), status("processRecords"), status("leaseLost")]
    assert errors == ["InvalidStateException"]


def test_a_checkpoint_from_another_thread_of_an_open_action_passes() -> None:
    import threading

    def process_records(self: Any, given: Any) -> None:
        thread = threading.Thread(target=given.checkpointer.checkpoint, args=[DIGITS, 3])
        thread.start()
        thread.join()

    inside = run_inside(processor(process_records=process_records), Daemon([BEGIN, batch(b"a"), LEASE_LOST]))
    assert inside.heard[1] == checkpoint(DIGITS, 3)
