"""An exception of the processor is shown, and costs a status exactly where that brings the action back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kcl_spark.compat.failures import VARIABLE, OnError, chosen
from kcl_spark.errors import UsageError
from kcl_spark.protocol import Action
from tests.compat.daemon import (
    BEGIN,
    LEASE_LOST,
    OURS,
    SHARD_ENDED,
    SHUTDOWN_REQUESTED,
    Answer,
    Child,
    Daemon,
    batch,
    checkpoint,
    run_inside,
    status,
)
from tests.compat.processors import processor

GOOD, BAD = batch(b"a"), batch(b"!raise", start=1)


def fail(self: Any, *_: object) -> None:
    raise ValueError("told to")


def fail_after_checkpoint(self: Any, given: Any) -> None:
    given.checkpointer.checkpoint()
    fail(self)


def test_a_failed_batch_has_no_status_and_is_not_passed_over(tmp_path: Path) -> None:
    life = Child(OURS, "version3.py", tmp_path).live(Daemon([BEGIN, GOOD, BAD, batch(b"!checkpoint", start=2)]))
    assert life.heard == [status("initialize"), status("processRecords")]
    assert life.code == 1
    assert "Traceback (most recent call last)" in life.log
    assert "ValueError: told to" in life.log
    assert "kcl-spark: the processor raised ValueError in processRecords, which is left unanswered. " in life.log


def test_success_can_be_reported_as_before_but_loudly(tmp_path: Path) -> None:
    script: list[Action] = [BEGIN, BAD, batch(b"!checkpoint", start=2), LEASE_LOST]
    life = Child(OURS, "version3.py", tmp_path, {VARIABLE: "report_success"}).live(Daemon(script))
    assert [message["action"] for message in life.heard] == ["status", "status", "checkpoint", "status", "status"]
    assert life.code == 0
    assert "ValueError: told to" in life.log
    assert "processRecords is reported as done all the same, and will not come again" in life.log


@pytest.mark.parametrize(
    ("method", "script"),
    [
        ("initialize", [BEGIN]),
        ("process_records", [BEGIN, GOOD]),
        ("shutdown_requested", [BEGIN, SHUTDOWN_REQUESTED]),
        ("shard_ended", [BEGIN, SHARD_ENDED]),
    ],
)
def test_what_leaving_brings_back_is_left_unanswered(method: str, script: list[Action]) -> None:
    inside = run_inside(processor(**dict[str, Any]({method: fail})), Daemon([*script, LEASE_LOST]))
    assert inside.heard == [status(action.kind) for action in script[:-1]]
    assert inside.code == 1
    assert "ValueError: told to" in inside.log


@pytest.mark.parametrize(
    ("methods", "script", "answers"),
    [
        ({"lease_lost": fail}, [BEGIN, LEASE_LOST], []),
        ({"shard_ended": fail_after_checkpoint}, [BEGIN, SHARD_ENDED], []),
        ({}, [BEGIN, batch(b"!checkpoint", b"!raise"), LEASE_LOST], ["ShutdownException"]),
    ],
    ids=["lease lost", "end recorded", "lease gone"],
)
def test_what_leaving_does_not_bring_back_is_answered_and_told_by_the_exit_code(
    methods: dict[str, Any], script: list[Action], answers: list[Answer]
) -> None:
    """Leaving would end the daemon, and with it the other shards of the worker, for nothing."""
    inside = run_inside(processor(**methods), Daemon(script, answers))
    assert [each for each in inside.heard if each["action"] == "status"] == [status(action.kind) for action in script]
    assert inside.code == 1
    assert "ValueError: told to" in inside.log


def test_an_end_whose_checkpoint_failed_is_not_recorded() -> None:
    inside = run_inside(
        processor(shard_ended=fail_after_checkpoint), Daemon([BEGIN, SHARD_ENDED], ["InvalidStateException"])
    )
    assert inside.heard == [status("initialize"), checkpoint()]
    assert inside.code == 1


@pytest.mark.parametrize("version", [1, 2])
def test_an_old_processor_that_checkpoints_as_a_zombie_costs_no_other_shard(version: int) -> None:
    def shutdown(self: Any, *given: Any) -> None:
        (given[0] if version == 1 else given[0].checkpointer).checkpoint()

    inside = run_inside(processor(version=version, shutdown=shutdown), Daemon([BEGIN, LEASE_LOST]))
    assert inside.heard == [status("initialize"), status("leaseLost")]
    assert inside.code == 1
    assert "Checkpointing is not allowed when the lease is lost" in inside.log


def test_a_method_that_is_missing_is_missed_when_it_is_called() -> None:
    from kcl_spark.compat.v3.processor import RecordProcessorBase

    inside = run_inside(RecordProcessorBase(), Daemon([BEGIN]))
    assert (inside.heard, inside.code) == ([], 1)
    assert "NotImplementedError" in inside.log


@pytest.mark.parametrize(
    ("parameter", "environment", "expected"),
    [
        (None, {}, OnError.EXIT),
        (None, {VARIABLE: ""}, OnError.EXIT),
        (None, {VARIABLE: "report_success"}, OnError.REPORT_SUCCESS),
        ("exit", {VARIABLE: "report_success"}, OnError.EXIT),
        ("report_success", {}, OnError.REPORT_SUCCESS),
    ],
)
def test_the_program_chooses_before_the_environment(
    parameter: str | None, environment: dict[str, str], expected: OnError
) -> None:
    assert chosen(parameter, environment) is expected


def test_an_unknown_choice_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'exit' or 'report_success'"):
        chosen("ignore", {})
    life = Child(OURS, "version3.py", tmp_path, {VARIABLE: "ignore"}).live(Daemon([BEGIN]))
    assert (life.heard, life.code) == ([], 2)
    assert "kcl-spark: on_error is 'ignore'" in life.log
    assert "Traceback" not in life.log


def test_a_parameter_of_the_process_chooses_too() -> None:
    inside = run_inside(processor(), Daemon([BEGIN, BAD, LEASE_LOST]), on_error="report_success")
    assert inside.heard == [status("initialize"), status("processRecords"), status("leaseLost")]
    assert inside.code is None
