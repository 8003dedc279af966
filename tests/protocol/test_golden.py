"""Conversations of the real daemon 3.1.3 with a real child, recorded by tests/daemon/test_transcripts.py."""

from pathlib import Path

import pytest

from kcl_spark.errors import RemoteProtocolError
from kcl_spark.protocol import Role, State
from tests.protocol.replay import GOLDEN, Said, read, replay

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
    said = [line for line in read(TRANSCRIPTS[0]) if not line.line.startswith(b'{"action":"initialize"')]
    assert said[0] != Said(Role.DAEMON, b"")
    with pytest.raises(RemoteProtocolError):
        replay(said)
