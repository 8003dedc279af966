"""The machine: legal conversations whole and byte by byte, two machines back to back, and everything illegal."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kcl_spark.errors import LocalProtocolError, RemoteProtocolError
from kcl_spark.protocol import (
    NEED_DATA,
    PAUSED,
    TRANSITIONS,
    Checkpoint,
    CheckpointAnswer,
    Closed,
    Connection,
    Event,
    Initialize,
    LeaseLost,
    NeedData,
    Paused,
    ProcessRecords,
    Record,
    Role,
    ShardEnded,
    ShutdownRequested,
    State,
    Status,
    speaker,
)
from kcl_spark.protocol.lines import encode
from kcl_spark.protocol.states import next_state
from tests.protocol.cases import CASES, Case

ids = [f"{case.event.kind}-{index}" for index, case in enumerate(CASES)]


def at(state: State, role: Role) -> Connection:
    connection = Connection(role)
    connection.state = state
    return connection


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_receiving_whole(case: Case) -> None:
    receiver = at(case.before, case.sender.other)
    receiver.receive_data(encode(case.event))
    assert receiver.next_event() == case.event
    assert receiver.state is case.after


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_receiving_one_byte_at_a_time_says_nothing_before_the_last(case: Case) -> None:
    receiver = at(case.before, case.sender.other)
    for byte in case.wire:
        receiver.receive_data(bytes([byte]))
        assert receiver.next_event() is NEED_DATA
    receiver.receive_data(b"\n")
    assert receiver.next_event() == case.event


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_what_follows_a_line_is_left_alone(case: Case) -> None:
    receiver = at(case.before, case.sender.other)
    receiver.receive_data(case.wire + b"\n" + b'{"action":')
    assert receiver.next_event() == case.event
    assert receiver.buffered_bytes == len(b'{"action":')


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_carriage_returns_and_empty_lines_do_not_matter(case: Case) -> None:
    receiver = at(case.before, case.sender.other)
    receiver.receive_data(b"\n\r\n  \n" + case.wire + b"\r\n")
    assert receiver.next_event() == case.event


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_sending(case: Case) -> None:
    sender = at(case.before, case.sender)
    assert sender.send(case.event) == encode(case.event)
    assert sender.state is case.after


ALL_EVENTS: list[Event] = [case.event for case in CASES]


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("role", list(Role))
def test_neither_side_can_send_what_the_table_does_not_list(state: State, role: Role) -> None:
    """All states times all messages: legal ones are the table's rows, and there are no others."""
    for event in ALL_EVENTS:
        if next_state(state, event.kind, role) is None:
            with pytest.raises(LocalProtocolError, match=f"in state {state.name}: may send .*, not"):
                at(state, role).send(event)


@pytest.mark.parametrize("state", [state for state in TRANSITIONS if speaker(state) is Role.DAEMON])
def test_the_child_refuses_what_the_table_does_not_list(state: State) -> None:
    for case in CASES:
        if case.sender is Role.DAEMON and next_state(state, case.event.kind, Role.DAEMON) is None:
            child = at(state, Role.CHILD)
            child.receive_data(encode(case.event))
            with pytest.raises(RemoteProtocolError, match=f"in state {state.name}: may receive .*, not "):
                child.next_event()
            assert child.state is State.ERROR


@pytest.mark.parametrize("state", [state for state in TRANSITIONS if speaker(state) is Role.CHILD])
def test_the_daemon_refuses_what_the_table_does_not_list(state: State) -> None:
    for case in CASES:
        if case.sender is Role.CHILD and next_state(state, case.event.kind, Role.CHILD) is None:
            daemon = at(state, Role.DAEMON)
            daemon.receive_data(encode(case.event))
            with pytest.raises(RemoteProtocolError) as caught:
                daemon.next_event()
            assert f"not {case.event.kind}" in str(caught.value)


@pytest.mark.parametrize("event", ALL_EVENTS, ids=ids)
def test_nothing_leaves_the_error_state(event: Event) -> None:
    for role in Role:
        with pytest.raises(LocalProtocolError, match="ERROR"):
            at(State.ERROR, role).send(event)
        broken = at(State.ERROR, role)
        broken.receive_data(encode(event))
        with pytest.raises(RemoteProtocolError, match="over"):
            broken.next_event()


def test_a_local_error_breaks_the_connection_for_good() -> None:
    child = Connection(Role.CHILD)
    with pytest.raises(LocalProtocolError, match="EXPECT_INITIALIZE: may send nothing, not status"):
        child.send(Status("initialize"))
    assert child.state is State.ERROR


def test_an_error_names_state_and_message() -> None:
    child = Connection(Role.CHILD)
    child.receive_data(encode(LeaseLost()))
    with pytest.raises(RemoteProtocolError, match="in state EXPECT_INITIALIZE: may receive initialize, not leaseLost"):
        child.next_event()


def test_an_answer_out_of_turn_waits_and_is_then_refused() -> None:
    child = at(State.HANDLING_RECORDS, Role.CHILD)
    child.receive_data(encode(CheckpointAnswer("1", 0)))
    assert child.next_event() is PAUSED
    child.send(Status("processRecords"))
    with pytest.raises(RemoteProtocolError, match=r"in state READY.*not answer\(checkpoint\)"):
        child.next_event()


def test_a_failed_write_breaks_the_connection() -> None:
    child = at(State.HANDLING_RECORDS, Role.CHILD)
    child.send(Checkpoint("1", 0))
    child.send_failed()
    assert child.state is State.ERROR


@pytest.mark.parametrize("state", [state for state in State if state not in (State.CLOSED, State.ERROR)])
def test_the_daemon_may_die_at_any_time(state: State) -> None:
    child = at(state, Role.CHILD)
    child.receive_data(b"")
    assert child.next_event() == Closed()
    assert child.state is State.CLOSED
    with pytest.raises(RemoteProtocolError, match="over"):
        child.next_event()


def test_the_pipe_may_not_end_inside_a_line() -> None:
    child = Connection(Role.CHILD)
    child.receive_data(b'{"action":"initial')
    child.receive_data(b"")
    with pytest.raises(RemoteProtocolError, match="EXPECT_INITIALIZE: the pipe ended inside a line of 18 bytes"):
        child.next_event()


def test_what_arrived_before_the_end_of_the_pipe_is_still_taken() -> None:
    child = Connection(Role.CHILD)
    child.receive_data(encode(Initialize("s")))
    child.receive_data(b"")
    assert child.next_event() == Initialize("s")
    assert child.next_event() == Closed()


def test_a_line_longer_than_the_limit_is_refused_before_it_is_stored() -> None:
    child = Connection(Role.CHILD, max_line=64)
    child.receive_data(b"x" * 65)
    with pytest.raises(RemoteProtocolError, match=r"longer than 64 bytes.*maxRecords"):
        child.next_event()


def test_a_line_of_the_limit_is_taken() -> None:
    line = encode(Initialize("s"))
    child = Connection(Role.CHILD, max_line=len(line) - 2)
    child.receive_data(line)
    assert child.next_event() == Initialize("s")


def test_a_line_of_many_megabytes() -> None:
    """10,000 records of 10 KiB: over the 14 to 16 MB of the largest polling answer."""
    records = [Record(bytes([index % 251]) * 10_240, "k", str(index), 0, 5) for index in range(1, 1500)]
    child = at(State.READY, Role.CHILD)
    line = encode(ProcessRecords(records, 0))
    for start in range(0, len(line), 1 << 16):
        child.receive_data(line[start : start + (1 << 16)])
    assert child.next_event() == ProcessRecords(records, 0)


def test_trickled_input_is_searched_once() -> None:
    """The buffer remembers how far it looked: a long line in small pieces stays linear."""
    child = at(State.READY, Role.CHILD)
    child.receive_data(b"x" * 100_000)
    assert child.next_event() is NEED_DATA
    assert child._searched == 100_000


def test_in_the_daemons_role_noise_is_skipped_and_counted() -> None:
    """What makes a real dead-lock visible: to the daemon, a reply with one key too many is no error, it is nothing."""
    daemon = at(State.HANDLING_RECORDS, Role.DAEMON)
    daemon.receive_data(b'hello\n{"action":"status","responseFor":"processRecords","pid":1}\n{"action":"leaseLost"}\n')
    assert daemon.next_event() is NEED_DATA
    assert daemon.ignored_lines == 3


def test_sentinels_print_as_their_name() -> None:
    assert (repr(NEED_DATA), repr(PAUSED)) == ("NEED_DATA", "PAUSED")


# ------------------------------------------------------------------------------------------- two machines, back to back


class BackToBack(RuleBasedStateMachine):
    """A daemon and a child on one link: whatever is legal for one is understood by the other, and both agree."""

    def __init__(self) -> None:
        super().__init__()
        self.ends = {role: Connection(role) for role in Role}

    def legal(self) -> list[Event]:
        state = self.ends[Role.DAEMON].state
        turn = speaker(state)
        return [event for event in ALL_EVENTS if turn and next_state(state, event.kind, turn) is not None]

    @precondition(lambda self: self.legal())
    @rule(data=st.data())
    def say(self, data: st.DataObject) -> None:
        event = data.draw(st.sampled_from(self.legal()))
        turn = speaker(self.ends[Role.DAEMON].state)
        assert turn is not None
        line = self.ends[turn].send(event)
        cut = data.draw(st.integers(1, len(line) - 1))
        listener = self.ends[turn.other]
        listener.receive_data(line[:cut])
        first = listener.next_event()
        listener.receive_data(line[cut:])
        heard = listener.next_event() if isinstance(first, NeedData) else first
        assert heard == event

    @precondition(lambda self: self.ends[Role.CHILD].state is State.FINISHED)
    @rule()
    def close(self) -> None:
        child = self.ends[Role.CHILD]
        child.receive_data(b"")
        assert child.next_event() == Closed()
        self.ends = {role: Connection(role) for role in Role}

    @invariant()
    def agree(self) -> None:
        assert self.ends[Role.DAEMON].state is self.ends[Role.CHILD].state

    @invariant()
    def one_side_waits(self) -> None:
        for role, end in self.ends.items():
            if end.state in TRANSITIONS:
                expected = Paused if speaker(end.state) is role else NeedData
                assert isinstance(end.next_event(), expected)


TestBackToBack = BackToBack.TestCase


@settings(max_examples=300)
@given(st.lists(st.binary(max_size=40) | st.sampled_from([case.wire + b"\n" for case in CASES]), max_size=12))
def test_any_bytes_give_events_or_one_protocol_error(pieces: list[bytes]) -> None:
    for role in Role:
        connection = Connection(role)
        for piece in [*pieces, b""]:
            connection.receive_data(piece)
            try:
                while not isinstance(event := connection.next_event(), NeedData | Paused | Closed):
                    assert event.kind
            except RemoteProtocolError:
                assert connection.state in (State.ERROR, State.CLOSED)
                break


def test_the_table_has_no_dead_ends_and_no_unreachable_states() -> None:
    reached, frontier = {State.EXPECT_INITIALIZE}, [State.EXPECT_INITIALIZE]
    while frontier:
        for following in TRANSITIONS.get(frontier.pop(), (None, {}))[1].values():
            if following not in reached:
                reached.add(following)
                frontier.append(following)
    assert reached == set(TRANSITIONS)
    assert all(row or state is State.FINISHED for state, (_, row) in TRANSITIONS.items())


@pytest.mark.parametrize("state", [State.HANDLING_INITIALIZE, State.HANDLING_LEASE_LOST])
def test_no_checkpoint_where_the_daemon_has_no_checkpointer(state: State) -> None:
    assert next_state(state, "checkpoint", Role.CHILD) is None


def test_the_cases_cover_every_row_of_the_table() -> None:
    rows = {(state, kind) for state, (_, row) in TRANSITIONS.items() for kind in row}
    assert {(case.before, case.event.kind) for case in CASES} == rows
    assert {ShutdownRequested().kind, ShardEnded().kind} <= {kind for _, kind in rows}
