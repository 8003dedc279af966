"""The whole order of the conversation, as one table for both roles.

Two rules, and everything else is the table:

1. The conversation is strictly synchronous, so one joint state describes both sides. Each state says who may speak;
   the other side may only listen (or close the pipe).
2. A message that the table does not list for the present state is illegal, whoever sends it. There is no other place
   where legality is decided, and nothing here knows which role it is used by, so we cannot give ourselves a
   dispensation that we deny the daemon.

Why these rows (measured on the daemon 3.1.3 and read in its source):

* `initialize` comes once and first. The daemon has no checkpointer during `initialize` and `leaseLost` (it would answer
  InvalidStateException), so a checkpoint is no row of theirs.
* One checkpoint is in flight at a time. The daemon would take several at once and answer in order, but an answer that
  cannot be told apart from the next one is an answer that can be mistaken.
* After `shutdownRequested` anything may follow: `leaseLost`, `shardEnded` in a race, or only the end of the pipe.
* `leaseLost` and `shardEnded` are final. The pipe may be closed in any state: the daemon can die at any time.

docs/protocol.md shows this table as a diagram, generated from it by docs/make_state_diagram.py.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final


class Role(Enum):
    """The two ends of the pipe."""

    DAEMON = auto()
    CHILD = auto()

    @property
    def other(self) -> Role:
        """The role at the other end."""
        return Role.CHILD if self is Role.DAEMON else Role.DAEMON


class State(Enum):
    """Where a conversation stands; the comment says whose turn it is."""

    EXPECT_INITIALIZE = auto()  # daemon
    READY = auto()  # daemon
    HANDLING_INITIALIZE = auto()  # child
    HANDLING_RECORDS = auto()  # child
    HANDLING_SHUTDOWN_REQUESTED = auto()  # child
    HANDLING_SHARD_ENDED = auto()  # child
    HANDLING_LEASE_LOST = auto()  # child
    ANSWERING_IN_RECORDS = auto()  # daemon
    ANSWERING_IN_SHUTDOWN_REQUESTED = auto()  # daemon
    ANSWERING_IN_SHARD_ENDED = auto()  # daemon
    FINISHED = auto()  # daemon, which closes the pipe
    CLOSED = auto()  # nobody
    ERROR = auto()  # nobody, ever again


TRANSITIONS: Final[dict[State, tuple[Role, dict[str, State]]]] = {
    State.EXPECT_INITIALIZE: (Role.DAEMON, {"initialize": State.HANDLING_INITIALIZE}),
    State.HANDLING_INITIALIZE: (Role.CHILD, {"status(initialize)": State.READY}),
    State.READY: (
        Role.DAEMON,
        {
            "processRecords": State.HANDLING_RECORDS,
            "shutdownRequested": State.HANDLING_SHUTDOWN_REQUESTED,
            "shardEnded": State.HANDLING_SHARD_ENDED,
            "leaseLost": State.HANDLING_LEASE_LOST,
        },
    ),
    State.HANDLING_RECORDS: (
        Role.CHILD,
        {"checkpoint": State.ANSWERING_IN_RECORDS, "status(processRecords)": State.READY},
    ),
    State.ANSWERING_IN_RECORDS: (Role.DAEMON, {"answer(checkpoint)": State.HANDLING_RECORDS}),
    State.HANDLING_SHUTDOWN_REQUESTED: (
        Role.CHILD,
        {"checkpoint": State.ANSWERING_IN_SHUTDOWN_REQUESTED, "status(shutdownRequested)": State.READY},
    ),
    State.ANSWERING_IN_SHUTDOWN_REQUESTED: (Role.DAEMON, {"answer(checkpoint)": State.HANDLING_SHUTDOWN_REQUESTED}),
    State.HANDLING_SHARD_ENDED: (
        Role.CHILD,
        {"checkpoint": State.ANSWERING_IN_SHARD_ENDED, "status(shardEnded)": State.FINISHED},
    ),
    State.ANSWERING_IN_SHARD_ENDED: (Role.DAEMON, {"answer(checkpoint)": State.HANDLING_SHARD_ENDED}),
    State.HANDLING_LEASE_LOST: (Role.CHILD, {"status(leaseLost)": State.FINISHED}),
    State.FINISHED: (Role.DAEMON, {}),
}
"""State -> (who may speak, {kind of message -> next state}). CLOSED and ERROR have no row: nothing leaves them."""


def speaker(state: State) -> Role | None:
    """Whose turn it is; None where the conversation is over."""
    row = TRANSITIONS.get(state)
    return row[0] if row else None


def next_state(state: State, kind: str, sender: Role) -> State | None:
    """The state after `sender` said `kind`, or None where the table does not allow it."""
    if kind == "eof":
        return None if state in (State.CLOSED, State.ERROR) else State.CLOSED
    row = TRANSITIONS.get(state)
    return row[1].get(kind) if row and row[0] is sender else None


def allowed(state: State, sender: Role) -> list[str]:
    """The kinds of message that `sender` may send now, for error messages."""
    row = TRANSITIONS.get(state)
    return sorted(row[1]) if row and row[0] is sender else []
