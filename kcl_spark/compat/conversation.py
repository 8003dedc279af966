"""One process's talk with the daemon: whole messages, in turn, whichever thread speaks.

A checkpoint and its answer are one exchange under one lock, and so is a status: no thread's status can slip between
another's checkpoint and the answer to it. Whether a message is in turn is asked of the protocol's table before it is
sent, so that a checkpoint out of turn costs its caller an error and not the conversation.

It also remembers what passed, for the rules that need to know: where the lease began, what was delivered last, what was
asked in the present action and how it was answered.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

from kcl_spark.errors import LocalProtocolError, RemoteProtocolError
from kcl_spark.protocol import (
    Action,
    Checkpoint,
    CheckpointAnswer,
    Closed,
    Connection,
    FromChild,
    Initialize,
    NeedData,
    Paused,
    ProcessRecords,
    Record,
    Role,
    ShardEnded,
    Status,
)
from kcl_spark.protocol.states import allowed


class DaemonGone(SystemExit):
    """The daemon closed its end while an answer was due.

    Raised through the processor's own code, which must not go on; hence no Exception, which processors catch. In a
    thread of the processor's it ends that thread without a word.
    """


class Answered(NamedTuple):
    """A checkpoint of the present action, and the name of the error that it was answered with; None is success."""

    request: Checkpoint
    error: str | None


class Conversation:
    """The child's end.

    Args:
        read: waits for bytes; empty ones mean the end.
        write: writes all it is given, or raises BrokenPipeError.
    """

    def __init__(self, read: Callable[[], bytes], write: Callable[[bytes], None]) -> None:
        self.began: Initialize | None = None
        self.action: Action | None = None
        self.delivered: Record | None = None
        self.asked: list[Answered] = []
        self.lease_gone = False
        self.turn = threading.RLock()
        self._read = read
        self._write = write
        self._connection = Connection(Role.CHILD)
        self._over: RemoteProtocolError | DaemonGone | None = None

    def next_action(self) -> Action | None:
        """Wait for what the daemon wants next; None when it has closed the pipe.

        Raises:
            RemoteProtocolError: it said what the protocol does not know or does not allow now.
        """
        event = self._receive()
        if isinstance(event, Closed):
            return None
        assert not isinstance(event, CheckpointAnswer)
        self._remember(event)
        return event

    def ask(self, request: Checkpoint) -> str | None:
        """Ask for a checkpoint and wait for the answer: None, or the name of the error.

        Raises:
            LocalProtocolError: no action is open that has a checkpoint. Nothing was sent.
            RemoteProtocolError: something else came than the answer. The conversation is over.
            DaemonGone: nothing came at all.
        """
        with self.turn:
            self.go_on()
            self._refuse_out_of_turn()
            self._send(request)
            answer = self._answer()
            self.asked.append(Answered(request, answer.error))
            self.lease_gone |= answer.error == "ShutdownException"
            return answer.error

    def done(self, action: Action) -> None:
        """Tell the daemon that an action is handled.

        Raises:
            RemoteProtocolError: the conversation broke while it was handled.
            DaemonGone: the daemon is not there to hear it.
        """
        with self.turn:
            self.go_on()
            self._send(Status(action.kind))

    @property
    def at_shard_end(self) -> bool:
        """The shard's end is being handled."""
        return isinstance(self.action, ShardEnded)

    def go_on(self) -> None:
        """Raise what ended the conversation, if it is over."""
        if self._over is not None:
            raise self._over

    def _remember(self, action: Action) -> None:
        self.action = action
        self.asked = []
        if isinstance(action, Initialize):
            self.began = action
        elif isinstance(action, ProcessRecords) and action.records:
            self.delivered = action.records[-1]

    def _refuse_out_of_turn(self) -> None:
        state = self._connection.state
        if "checkpoint" not in allowed(state, Role.CHILD):
            raise LocalProtocolError(
                f"no checkpoint is possible in state {state.name}",
                "Checkpoint while process_records, shutdown_requested or shard_ended runs",
            )

    def _answer(self) -> CheckpointAnswer:
        try:
            event = self._receive()
        except RemoteProtocolError as error:
            self._over = error
            raise
        if isinstance(event, CheckpointAnswer):
            return event
        self._over = DaemonGone(
            "the daemon closed the pipe before it answered a checkpoint, which may or may not be stored"
        )
        raise self._over

    def _receive(self) -> Action | CheckpointAnswer | Closed:
        """Wait for the next message. The lock is not held while waiting, so that whoever is out of turn hears it."""
        while True:
            with self.turn:
                event = self._connection.next_event()
            if not isinstance(event, NeedData):
                assert not isinstance(event, Paused | FromChild)
                return event
            data = self._read()
            with self.turn:
                self._connection.receive_data(data)

    def _send(self, event: FromChild) -> None:
        data = self._connection.send(event)
        try:
            self._write(data)
        except BrokenPipeError:
            self._connection.send_failed()
            self._over = DaemonGone(f"the daemon closed the pipe before it took the {event.kind}")
            raise self._over from None
