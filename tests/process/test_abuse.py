"""A daemon that breaks the protocol: the child leaves with its own exit code, says where, and writes nothing."""

import pytest

from kcl_spark.errors import ExitCode
from kcl_spark.protocol import Initialize
from tests.process.daemon_end import DaemonEnd, delivery
from tests.process.worker import Worker, ids, rows_of

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("process-child")]

NO_MESSAGE = {
    "no-json": b"java.lang.OutOfMemoryError: Java heap space\n",
    "no-object": b"[1, 2]\n",
    "no-such-action": b'{"action":"dance"}\n',
    "no-utf8": b'{"action":"processRecords\xff"}\n',
    "wrong-type": b'{"action":"processRecords","records":7}\n',
    "nul": b"\0\0\0\n",
}


def check_refused(worker: Worker, end: DaemonEnd, *words: str) -> None:
    """The child has left, both logs name state and message, and the table is as it was."""
    assert end.exit_code() == ExitCode.PROTOCOL
    for word in words:
        assert word in end.log
        assert word in worker.engines[0].log
    assert "Traceback" not in worker.engines[0].log
    assert worker.engines[0].process.poll() is None


def test_lines_that_are_no_messages(worker: Worker) -> None:
    worker.engine()
    for number, line in enumerate(NO_MESSAGE.values()):
        end = worker.child()
        end.open(f"shard-{number}")
        end.write(line)
        check_refused(worker, end, "in state READY: ")
    assert not rows_of(worker.rows)


def test_the_pipe_ends_inside_a_line(worker: Worker) -> None:
    worker.engine()
    end = worker.child()
    end.open()
    end.write(end.protocol.send(delivery(1, 2, 3))[:-10])
    end.close()
    check_refused(worker, end, "in state READY: the pipe ended inside a line of")
    assert not rows_of(worker.rows)


OUT_OF_TURN = {
    "answer(checkpoint)": b'{"action":"checkpoint","sequenceNumber":"1","subSequenceNumber":0,"error":null}\n',
    "initialize": b'{"action":"initialize","shardId":"other","sequenceNumber":null}\n',
}


def test_messages_out_of_turn(worker: Worker) -> None:
    """What was accepted before is not written either: the conversation can't be believed any more."""
    worker.declare(trigger="Trigger('1h')")
    worker.engine()
    for kind, line in OUT_OF_TURN.items():
        end = worker.child()
        end.open(kind)
        end.deliver(1, 2, 3)
        assert worker.engines[0].status()["buffered_records"] == 3
        end.write(line)
        check_refused(worker, end, "in state READY: may receive", f"not {kind}")
        assert worker.engines[0].status()["buffered_records"] == 0
    assert not rows_of(worker.rows)


def test_records_before_initialize(worker: Worker) -> None:
    worker.engine()
    end = worker.child()
    end.write(b'{"action":"processRecords","records":[],"millisBehindLatest":0}\n')
    check_refused(worker, end, "in state EXPECT_INITIALIZE: may receive initialize, not processRecords")


def test_one_shards_broken_daemon_is_no_other_shards_matter(worker: Worker) -> None:
    worker.engine()
    good, bad = worker.child(), worker.child()
    good.open("good")
    bad.open("bad")
    bad.write(b"nonsense\n")
    check_refused(worker, bad, "in state READY: ")
    good.deliver(7)
    good.until_checkpoint(7)
    assert ids(worker) == {7: 1}


def test_a_daemon_that_hangs_up_before_the_answer(worker: Worker) -> None:
    """The pipe's end between two lines is no error, whatever is still to be said."""
    worker.engine()
    end = worker.child()
    end.say(Initialize("shard", "TRIM_HORIZON", 0))
    end.close()
    assert end.exit_code() == ExitCode.OK
