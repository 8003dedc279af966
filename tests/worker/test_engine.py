"""The listening thread alone; what it does with processes around it is in tests/process."""

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from kcl_spark.worker.engine import Engine, Link
from kcl_spark.worker.handover import Caller
from kcl_spark.worker.worker import Worker
from tests.worker.desk import PIPELINE, Desk


@pytest.fixture
def engine(tmp_path: Path) -> Any:
    door = socket.socket(socket.AF_UNIX)
    yield Engine(
        door,
        Worker(PIPELINE, 5.0, Desk().steps),
        pipeline="p.py",
        entry=lambda _: pytest.fail("no shard opens"),
        start=lambda: pytest.fail("nothing is flushed"),
        clock=lambda: 0.0,
        log=lambda _: None,
        report=lambda: "",
    )
    door.close()


@pytest.mark.parametrize("handler", ["_read", "_child_gone"])
def test_a_key_of_a_link_that_was_closed_in_the_same_round_is_stale(engine: Engine, handler: str) -> None:
    """Its descriptor is closed, or somebody else's by now: neither may be read."""
    ours, theirs = socket.socketpair()
    incoming, write = os.pipe()
    os.write(write, b"a line of another pipe\n")
    getattr(engine, handler)(Link(1, incoming, write, Caller(ours, ("child", "1", "p.py"))))
    assert os.read(incoming, 100) == b"a line of another pipe\n"
    for descriptor in (incoming, write):
        os.close(descriptor)
    ours.close()
    theirs.close()
