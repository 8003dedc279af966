"""What AWS must have before a worker is started: credentials, the stream, and room for a lease table.

It is asked as the daemon will be told to ask it: the same region, the same endpoints. Every call is made once, within
seconds, and whatever comes of it is a check; no secret is ever shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from kcl_spark.daemon.checks import Check
from kcl_spark.daemon.generate import ARN
from kcl_spark.daemon.properties import effective, parse

_CONNECT, _READ = 3, 5
"""Seconds. An endpoint in reach answers in milliseconds, and who asks a doctor is waiting."""

_LEASES: Final = 200
"""How many leases are counted; more than that are `at least` so many."""

_FINISHED: Final = "SHARD_END"

_NOT_AWS: Final = "Mind the endpoint: something else than AWS listens there"

_REMEDIES: Final[Mapping[str, str]] = {
    "AccessDeniedException": "Allow the credentials {action}",
    "ConnectionClosedError": _NOT_AWS,
    "ConnectTimeoutError": "Mind the endpoint, the region and the network",
    "CredentialRetrievalError": "Mind the profile that credentials come from",
    "EndpointConnectionError": "Mind the endpoint, the region and the network",
    "ExpiredTokenException": "Sign in again",
    "InvalidSignatureException": "Mind the secret key and the machine's clock",
    "KeyError": _NOT_AWS,
    "NoCredentialsError": "Set AWS_PROFILE, or the two AWS_… keys, or run where a role is given",
    "NoRegionError": "Name it with --region, AWS_REGION or regionName",
    "ReadTimeoutError": _NOT_AWS,
    "ResponseParserError": _NOT_AWS,
    "UnrecognizedClientException": "Mind the access key: the region does not know it",
}
"""By the error's code, or the name of its class."""


@dataclass(frozen=True)
class Target:
    """What a worker will read and keep its leases in.

    Attributes:
        stream: the stream's name.
        table: the lease table's name.
        region: None leaves it to the SDK.
        kinesis_endpoint: in place of the region's.
        dynamodb_endpoint: in place of the region's.
        arn: the stream's ARN where one was given; the daemon uses its name only, so it must be the very stream.
    """

    stream: str
    table: str
    region: str | None = None
    kinesis_endpoint: str | None = None
    dynamodb_endpoint: str | None = None
    arn: str | None = None


def target_of(text: str) -> Target:
    """What a properties text is about.

    Raises:
        UsageError: the text can't be read.
    """
    values = {key: entry.value for key, entry in effective(parse(text)).items()}
    arn = values.get("streamArn")
    match = ARN.fullmatch(arn or "")
    return Target(
        stream=match["name"] if match else values.get("streamName", ""),
        table=values.get("tableName") or values.get("applicationName", ""),
        region=values.get("regionName") or values.get("kinesisClient.region"),
        kinesis_endpoint=values.get("kinesisEndpoint") or values.get("kinesisClient.endpointOverride"),
        dynamodb_endpoint=values.get("dynamoDBEndpoint") or values.get("dynamoDbClient.endpointOverride"),
        arn=arn,
    )


def _attempt(name: str, action: str, ask: Callable[[], Check]) -> Check:
    """Ask, and turn whatever goes wrong into a check."""
    try:
        return ask()
    except Exception as error:
        code = _code(error)
        remedy = _REMEDIES.get(code, "Mind the endpoint, the region and the credentials")
        return Check(name, "error", f"{action} failed: {_first_line(error)}", remedy.format(action=action))


def _code(error: Exception) -> str:
    response: Any = getattr(error, "response", None) or {}
    return str(response.get("Error", {}).get("Code") or type(error).__name__)


def _first_line(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"the answer has no {error.args[0]}"
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__


def credentials() -> Check:
    """Whether credentials can be had; says where from, never what they are."""
    return _attempt("credentials", "finding credentials", _credentials)


def _credentials() -> Check:
    import boto3

    found = boto3.session.Session().get_credentials()
    if found is None:
        return Check("credentials", "error", "none on this machine", _REMEDIES["NoCredentialsError"])
    found.get_frozen_credentials()  # fetches what is refreshable
    return Check("credentials", "ok", f"from {found.method}")


def _client(service: str, target: Target, endpoint: str | None) -> Any:
    import boto3
    from botocore.config import Config

    config = Config(connect_timeout=_CONNECT, read_timeout=_READ, retries={"total_max_attempts": 1})
    session = boto3.session.Session(region_name=target.region)
    return session.client(service, endpoint_url=endpoint, config=config)


def stream(target: Target) -> Check:
    """Whether the stream is there and can be read. Blocks for one call."""
    return _attempt("stream", "kinesis:DescribeStreamSummary", lambda: _stream(target))


def _stream(target: Target) -> Check:
    client = _client("kinesis", target, target.kinesis_endpoint)
    try:
        summary = client.describe_stream_summary(StreamName=target.stream)["StreamDescriptionSummary"]
    except client.exceptions.ResourceNotFoundException:
        found = f"there is no stream {target.stream} in {client.meta.region_name}"
        return Check("stream", "error", found, "Create it, or mind region, account and endpoint")
    if target.arn and summary["StreamARN"] != target.arn:
        found = f"{summary['StreamARN']} would be read, and not {target.arn}"
        return Check("stream", "error", found, "Use credentials of the ARN's account, and its region")
    status, shards = summary["StreamStatus"], summary["OpenShardCount"]
    found = f"{target.stream} is {status}, {shards} open shards, kept for {summary['RetentionPeriodHours']} h"
    if status not in ("ACTIVE", "UPDATING"):
        return Check("stream", "warning", found, "Wait until it is ACTIVE")
    return Check("stream", "ok", found)


def lease_table(target: Target) -> Check:
    """Whether the lease table is there, whose leases it holds, or whether it will be made. Blocks for two calls."""
    return _attempt("leases", "dynamodb:DescribeTable and dynamodb:Scan", lambda: _lease_table(target))


def _lease_table(target: Target) -> Check:
    client = _client("dynamodb", target, target.dynamodb_endpoint)
    try:
        table = client.describe_table(TableName=target.table)["Table"]
    except client.exceptions.ResourceNotFoundException:
        return Check("leases", "ok", f"the table {target.table} will be created")
    if [key["AttributeName"] for key in table["KeySchema"]] != ["leaseKey"]:
        found = f"the table {target.table} is there and is no lease table"
        return Check("leases", "error", found, "Give the application another name")
    names = "leaseKey, leaseOwner, checkpoint"
    page = client.scan(TableName=target.table, Limit=_LEASES, ProjectionExpression=names)
    leases = [item for item in page["Items"] if "checkpoint" in item]
    level: Literal["ok", "warning"] = "ok" if table["TableStatus"] == "ACTIVE" else "warning"
    remedy = "" if level == "ok" else f"It is {table['TableStatus']}: wait until it is ACTIVE"
    return Check("leases", level, f"{target.table}: {_summary(leases, more='LastEvaluatedKey' in page)}", remedy)


def _summary(leases: list[dict[str, dict[str, str]]], *, more: bool) -> str:
    open_ = [lease for lease in leases if lease["checkpoint"].get("S") != _FINISHED]
    owners = Counter(lease["leaseOwner"]["S"] if "leaseOwner" in lease else "nobody" for lease in open_)
    parts = [f"{'at least ' if more else ''}{len(leases)} leases", f"{len(leases) - len(open_)} of finished shards"]
    parts += [f"{count} held by {owner}" for owner, count in sorted(owners.items())]
    return ", ".join(parts)
