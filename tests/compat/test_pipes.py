"""Nothing that a processor prints, starts or forks reaches the daemon's pipes, and no group signal ends it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kcl_spark.protocol import Action
from tests.compat.daemon import BEGIN, LEASE_LOST, OURS, Child, Daemon, Life, batch, status

LIFE: list[Action] = [BEGIN, batch(b"a"), LEASE_LOST]
ANSWERS = [status("initialize"), status("processRecords"), status("leaseLost")]


def live(act: str, folder: Path, **environment: str) -> Life:
    return Child(OURS, "unruly.py", folder, {"ACT": act, **environment}).live(Daemon(LIFE))


@pytest.fixture
def ended() -> Iterator[list[int]]:
    """Processes to end after the test."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def test_what_is_printed_goes_to_the_log(tmp_path: Path) -> None:
    life = live("noise", tmp_path)
    assert (life.heard, life.noise, life.code) == (ANSWERS, 0, 0)
    assert life.log.count('"responseFor": "processRecords"') == 2 * 5
    assert "caf\u00e9" in life.log
    assert "\\udcff" in life.log


def test_what_is_printed_before_a_crash_is_in_the_log(tmp_path: Path) -> None:
    life = live("print_and_vanish", tmp_path, PYTHONUNBUFFERED="")
    assert (life.code, life.log) == (3, "last words\n")


def test_stdin_is_empty(tmp_path: Path) -> None:
    life = live("read_stdin", tmp_path)
    assert life.noted("stdin") == [["", ""]]
    assert life.heard == ANSWERS


@pytest.mark.parametrize("act", ["leave_a_subprocess", "leave_a_fork"])
def test_a_process_left_behind_does_not_hold_the_pipe(act: str, tmp_path: Path, ended: list[int]) -> None:
    """The daemon reads to the end of the pipe, so `live` would not return."""
    child = Child(OURS, "unruly.py", tmp_path, {"ACT": act})
    try:
        life = child.live(Daemon(LIFE))
    finally:
        ended += [
            int(line.split(",")[1].strip(" ]")) for line in child.seen.read_text().splitlines() if '"pid"' in line
        ]
    assert (life.heard, life.code) == (ANSWERS, 0)
    assert len(ended) == 1


def test_a_forked_process_has_no_checkpoint(tmp_path: Path) -> None:
    life = live("checkpoint_in_a_fork", tmp_path)
    assert life.heard == ANSWERS
    assert [error[1] for error in life.noted("error")] == ["InvalidStateException"]
    assert "Checkpoint in the process that the daemon started" in life.log


@pytest.mark.parametrize("act", ["terminate_a_subprocess", "terminate_a_fork"])
def test_a_processor_can_end_what_it_started(act: str, tmp_path: Path) -> None:
    """It could not, if the signals were ignored instead of handled."""
    life = live(act, tmp_path)
    assert life.noted("ended") == [[-signal.SIGTERM]]
    assert life.heard == ANSWERS


def test_group_signals_end_nothing_while_busy(tmp_path: Path) -> None:
    life = live("signal_self", tmp_path)
    assert (life.noted("alive"), life.heard, life.code) == ([[]], ANSWERS, 0)


def test_group_signals_end_nothing_while_idle(tmp_path: Path) -> None:
    child = Child(OURS, "unruly.py", tmp_path)

    def interrupt(action: object) -> None:
        if action is not BEGIN:
            child.process.send_signal(signal.SIGINT)
            child.process.send_signal(signal.SIGTERM)

    life = child.live(Daemon(LIFE, before=interrupt))
    assert (life.heard, life.code) == (ANSWERS, 0)


@pytest.mark.parametrize("files", ["explicit", "wrapped"])
def test_files_on_the_daemons_descriptors_are_the_pipes(files: str, tmp_path: Path) -> None:
    life = live("noise", tmp_path, FILES=files)
    assert (life.heard, life.noise, life.code) == (ANSWERS, 0, 0)


def test_a_script_with_changed_imports_has_private_pipes_too(tmp_path: Path) -> None:
    life = Child(OURS[:1], "changed_imports.py", tmp_path, {"LOUD": "1"}).live(Daemon(LIFE))
    assert (life.heard, life.noise, life.code) == (ANSWERS, 0, 0)
    assert "taken" in life.log


def test_the_script_goes_on_after_the_end_of_the_pipe(tmp_path: Path) -> None:
    assert live("", tmp_path).noted("after run") == [[]]


def test_a_processors_own_exit_is_its_own(tmp_path: Path) -> None:
    life = live("exit_by_itself", tmp_path)
    assert (life.heard, life.code) == (ANSWERS[:1], 9)
    assert life.noted("after run") == []


def test_group_signals_end_nothing_in_a_script_with_changed_imports(tmp_path: Path) -> None:
    child = Child(OURS[:1], "changed_imports.py", tmp_path)

    def interrupt(action: object) -> None:
        if action is not BEGIN:
            child.process.send_signal(signal.SIGTERM)

    life = child.live(Daemon(LIFE, before=interrupt))
    assert (life.heard, life.code) == (ANSWERS, 0)


def test_a_thread_left_behind_keeps_the_process_but_not_the_pipe(tmp_path: Path) -> None:
    child = Child(OURS, "unruly.py", tmp_path, {"ACT": "leave_a_thread"})
    daemon = Daemon(LIFE)
    try:
        child.talk(daemon)
        assert daemon.heard == ANSWERS
        assert child.process.poll() is None
    finally:
        child.end()


def test_a_thread_left_behind_does_not_keep_a_process_that_failed(tmp_path: Path) -> None:
    life = live("leave_a_thread_and_raise", tmp_path)
    assert (life.heard, life.code) == (ANSWERS[:1], 1)
    assert "leaving behind the threads flusher" in life.log


def test_without_stdin_there_is_a_clear_error(tmp_path: Path) -> None:
    command = " ".join(["exec", *OURS, "tests/compat/apps/version3.py", "<&-"])
    life = Child(("sh", "-c"), command, tmp_path).live(Daemon([]))
    assert life.code == 2
    assert "stdin or stdout is closed" in life.log
