"""What the worker says, to whom and when: the nine rules of the design on a desk, with a clock set by hand."""

import pytest

from kcl_spark.errors import DataLossError, DeadLetterRefused, ExitCode, RemoteProtocolError, ShardStopped
from kcl_spark.pipeline import Trigger
from kcl_spark.positions import Position
from kcl_spark.protocol import Checkpoint, Closed, Initialize, Status
from kcl_spark.sinks.base import Entry
from kcl_spark.worker.shard import END_ATTEMPTS, HANDOVER_SECONDS
from kcl_spark.worker.steps import Step
from kcl_spark.worker.worker import Flushed, Settled
from tests.worker.desk import DONE, END, ENDED, LOST, SHUTDOWN, Desk, at, desk

# ------------------------------------------------------------------------------------------------ initialize


def test_initialize_is_answered_once_the_ledger_has_been_read() -> None:
    d = Desk()
    d.hear(1, Initialize("shard", "TRIM_HORIZON", 0))
    assert d.reads[0].shard_id == "shard"
    assert d.said == {}
    d.take(d.worker.ledger_read(1, Entry(), d.now))
    assert d.said == {1: [Status("initialize")]}


@pytest.mark.parametrize("sentinel", ["TRIM_HORIZON", "LATEST", "AT_TIMESTAMP", None])
def test_a_new_shard_takes_everything_and_never_sends_a_sentinel_back(sentinel: str | None) -> None:
    d = Desk()
    d.open(at=sentinel)
    d.deliver(1, 2)
    d.wait(1)
    d.commit()
    d.tick()
    assert d.said[1] == [Status("initialize"), DONE, at(2)]


def test_inside_an_aggregate_the_start_is_exact() -> None:
    d = Desk()
    d.open(at="5", version=3, mark=Position(5, 1))
    d.deliver((5, 0), (5, 1), (5, 2), 6)
    d.wait(1)
    assert d.flushes[0].slices[0].span == (Position(5, 2), Position(6), 2)


def test_a_mark_behind_the_checkpoint_ends_the_worker_and_nothing_is_said() -> None:
    d = Desk()
    d.open(at="9", version=1, mark=Position(5))
    assert isinstance(d.failures[0].error, DataLossError)
    assert d.said == {}


def test_adopting_a_checkpoint_is_said() -> None:
    d = desk(adopt_checkpoints=True)
    d.open(at="9")
    assert "adopted the lease's checkpoint 9:0" in d.notes[0]
    d.deliver(8, 9, 10)
    d.wait(1)
    assert d.flushes[0].slices[0].span.first == Position(10)


def test_an_unreadable_checkpoint_breaks_the_protocol() -> None:
    with pytest.raises(RemoteProtocolError, match="SHARD_END"):
        Desk().open(at="SHARD_END")


def test_a_shard_that_goes_away_before_its_ledger_is_read() -> None:
    d = Desk()
    d.hear(1, Initialize("shard", "TRIM_HORIZON", 0))
    d.hear(1, Closed())
    assert d.worker.ledger_read(1, Entry(), d.now) == []


# ------------------------------------------------------------------------------------------------ status and checkpoint


def test_status_means_accepted_and_checkpoint_means_durable() -> None:
    d = Desk()
    d.open()
    d.deliver(1, 2, 3)
    assert d.last() == DONE
    d.wait(1)
    d.deliver(4)
    assert d.last() == DONE, "nothing is durable yet"
    d.commit()
    d.deliver(5)
    assert d.last() == at(3)
    d.answer()
    assert d.last() == DONE
    d.tick()
    assert d.last() == DONE, "the checkpoint is up to date"


def test_the_checkpoint_names_the_sub_sequence() -> None:
    d = Desk()
    d.open()
    d.deliver((7, 0), (7, 1))
    d.wait(1)
    d.commit()
    d.tick()
    assert d.last() == at(7, 1)


def test_what_the_ledger_holds_already_is_dropped_and_still_checkpointed_as_far_as_it_was_delivered() -> None:
    """The daemon takes no checkpoint beyond what it has delivered."""
    d = Desk()
    d.open(at="2", version=4, mark=Position(9))
    d.deliver(3, 4)
    assert d.said[1] == [Status("initialize"), at(4)]
    d.answer()
    d.deliver(5, 9, 10)
    assert d.last() == at(9)
    d.answer()
    d.wait(1)
    assert d.flushes[0].slices[0].span == (Position(10), Position(10), 1)


def test_a_batch_builds_on_the_entry_that_was_read() -> None:
    d = Desk()
    d.open(version=4, mark=Position(9))
    d.deliver(10)
    d.wait(1)
    assert d.flushes[0].slices[0].base == Entry(4, Position(9))


@pytest.mark.parametrize("error", ["ThrottlingException", "KinesisClientLibDependencyException"])
def test_a_busy_checkpoint_store_is_asked_again_in_a_later_action(error: str) -> None:
    d = Desk()
    d.open()
    d.deliver(1)
    d.wait(1)
    d.commit()
    d.tick()
    d.answer(error)
    assert d.last() == DONE, "records go on meanwhile"
    d.tick()
    assert d.last() == at(1)


def test_a_lost_lease_is_noticed_by_the_answer_to_a_checkpoint() -> None:
    d = Desk()
    d.open()
    d.deliver(1)
    d.wait(1)
    d.deliver(2)
    d.commit()
    d.tick()
    d.answer("ShutdownException")
    assert d.last() == DONE
    d.deliver(3)
    d.wait(10)
    assert len(d.flushes) == 1, "what is not committed is dropped, and nothing new is taken"


@pytest.mark.parametrize("error", ["InvalidStateException", "IllegalArgumentException", "NullPointerException"])
def test_an_error_that_would_come_again_is_noted_and_does_not_hold_up_records(error: str) -> None:
    d = Desk()
    d.open()
    d.deliver(1)
    d.wait(1)
    d.commit()
    d.tick()
    d.answer(error)
    assert d.last() == DONE
    assert error in d.notes[-1]


def test_while_an_answer_is_awaited_nothing_else_is_said() -> None:
    d = Desk()
    d.open()
    d.deliver(1)
    d.wait(1)
    d.commit()
    d.tick()
    d.hush()
    d.wait(100)
    assert d.said == {}


# ------------------------------------------------------------------------------------------------ batches


def test_a_batch_closes_at_its_records_before_the_interval() -> None:
    d = desk(trigger=Trigger("1s", 3))
    d.open()
    d.deliver(1, 2)
    assert not d.flushes
    d.deliver(3)
    assert d.flushes[0].records == 3


def test_a_delivery_that_is_larger_than_a_batch_is_cut_even_inside_an_aggregate() -> None:
    d = desk(trigger=Trigger("1s", 3))
    d.open()
    d.deliver(1, *((2, sub) for sub in range(9)))
    assert [batch.records for batch in d.flushes] == [3, 3], "two are under way, and the buffer is full again"
    d.commit()
    assert d.last() == Checkpoint("2", 1), "the action is still open, so the place inside goes out at once"


def test_a_batch_closes_at_its_bytes_before_the_interval() -> None:
    d = desk(trigger=Trigger("1s", 1_000, "1KB"))
    d.open()
    d.deliver(*range(1, 11))
    assert not d.flushes
    d.deliver(*range(11, 31))
    assert 10 < d.flushes[0].records < 30, "as many as fit"
    assert d.flushes[0].size <= 1_000


def test_the_interval_runs_from_the_oldest_record() -> None:
    d = Desk()
    d.open()
    d.wait(50)
    d.deliver(1)
    d.wait(0.6)
    d.deliver(2)
    assert d.worker.wakes_at() == pytest.approx(d.now + 0.4)
    d.wait(0.3)
    assert not d.flushes
    d.wait(0.2)
    assert d.flushes[0].records == 2


def test_one_batch_holds_all_shards() -> None:
    d = Desk()
    for link, shard in enumerate(["a", "b", "c"], 1):
        d.open(link, shard)
        d.deliver(1, 2, link=link)
    d.wait(1)
    assert [part.shard_id for part in d.flushes[0].slices] == ["a", "b", "c"]
    assert d.flushes[0].records == 6


def test_a_full_buffer_holds_statuses_back_until_the_batch_is_handed_on() -> None:
    d = desk(trigger=Trigger("1s", 2))
    d.open(1, "a")
    d.open(2, "b")
    d.deliver(1, 2)  # sealed: in flight, Spark works on it
    d.deliver(3, 4)  # sealed too: waits on disk
    assert len(d.flushes) == 2
    d.hush()
    d.deliver(5, 6)
    d.deliver(1, link=2)
    assert d.said == {}, "no room"
    d.commit()
    assert len(d.flushes) == 3
    assert d.said == {1: [at(2)], 2: [DONE]}
    d.answer()
    assert d.last() == DONE


def test_a_batch_that_is_not_full_waits_for_spark() -> None:
    d = Desk()
    d.open()
    d.deliver(1)
    d.wait(1)
    d.deliver(2)
    d.wait(5)
    d.deliver(3)
    assert len(d.flushes) == 1
    d.commit()
    assert d.flushes[1].records == 2


def test_records_that_arrive_while_a_batch_is_in_flight_are_the_next_ones() -> None:
    d = Desk()
    d.open()
    d.deliver(1)
    d.wait(1)
    d.deliver(2)
    d.commit()
    d.wait(1)
    assert d.flushes[1].slices[0].span.first == Position(2)
    assert d.flushes[1].slices[0].base == Entry(1, Position(1))


# ------------------------------------------------------------------------------------------------ the end of a shard


def test_the_end_of_a_shard_flushes_at_once_and_then_sends_the_null_checkpoint() -> None:
    d = Desk()
    d.open()
    d.deliver(1)
    d.hear(1, ENDED)
    assert len(d.flushes) == 1, "not after the interval"
    assert d.last() == DONE
    d.commit()
    assert d.last() == END
    d.answer()
    assert d.last() == Status("shardEnded")


def test_the_end_waits_for_a_batch_in_flight_and_for_the_one_behind_it() -> None:
    d = Desk()
    d.open()
    d.deliver(1)
    d.wait(1)
    d.deliver(2)
    d.hear(1, ENDED)
    d.commit()
    assert d.last() == DONE
    assert len(d.flushes) == 2
    d.commit()
    assert d.last() == END


def test_an_empty_shard_ends_at_once() -> None:
    d = Desk()
    d.open()
    d.hear(1, ENDED)
    assert d.last() == END


def test_a_throttled_end_is_asked_for_again_in_the_same_action_with_growing_waits() -> None:
    d = Desk()
    d.open()
    d.hear(1, ENDED)
    waits = []
    for _ in range(5):
        d.hush()
        d.said[1] = [END]
        d.answer("ThrottlingException")
        d.hush()
        before = d.now
        while not d.said:
            wake = d.worker.wakes_at()
            assert wake is not None
            d.wait(wake - d.now)
        waits.append(d.now - before)
        assert d.said == {1: [END]}
    assert waits == [0.25, 0.5, 1.0, 2.0, 4.0]
    d.answer()
    assert d.last() == Status("shardEnded")


def test_an_end_that_cannot_be_had_is_left_without_a_status() -> None:
    """Else the daemon would hold the lease for ever and the children would never start (reference 3.3)."""
    d = Desk()
    d.open()
    d.hear(1, ENDED)
    for _ in range(END_ATTEMPTS):
        d.answer("ThrottlingException")
        d.wait(10)
    assert Status("shardEnded") not in d.said[1]
    assert d.ends[0].code is ExitCode.PROTOCOL


@pytest.mark.parametrize("error", ["ShutdownException", "InvalidStateException"])
def test_an_end_that_is_refused_is_left_at_once(error: str) -> None:
    d = Desk()
    d.open()
    d.hear(1, ENDED)
    d.answer(error)
    d.wait(0.3)
    assert d.ends[0].code is ExitCode.PROTOCOL
    assert d.last() == END


# ------------------------------------------------------------------------------------------------ losing a lease


def test_a_lost_lease_drops_what_is_not_committed() -> None:
    d = Desk()
    d.open()
    d.deliver(1)
    d.hear(1, LOST)
    assert d.last() == Status("leaseLost")
    d.wait(5)
    assert not d.flushes
    d.hear(1, Closed())
    assert (d.ends[0].link, d.ends[0].code, d.ends[0].error) == (1, ExitCode.OK, None)


def test_a_batch_in_flight_is_told_that_a_lease_is_gone() -> None:
    d = Desk()
    d.open(1, "a")
    d.open(2, "b")
    d.deliver(1)
    d.deliver(1, link=2)
    d.wait(1)
    a, b = d.flushes[0].slices
    d.hear(1, LOST)
    assert (d.worker.owns("a", a.life), d.worker.owns("b", b.life)) == (False, True)


def test_a_second_life_does_not_know_the_first_ones_memory() -> None:
    """Seen: the same shard initialized again one second after leaseLost, while the first life's flush still runs."""
    d = Desk()
    d.open()
    d.deliver(1, 2)
    d.wait(1)
    first = d.flushes[0].slices[0]
    d.hear(1, LOST)
    d.hear(1, Closed())
    d.open(2)
    assert not d.worker.owns("shard", first.life)
    d.deliver(1, 2, link=2)
    d.flushed(Flushed((Settled("shard", first.life, Entry(1, Position(2)), Position(2)),)))
    assert d.last(2) == DONE, "the first life's mark is not the second's"
    d.wait(1)
    assert d.flushes[1].slices[0].life != first.life
    assert d.flushes[1].slices[0].base == Entry()


def test_a_second_life_takes_over_even_if_the_first_was_never_told() -> None:
    d = Desk()
    d.open(1)
    d.deliver(1)
    d.open(2)
    d.deliver(2)
    d.deliver(1, link=2)
    d.wait(1)
    assert [part.span.records for part in d.flushes[0].slices] == [1]
    assert d.worker.owns("shard", d.flushes[0].slices[0].life)


def test_a_daemon_that_dies_ends_its_shards_and_nothing_more_is_written() -> None:
    d = Desk()
    d.open(1, "a")
    d.open(2, "b")
    d.deliver(1)
    d.deliver(1, link=2)
    for link in (1, 2):
        d.hear(link, Closed())
    d.wait(5)
    assert not d.flushes
    assert [end.code for end in d.ends] == [ExitCode.OK, ExitCode.OK]


def test_a_broken_protocol_ends_its_child_with_its_exit_code() -> None:
    d = Desk()
    d.open()
    d.deliver(1)
    error = RemoteProtocolError("nonsense")
    d.take(d.worker.ended(1, error))
    assert (d.ends[0].code, d.ends[0].error) == (ExitCode.PROTOCOL, error)
    d.wait(5)
    assert not d.flushes


# ------------------------------------------------------------------------------------------------ shutdown


def test_a_hand_over_flushes_checkpoints_and_answers() -> None:
    d = Desk()
    d.open()
    d.deliver(1, 2)
    d.hear(1, SHUTDOWN)
    assert len(d.flushes) == 1
    assert d.last() == DONE
    d.commit()
    assert d.last() == at(2)
    d.answer()
    assert d.last() == Status("shutdownRequested")


def test_a_hand_over_without_anything_to_do_is_answered_at_once() -> None:
    d = Desk()
    d.open()
    d.hear(1, SHUTDOWN)
    assert d.last() == Status("shutdownRequested")


def test_a_hand_over_that_takes_too_long_is_answered_with_what_is_durable() -> None:
    d = Desk()
    d.open()
    d.deliver(1)
    d.wait(1)
    d.deliver(2)
    d.hear(1, SHUTDOWN)
    d.commit()
    assert isinstance(d.last(), Status), "2 is not flushed yet"
    d.wait(HANDOVER_SECONDS)
    assert d.last() == at(1)
    d.answer()
    assert d.last() == Status("shutdownRequested")
    assert not d.worker.owns("shard", d.flushes[1].slices[0].life), "what is late must not be written"


def test_after_a_hand_over_that_dropped_records_the_shard_can_not_end() -> None:
    """In a race shardEnded may follow: its null checkpoint would pass over what was dropped."""
    d = Desk()
    d.open()
    d.deliver(1)
    d.hear(1, SHUTDOWN)
    d.wait(HANDOVER_SECONDS)
    assert d.last() == Status("shutdownRequested")
    d.hear(1, ENDED)
    assert d.ends[0].code is ExitCode.PROTOCOL
    assert END not in d.said[1]


def test_records_after_a_hand_over_are_not_taken_and_the_shard_can_not_end_over_them() -> None:
    d = Desk()
    d.open()
    d.hear(1, SHUTDOWN)
    d.deliver(1)
    d.hear(1, ENDED)
    assert END not in d.said[1]
    assert d.ends[0].code is ExitCode.PROTOCOL


def test_after_a_hand_over_that_was_complete_the_shard_may_end() -> None:
    d = Desk()
    d.open()
    d.hear(1, SHUTDOWN)
    d.hear(1, ENDED)
    assert d.last() == END


def test_draining_flushes_at_once_and_invites_the_daemon_to_go_on() -> None:
    d = desk(trigger=Trigger("60s", 2))
    d.open()
    d.deliver(1, 2)
    d.deliver(3, 4)
    d.hush()
    d.deliver(5, 6)
    assert d.said == {}
    d.take(d.worker.drain(d.now))
    assert d.last() == DONE


# ------------------------------------------------------------------------------------------------ heartbeats


def test_a_daemon_that_waits_hears_the_present_checkpoint_again() -> None:
    d = desk(trigger=Trigger("60s", 1))
    d.open(at="7", version=1, mark=Position(7))
    d.deliver(8)
    d.deliver(9)
    d.deliver(10)  # no room
    d.hush()
    d.wait(4.9)
    assert d.said == {}
    d.wait(0.1)
    assert d.said == {1: [at(7)]}
    d.answer()
    d.wait(5)
    assert d.said == {1: [at(7), at(7)]}


@pytest.mark.parametrize("sentinel", ["TRIM_HORIZON", "LATEST", "AT_TIMESTAMP"])
def test_before_the_first_checkpoint_the_heartbeat_is_the_unchanged_beginning(sentinel: str) -> None:
    d = Desk()
    d.open(at=sentinel)
    d.deliver(1)
    d.hear(1, ENDED)
    d.wait(5)
    assert d.last() == Checkpoint(sentinel, 0)
    d.answer()
    d.commit()
    assert d.last() == END


def test_a_null_beginning_has_no_heartbeat() -> None:
    """Null sent back would mean "all that was delivered"."""
    d = Desk()
    d.hear(1, Initialize("shard", None, None))
    d.take(d.worker.ledger_read(1, Entry(), d.now))
    d.deliver(1)
    d.hear(1, SHUTDOWN)
    d.wait(20)
    assert d.last() == DONE


def test_a_heartbeat_that_is_refused_changes_nothing() -> None:
    d = Desk()
    d.open()
    d.deliver(1)
    d.hear(1, ENDED)
    d.wait(5)
    d.answer("IllegalArgumentException")
    d.commit()
    assert d.last() == END


def test_the_worker_knows_when_it_is_next_worth_asking() -> None:
    d = Desk()
    assert d.worker.wakes_at() is None
    d.open()
    assert d.worker.wakes_at() is None, "the daemon's turn"
    d.deliver(1)
    d.hear(1, ENDED)
    assert d.worker.wakes_at() == d.now + 5.0


# ------------------------------------------------------------------------------------------------ stopped shards


def test_a_shard_that_goes_backwards_stops_alone() -> None:
    d = Desk()
    d.open(1, "a")
    d.open(2, "b")
    d.deliver(5)
    d.hush()
    d.deliver(4)
    assert d.said == {}, "its lease is held, and nothing more of it is invited"
    assert "record 4:0 came after 5:0" in d.notes[-1]
    d.deliver(1, link=2)
    assert d.last(2) == DONE
    d.wait(1)
    assert {part.shard_id: part.span.last for part in d.flushes[0].slices} == {"a": Position(5), "b": Position(1)}
    d.commit()
    assert d.last(1) == at(5), "what came before is committed and checkpointed"
    d.answer()
    assert d.last(1) == at(5)
    assert not d.ends


def test_a_stopped_shard_lets_the_worker_shut_down() -> None:
    d = Desk()
    d.open()
    d.deliver(5)
    d.deliver(4)
    d.take(d.worker.drain(d.now))
    assert d.last() == DONE
    d.commit()
    d.hear(1, SHUTDOWN)
    assert d.last() == at(5)
    d.answer()
    assert d.last() == Status("shutdownRequested")


def test_a_stopped_shard_never_ends() -> None:
    d = Desk()
    d.open()
    d.deliver(5)
    d.take(d.worker.drain(d.now))
    d.deliver(4)
    d.hear(1, ENDED)
    assert END not in d.said[1]
    assert isinstance(d.ends[0].error, ShardStopped)
    assert d.ends[0].code is ExitCode.SHARD_STOPPED


def test_a_shard_that_the_flush_stops_drops_what_it_has_buffered_since() -> None:
    d = Desk()
    d.open()
    d.deliver(1)
    d.wait(1)
    life = d.flushes[0].slices[0].life
    d.deliver(2)
    d.flushed(Flushed(stopped=(("shard", life, DeadLetterRefused("why")),)))
    d.wait(5)
    assert len(d.flushes) == 1
    d.tick()
    d.hush()
    d.wait(1)
    assert d.said == {}


# ------------------------------------------------------------------------------------------------ best effort


def test_best_effort_keeps_no_marks_and_moves_no_checkpoint_but_the_last() -> None:
    d = desk(recovery="best_effort")
    d.open(at="LATEST")
    d.deliver(1)
    d.wait(1)
    d.commit()
    d.tick()
    assert d.last() == DONE
    d.hear(1, ENDED)
    assert d.last() == END


# ------------------------------------------------------------------------------------------------ steps


def test_each_step_is_told() -> None:
    d = Desk()
    d.open()
    d.deliver(1)
    d.wait(1)
    d.commit()
    d.tick()
    d.answer()
    assert d.steps.counts == {
        Step.RECEIVED: 4,
        Step.TRIMMED: 2,
        Step.BUFFERED: 1,
        Step.SEALED: 1,
        Step.CHECKPOINT_ANSWERED: 1,
    }


def test_a_deadline_that_passes_unseen_is_due_at_the_next_look() -> None:
    d = Desk()
    d.open()
    d.hear(1, ENDED)
    d.answer("ThrottlingException")
    d.now += 60  # one long round of the listening thread
    wake = d.worker.wakes_at()
    assert wake is not None
    assert wake <= d.now
