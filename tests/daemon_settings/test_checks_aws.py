"""The doctor's look at AWS, against services in this process and against ports where none is."""

import re
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from kcl_spark.daemon import checks_aws
from kcl_spark.daemon.checks_aws import Target, credentials, lease_table, stream, target_of

KEYS = {"AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE", "AWS_SECRET_ACCESS_KEY": "hush"}


@pytest.fixture(autouse=True)
def _machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with credentials in the environment and nowhere else."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")


@pytest.fixture(scope="module")
def services() -> Iterator[str]:
    server = ThreadedMotoServer("127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


def client(service: str, endpoint: str) -> Any:
    return boto3.client(service, endpoint_url=endpoint, region_name="us-east-1")


@pytest.fixture
def target(services: str) -> Target:
    return Target("words", "flights", "us-east-1", services, services)


@pytest.fixture
def words(services: str) -> Iterator[str]:
    kinesis = client("kinesis", services)
    kinesis.create_stream(StreamName="words", ShardCount=3)
    yield kinesis.describe_stream_summary(StreamName="words")["StreamDescriptionSummary"]["StreamARN"]
    kinesis.delete_stream(StreamName="words")


@pytest.fixture
def closed() -> str:
    """A port where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


def table(endpoint: str, key: str, name: str = "flights") -> Any:
    dynamodb = client("dynamodb", endpoint)
    dynamodb.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": key, "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return dynamodb


@pytest.fixture
def leases(services: str) -> Iterator[Any]:
    dynamodb = table(services, "leaseKey")
    for shard, owner, checkpoint in (
        (0, "a", "SHARD_END"),
        (1, "a", "17"),
        (2, "a", "4"),
        (3, "b", "5"),
        (4, None, "6"),
    ):
        item = {"leaseKey": {"S": f"shardId-{shard}"}, "checkpoint": {"S": checkpoint}}
        dynamodb.put_item(TableName="flights", Item=item | ({"leaseOwner": {"S": owner}} if owner else {}))
    dynamodb.put_item(TableName="flights", Item={"leaseKey": {"S": "Migration3.0"}})
    yield dynamodb
    dynamodb.delete_table(TableName="flights")


def test_a_stream_is_shown_with_its_state(target: Target, words: str) -> None:
    check = stream(target)
    assert (check.level, check.found) == ("ok", "words is ACTIVE, 3 open shards, kept for 24 h")


def test_a_stream_that_is_not_there(target: Target) -> None:
    check = stream(target)
    assert (check.level, check.found) == ("error", "there is no stream words in us-east-1")


def test_the_stream_of_the_arn_is_not_another_accounts(target: Target, words: str) -> None:
    assert stream(replace(target, arn=words)).level == "ok"
    check = stream(replace(target, arn="arn:aws:kinesis:us-east-1:999999999999:stream/words"))
    assert check.level == "error"
    assert "999999999999" in check.found


def test_a_lease_table_that_is_not_there_is_no_fault(target: Target) -> None:
    check = lease_table(target)
    assert (check.level, check.found) == ("ok", "the table flights will be created")


def test_a_lease_table_is_summed_up(target: Target, leases: Any) -> None:
    check = lease_table(target)
    assert check.level == "ok"
    assert check.found == "flights: 5 leases, 1 of finished shards, 2 held by a, 1 held by b, 1 held by nobody"


def test_of_a_large_table_the_beginning_is_counted(
    target: Target, leases: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks_aws, "_LEASES", 2)
    assert re.search(r": at least [12] leases", lease_table(target).found)


def test_a_table_of_somebody_else_is_an_error(target: Target, services: str) -> None:
    dynamodb = table(services, "id", "others")
    check = lease_table(replace(target, table="others"))
    dynamodb.delete_table(TableName="others")
    assert check.level == "error"
    assert "another name" in check.remedy


@pytest.mark.parametrize("ask", [stream, lease_table])
def test_nobody_there(target: Target, closed: str, ask: Any) -> None:
    check = ask(replace(target, kinesis_endpoint=closed, dynamodb_endpoint=closed))
    assert check.level == "error"
    assert "Could not connect" in check.found
    assert "Mind the endpoint" in check.remedy


@pytest.mark.parametrize("ask", [stream, lease_table])
def test_somebody_who_does_not_answer(target: Target, ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks_aws, "_READ", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silence = f"http://127.0.0.1:{silent.getsockname()[1]}"
        check = ask(replace(target, kinesis_endpoint=silence, dynamodb_endpoint=silence))
    assert check.level == "error"
    assert "Read timeout" in check.found


class Refusal(BaseHTTPRequestHandler):
    """Answers every call with the server's `refusal`: a status and a text."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        status, text = self.server.refusal  # type: ignore[attr-defined]
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def refusing() -> Iterator[HTTPServer]:
    with HTTPServer(("127.0.0.1", 0), Refusal) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("ask", [stream, lease_table])
@pytest.mark.parametrize(
    ("status", "text", "remedy"),
    [
        (400, b'{"__type": "AccessDeniedException", "message": "User is not allowed"}', "Allow the credentials"),
        (400, b'{"__type": "UnrecognizedClientException", "message": "bad token"}', "access key"),
        (400, b'{"__type": "ExpiredTokenException", "message": "late"}', "Sign in"),
        (400, b'{"__type": "UnheardOf", "message": "what"}', "Mind the endpoint, the region and the credentials"),
        (200, b"hello", "something else than AWS"),
        (200, b"{}", "something else than AWS"),
    ],
)
def test_a_refusal_and_nonsense(target: Target, ask: Any, refusing: Any, status: int, text: bytes, remedy: str) -> None:
    refusing.refusal = (status, text)
    there = f"http://127.0.0.1:{refusing.server_port}"
    check = ask(replace(target, kinesis_endpoint=there, dynamodb_endpoint=there))
    assert check.level == "error"
    assert remedy in check.remedy
    assert "hush" not in str(check)


@pytest.mark.parametrize("ask", [stream, lease_table])
def test_no_region(target: Target, ask: Any) -> None:
    check = ask(replace(target, region=None))
    assert check.level == "error"
    assert "AWS_REGION" in check.remedy


@pytest.mark.parametrize("ask", [stream, lease_table])
def test_an_address_that_is_none(target: Target, ask: Any) -> None:
    assert ask(replace(target, kinesis_endpoint="localhost", dynamodb_endpoint="localhost")).level == "error"


@pytest.mark.parametrize("ask", [stream, lease_table])
def test_no_credentials(target: Target, ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.delenv(name)
    check = ask(target)
    assert check.level == "error"
    assert "AWS_PROFILE" in check.remedy


def test_credentials_are_said_to_be_there_and_not_shown() -> None:
    check = credentials()
    assert (check.level, check.found) == ("ok", "from env")


def test_missing_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.delenv(name)
    assert credentials().level == "error"


def test_a_profile_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "other")
    check = credentials()
    assert check.level == "error"
    assert "other" in check.found


@pytest.mark.parametrize(
    ("lines", "target"),
    [
        ("streamName=words\napplicationName=flights", Target("words", "flights")),
        ("streamName=words\napplicationName=flights\ntableName=leases", Target("words", "leases")),
        (
            "streamArn=arn:aws:kinesis:eu-west-1:123456789012:stream/words\nregionName=us-east-1\nstreamName=other",
            Target("words", "", "us-east-1", arn="arn:aws:kinesis:eu-west-1:123456789012:stream/words"),
        ),
        (
            "kinesisEndpoint=http://a:1\ndynamoDbClient.endpointOverride=http://b:2",
            Target("", "", None, "http://a:1", "http://b:2"),
        ),
    ],
)
def test_the_target_is_read_from_the_properties(lines: str, target: Target) -> None:
    assert target_of(lines) == target
