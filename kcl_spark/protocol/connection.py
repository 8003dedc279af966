"""One end of one conversation: bytes in, events out; events in, bytes out. No I/O, no clock, no threads, no log.

Arriving is separate from happening: `receive_data` only stores, `next_event` takes one line and advances the state. So
the caller sets the pace and back-pressure needs no extra idea: a line that is not asked for stays where it is.

Any exception puts the connection into ERROR, which nothing leaves: a conversation that broke once cannot be picked up
by accident. The state changes before the bytes of `send` exist; whoever fails to write them must say so with
`send_failed`, for only the caller can know.
"""

from __future__ import annotations

from typing import Final

from kcl_spark.errors import LocalProtocolError, RemoteProtocolError
from kcl_spark.protocol import lines
from kcl_spark.protocol.events import Closed, Event
from kcl_spark.protocol.states import Role, State, allowed, next_state, speaker

MAX_LINE: Final = 1 << 30
"""Longest line accepted, in bytes. GetRecords returns 10 MiB, but KPL de-aggregation happens before the line is made,
so that 10 MiB of tiny user records become hundreds of MB (`maxRecords` bounds Kinesis records, not user records).
A gibibyte is above what was ever computed and below what would take a worker down unseen."""


class NeedData:
    """There is no whole line yet: give `receive_data` more."""

    def __repr__(self) -> str:
        return "NEED_DATA"


class Paused:
    """It is this side's turn: the other one has nothing to say before we `send`."""

    def __repr__(self) -> str:
        return "PAUSED"


NEED_DATA: Final = NeedData()
PAUSED: Final = Paused()


class Connection:
    """The state of one conversation, seen from `role`.

    Args:
        role: which end this is; the fake daemon of the simulator is this same class with `Role.DAEMON`.
        max_line: longest line accepted, in bytes.
    """

    def __init__(self, role: Role, max_line: int = MAX_LINE) -> None:
        self.role = role
        self.state = State.EXPECT_INITIALIZE
        self.ignored_lines = 0
        self._max_line = max_line
        self._buffer = bytearray()
        self._searched = 0
        self._ended = False

    def receive_data(self, data: bytes | memoryview) -> None:
        """Store bytes as they came from the pipe; empty bytes mean its end."""
        if data:
            self._buffer += data
        else:
            self._ended = True

    def next_event(self) -> Event | NeedData | Paused:
        """Take the next message.

        Returns:
            the event; `NEED_DATA` where no line is complete; `PAUSED` where it is our turn to speak;
            `Closed` once, when the pipe ended between two lines.

        Raises:
            RemoteProtocolError: the line is no message, or no message of this state, or ended in the middle.
        """
        try:
            return self._next_event()
        except RemoteProtocolError as error:
            broken = RemoteProtocolError(f"in state {self.state.name}: {error.cause}", error.remedy)
            self.state = State.ERROR
            raise broken from None

    def send(self, event: Event) -> bytes:
        """Advance by a message of ours and return its bytes.

        Raises:
            LocalProtocolError: the table does not allow it now.
        """
        state = next_state(self.state, event.kind, self.role)
        if state is None:
            may = ", ".join(allowed(self.state, self.role)) or "nothing"
            refused = LocalProtocolError(f"in state {self.state.name}: may send {may}, not {event.kind}")
            self.state = State.ERROR
            raise refused
        self.state = state
        return lines.encode(event)

    def send_failed(self) -> None:
        """Say that bytes returned by `send` did not reach the pipe."""
        self.state = State.ERROR

    @property
    def buffered_bytes(self) -> int:
        """Bytes received and not yet taken."""
        return len(self._buffer)

    def _next_event(self) -> Event | NeedData | Paused:
        if self.state in (State.CLOSED, State.ERROR):
            raise RemoteProtocolError("the conversation is over")
        if speaker(self.state) is self.role and not self._ended:
            return PAUSED
        while (line := self._take_line()) is not None:
            event = self._read(line)
            if event is not None:
                return self._advance(event)
        if not self._ended:
            return NEED_DATA
        if self._buffer and not self._buffer.isspace():
            raise RemoteProtocolError(f"the pipe ended inside a line of {len(self._buffer)} bytes")
        return self._advance(Closed())

    def _advance(self, event: Event) -> Event:
        state = next_state(self.state, event.kind, self.role.other)
        if state is None:
            may = ", ".join(allowed(self.state, self.role.other)) or "nothing"
            raise RemoteProtocolError(f"may receive {may}, not {event.kind}")
        self.state = state
        return event

    def _read(self, line: bytearray) -> Event | None:
        """Decode a line; None where this side ignores it.

        The daemon skips whatever it cannot parse and waits on, so in its role we do too, and count: a test can then see
        the dead-lock that a wrong key causes. The child never guesses.
        """
        if not line or line.isspace():
            return None
        try:
            return lines.decode(line, self.role.other)
        except RemoteProtocolError:
            if self.role is Role.CHILD:
                raise
            self.ignored_lines += 1
            return None

    def _take_line(self) -> bytearray | None:
        """Cut the first line off the buffer; it remembers how far it searched, so trickled input stays linear."""
        end = self._buffer.find(b"\n", self._searched)
        if max(end, len(self._buffer) if end < 0 else 0) > self._max_line:
            raise RemoteProtocolError(
                f"a line longer than {self._max_line} bytes", "Lower maxRecords in the daemon's properties"
            )
        if end < 0:
            self._searched = len(self._buffer)
            return None
        self._searched = 0
        if end + 1 == len(self._buffer):  # the usual case costs no copy: the line is all there is
            line, self._buffer = self._buffer, bytearray()
            del line[end:]
            return line
        line = self._buffer[:end]
        del self._buffer[: end + 1]
        return line
