"""What the real daemon says is what the recordings in tests/protocol/golden hold; also how they are made anew.

The daemon's messages of today must have the shapes of the recorded ones: names and types of all fields. To record anew,
copy the files from the folder that the test names.
"""

import json
import shutil
import sys
from collections.abc import Callable

import pytest

from kcl_spark.protocol import State
from kcl_spark.simulator.producer import Outgoing, aggregated
from kcl_spark.worker import child
from tests.daemon import recorder
from tests.daemon.world import World, assert_exact, eventually, payload
from tests.protocol.replay import GOLDEN, read, replay, shape

pytestmark = [pytest.mark.daemon, pytest.mark.timeout(600), pytest.mark.xdist_group("daemon")]


def test_the_daemon_speaks_as_it_was_recorded(
    make_world: Callable[..., World], tmp_path_factory: pytest.TempPathFactory
) -> None:
    world = make_world()
    recordings = world.root / "recordings"
    recordings.mkdir()
    stub = f"{sys.executable} -S -E {child.__file__} {world.pipeline}"
    world.start(f"--set=executableName={sys.executable} {recorder.__file__} {recordings} {stub}")
    eventually("all shards are taken", lambda: len(world.status()["shards"]) == 4)
    world.put(Outgoing(f"ключ-{number}", payload(number)) for number in range(12))
    world.put(aggregated((payload(number) for number in range(12, 20)), 4, "é"))
    world.fed = 20
    world.split()
    eventually("all is committed", lambda: world.committed() >= world.fed)
    eventually("the parent ends", lambda: world.leases()["shardId-000000000000"]["checkpoint"] == "SHARD_END")
    eventually("its children are read", lambda: len(list(recordings.glob("*.txt"))) >= 6)
    world.stop()
    assert_exact(world)
    made = tmp_path_factory.mktemp("recordings")
    shutil.copytree(recordings, made, dirs_exist_ok=True)
    transcripts = [read(path) for path in sorted(made.glob("*.txt"))]
    known = {shape(said) for path in GOLDEN.glob("*.txt") for said in read(path)}
    found = {shape(said) for transcript in transcripts for said in transcript}
    assert found <= known, f"new shapes: {json.dumps(sorted(map(str, found - known)))}; recorded in {made}"
    assert {replay(transcript) for transcript in transcripts} <= {State.FINISHED, State.READY, State.HANDLING_RECORDS}
