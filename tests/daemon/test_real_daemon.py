"""The stock MultiLangDaemon over `kinesis-local` and `moto`: whatever is killed, moved or split, every number once.

Each test puts its numbers, breaks something on the way, and counts. That the break happened while work was under way is
asserted too: a fault that fires after the last commit proves nothing.
"""

import re
import time
from collections.abc import Callable

import psutil
import pytest

from kcl_spark.simulator.producer import aggregated
from tests.daemon.world import World, assert_exact, eventually, payload

pytestmark = [pytest.mark.daemon, pytest.mark.timeout(600), pytest.mark.xdist_group("daemon")]

RECORDS = 50_000


def finish(world: World) -> None:
    """Wait until all is committed, end the worker, and count."""
    eventually("all is committed", lambda: world.committed() >= world.fed, 240)
    world.stop()
    assert_exact(world)


def midway(world: World) -> int:
    """Wait until some has been committed and some has not."""
    done = eventually("something is committed", world.committed)
    assert done < world.fed
    return done


def test_a_split_a_merge_a_stop_and_a_restart(world: World, record_property: Callable[[str, object], None]) -> None:
    world.start()
    eventually("all shards are taken", lambda: len(world.status()["shards"]) == 4)
    world.feed(RECORDS // 4)
    world.split()
    world.feed(RECORDS // 4)
    world.merge()
    world.feed(RECORDS // 4)
    midway(world)
    record_property("seconds from SIGTERM to the worker's end", world.stop())
    world.feed(RECORDS // 4)
    world.start()
    eventually("all is committed", lambda: world.committed() >= world.fed, 240)
    finished = {"shardId-000000000000", *(lease for lease in world.leases() if is_finished(world, lease))}
    assert len(finished) >= 3  # the one that was split, the two that were merged
    eventually("their leases end", lambda: all(world.leases()[name]["checkpoint"] == "SHARD_END" for name in finished))
    world.stop()
    assert_exact(world)


def is_finished(world: World, shard: str) -> bool:
    return shard not in {entry["ShardId"] for entry in world.open_shards()}


def test_kill_9_of_the_engine(world: World, record_property: Callable[[str, object], None]) -> None:
    world.start()
    world.feed(RECORDS)
    done = midway(world)
    world.process("kcl_spark engine").kill()
    killed = time.monotonic()
    at_death = world.committed()
    eventually("the next commit", lambda: world.committed() > at_death)
    record_property("seconds from the engine's death to the next commit", time.monotonic() - killed)
    assert done <= at_death < world.fed
    assert "engine ended with SIGKILL" in world.log
    finish(world)


def test_kill_9_of_a_child(world: World) -> None:
    world.start()
    world.feed(RECORDS)
    midway(world)
    daemon = world.process("MultiLangDaemon")
    world.processes("worker/child.py")[0].kill()
    # A child's death costs its siblings their shards and the daemon its life.
    eventually("the daemon is gone", lambda: not daemon.is_running() or daemon.status() == psutil.STATUS_ZOMBIE)
    eventually("the daemon is replaced", lambda: len(re.findall("daemon started", world.log)) == 2)
    finish(world)


def test_kill_9_of_the_daemon(world: World) -> None:
    world.start()
    world.feed(RECORDS)
    midway(world)
    world.process("MultiLangDaemon").kill()
    eventually("the daemon is replaced", lambda: len(re.findall("daemon started", world.log)) == 2)
    assert world.committed() < world.fed
    finish(world)


def test_a_kill_inside_an_aggregate_resumes_at_the_exact_sub_sequence_number(
    make_world: Callable[..., World],
) -> None:
    world = make_world(max_records=300)
    world.start()
    world.put(aggregated((payload(number) for number in range(20_000)), 5_000))
    world.fed = 20_000

    def inside() -> list[str]:
        subs = {name: lease.get("checkpointSubSequenceNumber", "0") for name, lease in world.leases().items()}
        return [name for name, sub in subs.items() if 0 < int(sub) < 4_999]

    shards = eventually("a checkpoint inside an aggregate", inside)
    world.process("kcl_spark engine").kill()
    (shard, *_) = [name for name in shards if name in inside()]
    lease = world.leases()[shard]
    place = f"{lease['checkpoint']}:{lease['checkpointSubSequenceNumber']}"
    eventually("the shard starts there", lambda: f"shard {shard} starts: its lease is at {place}" in world.log)
    finish(world)
