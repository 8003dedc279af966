"""What tests with real processes share: a Spark Connect server, for an engine that needs no JVM of its own starts in
two seconds instead of ten; and a worker in a folder of its own, of which nothing is left afterwards."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

from kcl_spark.worker.spark import DEFAULTS
from tests.process.worker import Worker, eventually

LOCAL = ("--master", "local[2]", "--conf", "spark.driver.memory=512m")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="session")
def connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Spark Connect server, from the jars that come with pyspark."""
    home = Path(pyspark.__file__).parent
    port = _free_port()
    ours = {"spark.connect.grpc.binding.address": "127.0.0.1", "spark.connect.grpc.binding.port": str(port)}
    settings = [f"--conf={key}={value}" for key, value in (dict(DEFAULTS) | ours).items() if key != "spark.app.name"]
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]", *settings, "--driver-memory", "1g"]
    environment = os.environ | {"SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    log = tmp_path_factory.mktemp("connect") / "log"
    with log.open("wb") as target:
        server = subprocess.Popen(
            [*command, "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"],
            stdin=subprocess.DEVNULL, stdout=target, stderr=target, env=environment,
        )  # fmt: skip
    try:
        eventually("the Spark Connect server listens", lambda: _listens(port) or server.poll() is not None)
        assert server.poll() is None, log.read_text()
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


@contextmanager
def _worker(spark: tuple[str, ...]) -> Iterator[Worker]:
    # Not tmp_path: a Unix socket's path has 107 bytes at most.
    root = Path(tempfile.mkdtemp(prefix="kcl-spark-", dir="/tmp"))
    worker = Worker(root, spark)
    try:
        yield worker
    finally:
        worker.clean_up()
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def worker(connect: str) -> Iterator[Worker]:
    """A worker whose engines use the Spark Connect server."""
    with _worker(("--remote", connect)) as made:
        yield made


@pytest.fixture
def local_worker() -> Iterator[Worker]:
    """A worker whose engines start Spark themselves."""
    with _worker(LOCAL) as made:
        yield made
