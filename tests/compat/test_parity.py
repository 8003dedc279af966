"""The same processor, driven by the same script, answers the same under amazon_kclpy and under kcl_spark.compat.

Both run as child processes over pipes; what they said and what their processors saw has to be equal, message for
message and attribute for attribute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest

from kcl_spark.protocol import Action, Initialize, ProcessRecords
from tests.compat.daemon import (
    BEGIN,
    KCLPY,
    LEASE_LOST,
    OURS,
    SHARD_ENDED,
    SHUTDOWN_REQUESTED,
    Answer,
    Child,
    Daemon,
    Life,
    batch,
    checkpoint,
    record,
    status,
)

pytestmark = pytest.mark.skipif(
    find_spec("amazon_kclpy") is None, reason="amazon_kclpy is not installed: pip install kcl-spark[kclpy]"
)

ERRORS = [
    "ThrottlingException",
    "KinesisClientLibDependencyException",
    "KinesisClientLibIOException",
    "InvalidStateException",
    "IllegalArgumentException",
    "NullPointerException",
    "ShutdownException",
]


class Scene(NamedTuple):
    actions: list[Action]
    answers: Sequence[Answer] = ()
    environment: Mapping[str, str] = MappingProxyType({})


AGGREGATE = ProcessRecords(
    [
        record(b"plain", 0),
        record(b"first of an aggregate", 1, 0, "schl\u00fcssel"),
        record(b"!checkpoint here", 1, 1, "\u9375"),
        record(b"\x00\xff\xfe", 1, 2, "\U0001f511\u2028\u0085"),
        record(b"!checkpoint number", 2, 0, ""),
        record(b"", 3, 0, "k", 0),
        record(b"!checkpoint", 4, 7, 'quote " and \\', 1_700_000_000_999),
    ],
    None,
)

SCENES = {
    "to the shard's end": Scene([BEGIN, batch(b"a", b"b", b"!checkpoint"), batch(b"c", start=3), SHARD_ENDED]),
    "aggregates, keys, and every form of checkpoint": Scene([BEGIN, AGGREGATE, SHARD_ENDED]),
    "empty batches": Scene([BEGIN, batch(), batch(b"a"), batch(behind=None), LEASE_LOST]),
    "the lease lost": Scene([BEGIN, batch(b"a"), LEASE_LOST]),
    "every error, handled": Scene([BEGIN, batch(*[b"!checkpoint"] * len(ERRORS)), LEASE_LOST], [*ERRORS]),
    "persistence when throttled": Scene(
        [BEGIN, batch(b"!persist", b"!persist"), LEASE_LOST], ["ThrottlingException"] * 3
    ),
    "persistence at the shard's end": Scene([BEGIN, batch(b"a"), SHARD_ENDED], ["ThrottlingException"] * 2),
    "a request to shut down, and the lease lost": Scene([BEGIN, batch(b"a"), SHUTDOWN_REQUESTED, LEASE_LOST]),
    "a request to shut down, and no more": Scene([BEGIN, batch(b"a"), SHUTDOWN_REQUESTED], ["ShutdownException"]),
    "a request to shut down, overtaken by the end": Scene([BEGIN, batch(b"a"), SHUTDOWN_REQUESTED, SHARD_ENDED]),
    "a lease with a checkpoint": Scene([Initialize("shardId-7", "4959033827149", 3), batch(b"a"), LEASE_LOST]),
    "a lease with nothing": Scene([Initialize("shardId-7", None, None), batch(b"!checkpoint", behind=None)]),
    "no message at all": Scene([]),
    "errors at both ends, with on_error as it was": Scene(
        [BEGIN, batch(b"a", b"!raise", b"b"), SHUTDOWN_REQUESTED, SHARD_ENDED],
        environment={"AT_END": "raise", "KCL_SPARK_COMPAT_ON_ERROR": "report_success"},
    ),
    "a forgotten end, with on_error as it was": Scene(
        [BEGIN, batch(b"a"), SHARD_ENDED],
        environment={"AT_END": "forget", "KCL_SPARK_COMPAT_ON_ERROR": "report_success"},
    ),
}


def both(scene: Scene, app: str, folder: Path) -> tuple[Life, Life]:
    """Start both before talking with either, so that they load at the same time."""
    children = [Child(command, app, folder, scene.environment) for command in (KCLPY, OURS)]
    theirs, ours = [child.live(Daemon(scene.actions, scene.answers)) for child in children]
    return theirs, ours


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("name", SCENES)
def test_the_same_is_said_and_seen(name: str, version: int, tmp_path: Path) -> None:
    theirs, ours = both(SCENES[name], f"version{version}.py", tmp_path)
    assert ours.heard == theirs.heard
    assert ours.seen == theirs.seen
    assert (ours.code, ours.noise) == (theirs.code, theirs.noise) == (0, 0)


def test_the_scenes_say_what_they_mean_to(tmp_path: Path) -> None:
    """Two equal silences would pass the tests above."""
    scene = SCENES["aggregates, keys, and every form of checkpoint"]
    theirs, ours = both(scene, "version3.py", tmp_path)
    first = str(int(record(b"").sequence_number) + 1)
    assert ours.heard == [
        status("initialize"),
        checkpoint(first, 1),
        checkpoint(str(int(first) + 1)),
        checkpoint(),
        status("processRecords"),
        checkpoint(),
        status("shardEnded"),
    ]
    arrived = theirs.noted("record")[0][6]
    assert arrived == ["2023-11-15T03:58:20.123000", "None"], "local time, and naive: the test's zone is 5:45 east"
    assert len(theirs.noted("record")) == 7


@pytest.mark.parametrize("version", [1, 2])
def test_the_lease_lost_is_a_zombie_to_old_versions(version: int, tmp_path: Path) -> None:
    theirs, ours = both(SCENES["the lease lost"], f"version{version}.py", tmp_path)
    refusal = "Checkpointing is not allowed when the lease is lost"
    assert ours.noted("error") == theirs.noted("error") == [["CheckpointError", refusal, repr(refusal)]]
    assert ours.noted("shutdown")[0][-1] == theirs.noted("shutdown")[0][-1] == "ZOMBIE"


def test_every_error_reaches_the_processor_by_its_name(tmp_path: Path) -> None:
    theirs, ours = both(SCENES["every error, handled"], "version3.py", tmp_path)
    assert [error[1] for error in ours.noted("error")] == ERRORS
    assert ours.noted("error") == theirs.noted("error")


def test_amazon_kclpy_does_not_survive_a_record_without_arrival_time(tmp_path: Path) -> None:
    """So there is nothing to be equal to: test_messages.py says what ours does."""
    life = Child(KCLPY, "version3.py", tmp_path).live(Daemon([BEGIN, ProcessRecords([record(b"a", millis=None)], 0)]))
    assert life.code == 1
    assert life.heard == [status("initialize")]
