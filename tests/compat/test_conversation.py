"""What the daemon may say and what comes of it: growth is tolerated, nonsense is refused by name, silence is an end."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kcl_spark.compat.conversation import Conversation, DaemonGone
from kcl_spark.protocol import Action, Checkpoint, Initialize, ProcessRecords
from tests.compat.daemon import (
    BEGIN,
    LEASE_LOST,
    OURS,
    SHARD_ENDED,
    Child,
    Daemon,
    Foreign,
    Raw,
    batch,
    checkpoint,
    line_of,
    record,
    run_inside,
    status,
)
from tests.compat.processors import processor


def test_the_pipes_end_while_a_checkpoint_is_unanswered_is_a_clean_stop(tmp_path: Path) -> None:
    child = Child(OURS, "unruly.py", tmp_path, {"ACT": "checkpoint_and_ignore_all"})
    life = child.live(Daemon([BEGIN, batch(b"a"), LEASE_LOST], [Foreign(b"")]))
    assert life.heard == [status("initialize"), checkpoint()]
    assert (life.noted("error"), life.noted("went on"), life.code) == ([], [], 0)
    stop = (
        "kcl-spark: stopped: the daemon closed the pipe before it answered a checkpoint, which may or may not be stored"
    )
    assert life.log.splitlines() == [stop]


def test_nothing_more_is_said_even_if_a_processor_swallows_the_stop(tmp_path: Path) -> None:
    child = Child(OURS, "unruly.py", tmp_path, {"ACT": "swallow_even_the_stop"})
    life = child.live(Daemon([BEGIN, batch(b"a"), SHARD_ENDED], [Foreign(b"")]))
    assert life.heard == [status("initialize"), checkpoint()]
    assert (life.noted("swallowed"), life.noted("shard_ended"), life.code) == ([[]], [], 0)
    assert life.log.count("stopped: the daemon closed the pipe") == 1


def test_a_daemon_that_is_gone_when_the_status_is_due_is_a_clean_stop(tmp_path: Path) -> None:
    """Both its ends are closed while the child is busy, so the write itself fails."""
    child = Child(OURS, "version3.py", tmp_path)
    process = child.process
    assert process.stdin
    assert process.stdout
    process.stdout.close()
    process.stdin.write(line_of(BEGIN))
    process.stdin.close()
    assert process.wait(30) == 0
    log = child.log.read_text()
    assert log.splitlines() == ["kcl-spark: stopped: the daemon closed the pipe before it took the status(initialize)"]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"action": "pause"}\n', "Invalid value 'pause'"),
        (b'{"action": "shutdown", "reason": "TERMINATE"}\n', "Invalid value 'shutdown'"),
        (b"no json\n", "a line that is no message"),
        (b'{"action": "leaseL', "the pipe ended inside a line"),
        (b'{"action": "initialize", "shardId": "again"}\n', "may receive .*, not initialize"),
    ],
)
def test_what_is_no_message_is_named_and_ends_the_process(line: bytes, why: str, tmp_path: Path) -> None:
    life = Child(OURS, "version3.py", tmp_path).live(Daemon([BEGIN, Foreign(line)]))
    assert (life.heard, life.code) == ([status("initialize")], 65)
    assert len(life.log.splitlines()) == 1
    assert re.search(f"kcl-spark: in state READY: .*{why}", life.log)


def test_another_message_than_the_answer_is_an_invalid_state_and_the_end() -> None:
    """amazon_kclpy raises the same, and then goes on in a conversation that it has misread."""
    one = processor()
    inside = run_inside(one, Daemon([BEGIN, batch(b"!checkpoint")], [Foreign(line_of(LEASE_LOST))]))
    assert inside.heard == [status("initialize"), checkpoint()]
    assert inside.noted("error") == [["CheckpointError", "InvalidStateException", "'InvalidStateException'"]]
    assert inside.code == 65
    assert inside.log.splitlines()[-1].endswith("may receive answer(checkpoint), not leaseLost")


@pytest.mark.parametrize(("line", "code"), [(line_of(LEASE_LOST), 65), (b"", None)])
@pytest.mark.parametrize("script", [[BEGIN, batch(b"a")], [BEGIN, SHARD_ENDED]], ids=["batch", "end"])
def test_whatever_the_processor_makes_of_a_conversation_that_is_over_it_is_over(
    script: list[Action], line: bytes, code: int | None
) -> None:
    """Neither its exception nor its missing checkpoint at the end is what ends the process."""

    def insist(self: Any, given: Any) -> None:
        with contextlib.suppress(SystemExit):
            given.checkpointer.checkpoint()
        if script[-1] is not SHARD_ENDED:
            raise ValueError("no answer")

    one = processor(process_records=insist, shard_ended=insist)
    inside = run_inside(one, Daemon(script, [Foreign(line)]))
    assert inside.heard == [status("initialize"), checkpoint()]
    assert inside.code == code


def test_unknown_fields_are_ignored() -> None:
    def grown(action: Any) -> Raw:
        fields = json.loads(line_of(action))
        for each in [fields, *fields.get("records", [])]:
            each |= {"new": [1, {"a": None}], "streamArn": "x"}
        return Raw(action, json.dumps(fields).encode() + b"\n")

    inside = run_inside(processor(), Daemon(list(map(grown, [BEGIN, batch(b"a"), SHARD_ENDED]))))
    assert inside.heard[-1] == status("shardEnded")
    assert len(inside.noted("record")) == 1


def test_null_and_missing_fields_are_tolerated() -> None:
    seen: list[Any] = []

    def process_records(self: Any, given: Any) -> None:
        for each in given.records:
            seen.append(
                [each.binary_data, each.data, each.partition_key, each.sub_sequence_number, each.timestamp_millis]
            )
            seen.append(
                [each.approximate_arrival_timestamp, each.arrival_time_utc, each["approximateArrivalTimestamp"]]
            )
        seen.append(given.millis_behind_latest)

    nulls = b'{"data":null,"partitionKey":null,"sequenceNumber":"1",'
    nulls += b'"subSequenceNumber":null,"approximateArrivalTimestamp":null}'
    few = b'{"data":"YQ==","partitionKey":"k","sequenceNumber":"2"}'
    batches = Raw(batch(), b'{"action":"processRecords","records":[' + nulls + b"," + few + b"]}\n")
    start = Raw(BEGIN, b'{"action":"initialize","shardId":"s"}\n')
    one = processor(process_records=process_records)
    inside = run_inside(one, Daemon([start, batches, SHARD_ENDED]))
    assert inside.heard[-1] == status("shardEnded")
    assert inside.noted("initialize") == [["initialize", "s", None, None]]
    assert seen == [[None] * 5, [None] * 3, [b"a", "YQ==", "k", 0, None], [None] * 3, None]


def test_long_lines_pass(tmp_path: Path) -> None:
    data = bytes(range(256)) * 4096
    life = Child(OURS, "version3.py", tmp_path).live(Daemon([BEGIN, batch(*[data] * 4), SHARD_ENDED]))
    assert life.heard[-1] == status("shardEnded")
    assert [note[0] for note in life.noted("record")] == [data.hex()] * 4


class Exchange:
    """A conversation in an open action, whose next answer is withheld until the test gives it.

    `second_comes` is set when a thread other than the first wants its turn.
    """

    def __init__(self) -> None:
        self.written: list[dict[str, Any]] = []
        self.reading = threading.Event()
        self.answer = threading.Event()
        self.second_comes = threading.Event()
        self._daemon = Daemon([BEGIN, batch(b"a")])
        self._said = [self._daemon.next_line()]
        self.last_words: bytes | None = None
        self.conversation = Conversation(self._read, self._write)
        self.actions = [self.conversation.next_action()]
        self.conversation.done(BEGIN)
        self.actions.append(self.conversation.next_action())
        self.conversation.turn = Watched(self.conversation.turn, self.second_comes)  # type: ignore[assignment]

    def _write(self, data: bytes) -> None:
        self._said.append(self._daemon.hear(data))
        self.written = list(self._daemon.heard)

    def _read(self) -> bytes:
        if len(self._daemon.heard) > 1:
            self.reading.set()
            assert self.answer.wait(30)
            if self.last_words is not None:
                return self.last_words
        return self._said.pop(0)


class Watched:
    """A lock that tells when a thread that doesn't hold it comes to take it."""

    def __init__(self, lock: Any, comes: threading.Event) -> None:
        self._lock = lock
        self._comes = comes
        self._holder: int | None = None

    def __enter__(self) -> None:
        if self._holder not in (None, threading.get_ident()):
            self._comes.set()
        self._lock.acquire()
        self._holder = threading.get_ident()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_one_checkpoint_at_a_time_whatever_the_thread() -> None:
    exchange = Exchange()
    threads = [threading.Thread(target=exchange.conversation.ask, args=[Checkpoint(str(n))]) for n in (1, 2)]
    threads[0].start()
    assert exchange.reading.wait(30)
    threads[1].start()
    assert exchange.second_comes.wait(30)
    assert exchange.written[1:] == [checkpoint("1")]
    exchange.answer.set()
    for thread in threads:
        thread.join(30)
    assert exchange.written[1:] == [checkpoint("1"), checkpoint("2")]
    assert [answered.error for answered in exchange.conversation.asked] == [None, None]


def test_a_status_waits_for_the_answer_to_another_threads_checkpoint() -> None:
    exchange = Exchange()
    threads = [
        threading.Thread(target=exchange.conversation.ask, args=[Checkpoint()]),
        threading.Thread(target=exchange.conversation.done, args=[batch()]),
    ]
    threads[0].start()
    assert exchange.reading.wait(30)
    threads[1].start()
    assert exchange.second_comes.wait(30)
    assert exchange.written[1:] == [checkpoint()]
    exchange.answer.set()
    for thread in threads:
        thread.join(30)
    assert exchange.written[1:] == [checkpoint(), status("processRecords")]


def test_a_status_that_waited_for_a_daemon_that_is_gone_knows_it() -> None:
    exchange, raised = Exchange(), []
    exchange.last_words = b""

    def call(function: Callable[[Any], object], argument: object) -> None:
        try:
            function(argument)
        except DaemonGone as gone:
            raised.append(gone)

    threads = [
        threading.Thread(target=call, args=[exchange.conversation.ask, Checkpoint()]),
        threading.Thread(target=call, args=[exchange.conversation.done, batch()]),
    ]
    threads[0].start()
    assert exchange.reading.wait(30)
    threads[1].start()
    assert exchange.second_comes.wait(30)
    exchange.answer.set()
    for thread in threads:
        thread.join(30)
    assert len(raised) == 2
    assert exchange.written[1:] == [checkpoint()]


def test_once_gone_always_gone() -> None:
    lines = [line_of(BEGIN), line_of(ProcessRecords([record(b"a")], 0)), b""]
    conversation = Conversation(lambda: lines.pop(0), lambda _: None)
    assert isinstance(conversation.next_action(), Initialize)
    conversation.done(BEGIN)
    conversation.next_action()
    for _ in range(2):
        with pytest.raises(DaemonGone):
            conversation.ask(Checkpoint())
