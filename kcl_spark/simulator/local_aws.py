"""Kinesis and DynamoDB on this machine, for the real daemon: `kinesis-local` and `moto`, each a process on loopback.

Both come by `bin/setup services`. They hold everything in memory and end with whoever started them.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kcl_spark.daemon.jars import cache
from kcl_spark.errors import UsageError

REGION: Final = "us-east-1"

CREDENTIALS: Final[Mapping[str, str]] = {
    "AWS_ACCESS_KEY_ID": "local",
    "AWS_SECRET_ACCESS_KEY": "local",
    "AWS_REGION": REGION,
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""Neither service looks at them, and no SDK makes a call without."""

_START_SECONDS: Final = 60.0

_SETUP: Final = "Run bin/setup services"


@dataclass(frozen=True)
class LocalAws:
    """Two services that are up.

    Attributes:
        kinesis: address of Kinesis, which speaks HTTP/2 in the clear.
        dynamodb: address of DynamoDB.
    """

    kinesis: str
    dynamodb: str

    def client(self, service: str) -> Any:
        """A boto3 client of "kinesis" or "dynamodb"."""
        import boto3

        address = {"kinesis": self.kinesis, "dynamodb": self.dynamodb}[service]
        return boto3.client(
            service,
            endpoint_url=address,
            region_name=REGION,
            aws_access_key_id="local",
            aws_secret_access_key="local",  # noqa: S106 - no secret: nobody looks at it
        )

    def create_stream(self, name: str, shards: int) -> None:
        """Create a stream and wait until it is active."""
        kinesis = self.client("kinesis")
        kinesis.create_stream(StreamName=name, ShardCount=shards)
        self.wait_until_active(name)

    def wait_until_active(self, name: str) -> None:
        """Wait for a new stream, or for a split or merge to be done."""
        kinesis = self.client("kinesis")
        _wait(lambda: _is_active(kinesis, name), f"the stream {name} did not become active")

    def leases(self, application: str) -> dict[str, dict[str, str]]:
        """The lease table as plain data: shard → its attributes; empty before the daemon has made it."""
        dynamodb = self.client("dynamodb")
        try:
            items = dynamodb.scan(TableName=application, ConsistentRead=True)["Items"]
        except dynamodb.exceptions.ResourceNotFoundException:
            return {}
        plain = ({name: str(next(iter(value.values()))) for name, value in item.items()} for item in items)
        return {item["leaseKey"]: item for item in plain if "checkpoint" in item}


@contextmanager
def local_aws(log: Path) -> Iterator[LocalAws]:
    """Start both services; what they say goes to a file.

    Raises:
        UsageError: node, kinesis-local or moto is missing, or one of them does not start.
    """
    folder = cache(os.environ) / "kinesis-local" / "node_modules" / "kinesis-local"
    if not (folder / "main.js").is_file():
        raise UsageError("kinesis-local is not on this machine", _SETUP)
    tls, plain, dynamodb = (_free_port() for _ in range(3))
    ports = {"KINESIS_MOCK_TLS_PORT": str(tls), "KINESIS_MOCK_PLAIN_PORT": str(plain)}
    # Splits and new streams take 500 ms each by default, which is long enough to be seen.
    environment = {**os.environ, **ports, "SHARD_LIMIT": "500", "LOG_LEVEL": "ERROR"}
    moto = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(dynamodb)]
    with (
        log.open("ab") as said,
        _process(["node", "main.js"], folder, environment, said),
        _process(moto, None, None, said),
    ):
        for port in (plain, dynamodb):
            _wait(lambda port=port: _listens(port), f"a service did not start; see {log}")  # type: ignore[misc]
        yield LocalAws(f"http://127.0.0.1:{plain}", f"http://127.0.0.1:{dynamodb}")


@contextmanager
def _process(
    command: list[str], folder: Path | None, environment: Mapping[str, str] | None, said: Any
) -> Iterator[None]:
    try:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said
        )
    except FileNotFoundError:
        raise UsageError(f"{command[0]} is not on this machine", _SETUP) from None
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
        return True
    return False


def _is_active(kinesis: Any, name: str) -> bool:
    summary = kinesis.describe_stream_summary(StreamName=name)["StreamDescriptionSummary"]
    return bool(summary["StreamStatus"] == "ACTIVE")


def _wait(condition: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise UsageError(otherwise, _SETUP)
        time.sleep(0.05)
