"""Recorded conversations: read, and said again by both machines at once."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from kcl_spark.protocol import Connection, NeedData, Paused, Role, State

GOLDEN = Path(__file__).with_name("golden")


class Said(NamedTuple):
    """One line of a transcript, without its end."""

    sender: Role
    line: bytes


def read(transcript: Path) -> list[Said]:
    signs = {b">": Role.DAEMON, b"<": Role.CHILD}
    lines = transcript.read_bytes().splitlines()
    return [Said(signs[line[:1]], line[2:]) for line in lines]


def replay(said: list[Said]) -> State:
    """Have each machine hear what it would have heard and say what it would have said; returns the last state.

    Raises:
        ProtocolError: one of the two finds a message illegal.
    """
    machines = {role: Connection(role) for role in Role}
    for sender, line in said:
        hearing, saying = machines[sender.other], machines[sender]
        hearing.receive_data(line + b"\n")
        event = hearing.next_event()
        assert not isinstance(event, NeedData | Paused), line
        again = json.loads(saying.send(event))
        assert _meaning(again) == _meaning(json.loads(line)), "said again it is something else"
        assert hearing.state is saying.state
    return machines[Role.CHILD].state


def shape(said: Said) -> tuple[str, ...]:
    """What kind of line it is: who, and the names and types of its fields, those of records included."""
    return (said.sender.name, *sorted(_fields(json.loads(said.line), "")))


def _fields(message: dict[str, Any], prefix: str) -> set[str]:
    found = set()
    for name, value in message.items():
        found.add(f"{prefix}{name}: {value if name in ('action', 'responseFor') else type(value).__name__}")
        if isinstance(value, list):
            found |= {field for record in value for field in _fields(record, f"{name}.")}
    return found


def _meaning(value: Any) -> Any:
    """What is left without nulls, and without each record's `action`: both say nothing."""
    if isinstance(value, dict):
        kept = {
            name: inner for name, inner in value.items() if inner is not None and (name, inner) != ("action", "record")
        }
        return {name: _meaning(inner) for name, inner in kept.items()}
    return [_meaning(inner) for inner in value] if isinstance(value, list) else value
