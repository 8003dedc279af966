"""Write the daemon's properties so that a worker is safe, cheap and quick to stop, each line with its reason.

The daemon's own defaults are none of it: they start at LATEST, register a fan-out consumer, publish detailed metrics,
give children no time to end and never wake an idle shard. What is written here passes `lint` without a finding.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, NamedTuple

from kcl_spark.daemon.keys import RIVALS, spelled
from kcl_spark.daemon.properties import write
from kcl_spark.errors import UsageError

ARN: Final = re.compile(r"arn:aws[^:]*:kinesis:(?P<region>[-a-z0-9]+):(?P<account>\d{12}):stream/(?P<name>[^/]+)")
"""A stream's ARN, as the daemon checks it."""

MAX_RECORDS: Final = 10_000
"""The most that one GetRecords call returns; the daemon ends at a greater number."""

SHORTEST_TIMEOUT: Final = 15
"""Seconds. The engine tells a waiting daemon every 5 s that it is alive: three of those must be missed."""

ONE_MACHINE: Final[Mapping[str, str]] = {
    "disableWorkerMetrics": "true",
    "failoverTimeMillis": "2000",
    "leaseAssignmentIntervalMillis": "1000",
    "shardSyncIntervalMillis": "1000",
    "parentShardPollIntervalMillis": "1000",
    "idleTimeBetweenReadsInMillis": "250",
}
"""`extra` for emulators on one machine: no probe of EC2, and leases, reshards and records that are noticed at once."""

_POLLS: Final = "1000"
"""Milliseconds. A shard allows five reads a second to all who read it: one a second leaves room for four others, and
still takes the 2 MB/s that the shard gives."""


@dataclass(frozen=True, kw_only=True)
class DaemonOptions:
    """What the properties are written from.

    Attributes:
        application: names the lease table.
        stream: the stream's name, or its ARN, whose region is then taken.
        executable: the child's command in words.
        worker_id: owner of the leases; the same again after a restart, and of one worker only.
        region: None leaves it to the ARN and then to the AWS SDK.
        start: where shards without a checkpoint start; a moment needs a time zone.
        kinesis_endpoint: in place of the region's.
        dynamodb_endpoint: in place of the region's.
        shutdown_grace: seconds that the daemon gives its children to end.
        timeout: seconds of a child's silence after which the daemon's JVM halts; None waits for ever.
        max_records: Kinesis records a batch; None means 10,000.
        fan_out: enhanced fan-out, which is charged for, in place of polling.
        metrics_level: what the daemon publishes to CloudWatch, which is charged for.
        credentials_provider: class names of the AWS SDK v2, separated by commas.
        extra: properties that win over all of these.
    """

    application: str
    stream: str
    executable: tuple[str, ...]
    worker_id: str
    region: str | None = None
    start: Literal["trim_horizon", "latest"] | datetime = "trim_horizon"
    kinesis_endpoint: str | None = None
    dynamodb_endpoint: str | None = None
    shutdown_grace: float = 30.0
    timeout: int | None = None
    max_records: int | None = None
    fan_out: bool = False
    metrics_level: Literal["NONE", "SUMMARY", "DETAILED"] = "NONE"
    credentials_provider: str = "DefaultCredentialsProvider"
    extra: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _refuse_words(self.executable)
        _refuse_stream(self.stream, self.region)
        _refuse_numbers(self)
        if isinstance(self.start, datetime) and self.start.tzinfo is None:
            raise UsageError(f"the start {self.start} has no time zone", "Write it as 2025-01-31T00:00:00Z")
        if self.fan_out and self.max_records is not None:
            raise UsageError("max_records is a setting of polling, and fan-out is asked for", "Give one of the two")


def _refuse_words(words: tuple[str, ...]) -> None:
    if not words or not words[0]:
        raise UsageError("the child's command is empty", "Name a program")
    for word in words:
        if not word or any(letter.isspace() for letter in word):
            raise UsageError(
                f"the child's command has the word {word!r}, and the daemon cuts commands at blanks, without quotes",
                "Move the file to a path without blanks",
            )


def _refuse_stream(stream: str, region: str | None) -> None:
    if not stream.startswith("arn:"):
        return
    match = ARN.fullmatch(stream)
    if match is None:
        raise UsageError(f"{stream} is no stream's ARN", "Write arn:aws:kinesis:REGION:ACCOUNT:stream/NAME")
    if region not in (None, match["region"]):
        raise UsageError(f"the stream's ARN is of {match['region']}, not of {region}", "Name one region")


def _refuse_numbers(options: DaemonOptions) -> None:
    if options.shutdown_grace <= 0:
        raise UsageError(
            f"a grace of {options.shutdown_grace:g} s ends the children without a word", "Give 30 s or more"
        )
    if options.timeout is not None and options.timeout < SHORTEST_TIMEOUT:
        raise UsageError(
            f"a timeout of {options.timeout} s halts the daemon while a child is at work",
            f"Give {SHORTEST_TIMEOUT} s or more, or none",
        )
    if options.max_records is not None and not 1 <= options.max_records <= MAX_RECORDS:
        raise UsageError(f"max_records is {options.max_records}", f"Give a number from 1 to {MAX_RECORDS}")


class _Setting(NamedTuple):
    key: str
    value: str
    why: str


def generate(options: DaemonOptions, *, exactly_once: bool = True) -> str:
    """The properties file's text.

    Args:
        options: what to write.
        exactly_once: refuse a start that can skip records.

    Raises:
        UsageError: `start` is "latest" and `exactly_once`.
    """
    if options.start == "latest" and exactly_once:
        raise UsageError(
            "a worker that starts at LATEST and fails before its first checkpoint starts at a later LATEST and skips",
            "Start at trim_horizon, or at a moment",
        )
    extra = {spelled(key): value for key, value in options.extra.items()}
    replaced = {*extra, *(rival for pair in RIVALS for rival in pair if set(pair) & set(extra))}
    lines = ["# Written by kcl-spark. To run with your own, copy this file and name it with --properties."]
    for setting in _settings(options):
        if setting.key not in replaced:
            lines += ["", f"# {setting.why}", write(setting.key, setting.value)]
    if extra:
        lines += ["", "# Asked for; wins over what stands here without."]
        lines += [write(key, value) for key, value in extra.items()]
    return "\n".join(lines) + "\n"


def _settings(options: DaemonOptions) -> Iterator[_Setting]:
    yield from _who_and_where(options)
    yield _start(options.start)
    yield from _reading(options)
    yield from _conversation(options)
    yield _Setting(
        "metricsLevel",
        options.metrics_level,
        "The daemon's default, DETAILED, publishes metrics for each shard, and CloudWatch charges for them.",
    )


def _who_and_where(options: DaemonOptions) -> Iterator[_Setting]:
    match = ARN.fullmatch(options.stream)
    region = options.region or (match["region"] if match else None)
    yield _Setting("applicationName", options.application, "Names the lease table in DynamoDB.")
    # Not streamArn: of an ARN the daemon takes the name alone, so writing one would promise too much.
    yield _Setting("streamName", match["name"] if match else options.stream, "The stream, of the credentials' account.")
    yield _Setting("executableName", " ".join(options.executable), "Started once for each shard; cut at blanks.")
    yield _Setting(
        "workerId", options.worker_id, "Fixed, so that a restarted worker has its leases back at once; never shared."
    )
    yield _Setting("AwsCredentialsProvider", options.credentials_provider, "Classes of the AWS SDK v2, in this order.")
    if region:
        yield _Setting("regionName", region, "Of Kinesis, DynamoDB and CloudWatch.")
    if options.kinesis_endpoint:
        yield _Setting("kinesisEndpoint", options.kinesis_endpoint, "In place of the region's; must speak HTTP/2.")
    if options.dynamodb_endpoint:
        yield _Setting("dynamoDBEndpoint", options.dynamodb_endpoint, "In place of the region's.")


def _start(start: str | datetime) -> _Setting:
    if isinstance(start, datetime):
        # Down to the second: a start that is too early repeats records, which are dropped; one too late skips some.
        seconds = math.floor(start.timestamp())
        why = f"{start.isoformat()} in seconds since 1970: where a shard without a checkpoint starts."
        return _Setting("initialPositionInStreamExtended", str(seconds), why)
    why = "Where a shard without a checkpoint starts. The daemon's default, LATEST, can skip records."
    return _Setting("initialPositionInStream", start.upper(), why)


def _reading(options: DaemonOptions) -> Iterator[_Setting]:
    if options.fan_out:
        yield _Setting("retrievalMode", "FANOUT", "Registers a consumer of its own; charged by the hour and the byte.")
        return
    yield _Setting("retrievalMode", "POLLING", "The daemon's default is enhanced fan-out, which costs extra.")
    yield _Setting(
        "idleTimeBetweenReadsInMillis", _POLLS, "A shard allows five reads a second to all who read it; one is ours."
    )
    if options.max_records is not None:
        yield _Setting(
            "maxRecords", str(options.max_records), "Bounds the daemon's memory; aggregates count as one record."
        )


def _conversation(options: DaemonOptions) -> Iterator[_Setting]:
    yield _Setting(
        "callProcessRecordsEvenForEmptyRecordList",
        "true",
        "Empty batches are the only moments in which an idle shard can checkpoint what was written since.",
    )
    yield _Setting(
        "shutdownGraceMillis",
        str(math.ceil(options.shutdown_grace * 1000)),
        "Time to write and checkpoint what is read, on SIGTERM. The daemon's default is none.",
    )
    if options.timeout is not None:
        yield _Setting(
            "timeoutInSeconds",
            str(options.timeout),
            "Longest silence of a child before the JVM halts, with all shards.",
        )
