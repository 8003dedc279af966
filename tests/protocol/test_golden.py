"""Conversations of the real daemon 3.1.3 with a real child, recorded by tests/daemon/test_transcripts.py."""

from pathlib import Path

import pytest

from kcl_spark.protocol import State
from tests.protocol.replay import GOLDEN, read, replay

TRANSCRIPTS = sorted(GOLDEN.glob("*.txt"))


@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=lambda path: path.stem)
def test_both_machines_agree_to_every_message(transcript: Path) -> None:
    assert replay(read(transcript)) in (State.FINISHED, State.READY)


def test_the_recordings_hold_every_action_of_the_daemon() -> None:
    said = {line.split(b'"action":"', 1)[1].split(b'"')[0] for path in TRANSCRIPTS for _, line in read(path)}
    assert said >= {
        *(b"initialize", b"processRecords", b"checkpoint", b"shutdownRequested", b"leaseLost", b"shardEnded"),
        b"status",
    }


def test_a_recording_with_a_message_left_out_is_refused() -> None:
    said = read(GOLDEN / "the-end-of-a-shard.txt")
    without = [line for line in said if b'"error"' not in line.line]
    assert len(without) == len(said) - 1, "the answer to the checkpoint"
    with pytest.raises(AssertionError, match="shardEnded"):
        replay(without)  # the daemon has to answer first and would not listen
