"""Two services for all tests with the real daemon, and a world of its own for each."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from kcl_spark.errors import UsageError
from kcl_spark.simulator.local_aws import LocalAws, local_aws
from tests.daemon.world import World

_numbers = count()


@pytest.fixture(scope="session")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAws]:
    try:
        with local_aws(tmp_path_factory.mktemp("aws") / "log") as services:
            yield services
    except UsageError as error:
        pytest.skip(str(error))


@pytest.fixture
def make_world(aws: LocalAws) -> Iterator[Callable[..., World]]:
    made: list[World] = []

    def make(max_records: int = 2_000) -> World:
        # Not tmp_path: a Unix socket's path has 107 bytes at most.
        root = Path(tempfile.mkdtemp(prefix="kcl-spark-", dir="/tmp"))
        made.append(World(root, aws, f"numbers-{next(_numbers)}", max_records))
        return made[-1]

    yield make
    for world in made:
        world.clean_up()
        shutil.rmtree(world.root, ignore_errors=True)


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world()
