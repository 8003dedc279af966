"""Is what the daemon reads safe and cheap? Settings that end it, skip records, waste its grace or cost money."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from kcl_spark.daemon import keys
from kcl_spark.daemon.generate import ARN, MAX_RECORDS, SHORTEST_TIMEOUT
from kcl_spark.daemon.keys import Kind
from kcl_spark.daemon.properties import BLANKS
from kcl_spark.daemon.rule import Hit, Rule, Settings
from kcl_spark.daemon.values import holds_access_key, is_secret, is_true, number

_LATEST_SECOND: Final = 10**11
"""Seconds since 1970 come to this in the year 5138; milliseconds came to it in 1973."""

_TABLE_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{3,255}")
_BESIDE: Final = "-WorkerMetricStats"
"""The longest ending that the daemon gives to the tables that it names after the application."""

_SDK_1: Final = {
    "DefaultAWSCredentialsProviderChain": "DefaultCredentialsProvider",
    "EC2ContainerCredentialsProviderWrapper": "ContainerCredentialsProvider",
    "PropertiesFileCredentialsProvider": "ProfileCredentialsProvider",
    "ClasspathPropertiesFileCredentialsProvider": "ProfileCredentialsProvider",
    "STSAssumeRoleSessionCredentialsProvider": "StsAssumeRoleCredentialsProvider",
    "SystemPropertiesCredentialsProvider": "SystemPropertyCredentialsProvider",
    "WebIdentityTokenCredentialsProvider": "WebIdentityTokenFileCredentialsProvider",
}
"""Class names of the AWS SDK v1 that are gone in v2, and what to write now."""

SDK_2: Final = (
    "DefaultCredentialsProvider",
    "EnvironmentVariableCredentialsProvider",
    "SystemPropertyCredentialsProvider",
    "ProfileCredentialsProvider",
    "ContainerCredentialsProvider",
    "InstanceProfileCredentialsProvider",
    "WebIdentityTokenFileCredentialsProvider",
    "AnonymousCredentialsProvider",
    "StsAssumeRoleCredentialsProvider",
    "KclStsAssumeRoleCredentialsProvider",
)
"""Short class names that the daemon finds and can make. A name with dots is somebody's own class."""


_ROLES: Final = ("StsAssumeRoleCredentialsProvider", "KclStsAssumeRoleCredentialsProvider")
"""Providers that ask the STS service themselves."""


def _missing(settings: Settings) -> Iterator[Hit]:
    for name in keys.REQUIRED:
        if not (settings.value(name) or "").strip():
            yield Hit(
                settings.line(name), name, f"{name} is missing, without which nothing starts", f"Write {name} = …"
            )
    if not any((settings.value(name) or "").strip() for name in ("streamName", "streamArn")):
        message = "streamName is missing, without which nothing starts"
        yield Hit(settings.line("streamName"), "streamName", message, "Write streamName = …")


def _bad_arn(settings: Settings) -> Iterator[Hit]:
    value = (settings.value("streamArn") or "").strip(BLANKS)
    if value and not ARN.fullmatch(value):
        message = f"{value!r} is no stream's ARN, and the start ends there"
        yield Hit(settings.line("streamArn"), "streamArn", message, "Write arn:aws:kinesis:REGION:ACCOUNT:stream/NAME")


def _two_streams(settings: Settings) -> Iterator[Hit]:
    if settings.value("streamArn") and settings.value("streamName"):
        message = "both streamName and streamArn are set: the ARN wins"
        yield Hit(settings.line("streamName"), "streamName", message, "Keep streamName")


def _arn_name_only(settings: Settings) -> Iterator[Hit]:
    match = ARN.fullmatch((settings.value("streamArn") or "").strip(BLANKS))
    if match:
        message = "of streamArn only the name is used: account and region are those of the credentials and regionName"
        remedy = f"Write streamName = {match['name']} and regionName = {match['region']}"
        yield Hit(settings.line("streamArn"), "streamArn", message, remedy)


def _table_name(settings: Settings) -> Iterator[Hit]:
    application = (settings.value("applicationName") or "").strip(BLANKS)
    lease_table = (settings.value("tableName") or application).strip(BLANKS)
    for name, table in (("applicationName", f"{application}{_BESIDE}"), ("tableName", lease_table)):
        source = name if name in settings.counting else "applicationName"
        if application and not _TABLE_NAME.fullmatch(table):
            message = f"{source} gives the table name {table!r}, which DynamoDB refuses"
            yield Hit(settings.line(source), source, message, "Use letters, digits, _ . and -, 3 to 237 of them")
            return


def _start_latest(settings: Settings) -> Iterator[Hit]:
    name = "initialPositionInStream"
    position = settings.value(name)
    elsewhere = position is None and settings.value("initialPositionInStreamExtended") is not None
    if settings.exactly_once and not elsewhere and (position or "LATEST").strip(BLANKS).upper() == "LATEST":
        how = "is LATEST" if position else "is not set, which is LATEST"
        message = f"{name} {how}: a worker that fails before its first checkpoint starts at a later LATEST and skips"
        yield Hit(settings.line(name), name, message, f"Write {name} = TRIM_HORIZON")


def _start_in_milliseconds(settings: Settings) -> Iterator[Hit]:
    name = "initialPositionInStreamExtended"
    value = (settings.value(name) or "").strip(BLANKS)
    moment = number(Kind.EPOCH_SECONDS, value)
    if moment is not None and moment > _LATEST_SECOND:
        message = f"{name} is in seconds: {value} lies thousands of years ahead"
        yield Hit(settings.line(name), name, message, "Divide it by 1000")


def _fan_out(settings: Settings) -> Iterator[Hit]:
    name = "retrievalMode"
    mode = settings.value(name)
    polls = any(_counts(settings, polling) for polling in keys.POLLING)
    if (mode or "DEFAULT").strip(BLANKS).upper() == "DEFAULT" and not polls:
        how = "is DEFAULT" if mode else "is not set"
        message = f"{name} {how}: the daemon registers a fan-out consumer, charged by the hour and the byte"
        yield Hit(settings.line(name), name, message, f"Write {name} = POLLING, or FANOUT if that is meant")


def _counts(settings: Settings, name: str) -> bool:
    key = keys.find(name)
    return name in settings.counting and key is not None and (key.boxed or settings.number(name) != 0)


def _too_many_records(settings: Settings) -> Iterator[Hit]:
    found = settings.number("maxRecords")
    if found > MAX_RECORDS:
        message = f"maxRecords is {found}, and the start ends at more than {MAX_RECORDS}"
        yield Hit(settings.line("maxRecords"), "maxRecords", message, f"Write {MAX_RECORDS} or less")


def _idle_too_short(settings: Settings) -> Iterator[Hit]:
    name = "idleTimeBetweenReadsInMillis"
    found = settings.number(name)
    if 0 < found < 200:
        message = f"{name} is {found}: the daemon takes 200, the pace of the five reads a second that a shard allows"
        yield Hit(settings.line(name), name, message, "Write 200 or more")


def _no_grace(settings: Settings) -> Iterator[Hit]:
    name = "shutdownGraceMillis"
    if settings.number(name) == 0:
        message = f"{name} is 0 or not set: on SIGTERM children get no word, and what they have read is read again"
        yield Hit(settings.line(name), name, message, f"Write {name} = 30000")


def _no_empty_batches(settings: Settings) -> Iterator[Hit]:
    name = "callProcessRecordsEvenForEmptyRecordList"
    if not is_true((settings.value(name) or "").strip(BLANKS)):
        message = f"{name} is not true: an idle shard has no moment to checkpoint what was written since its last batch"
        yield Hit(settings.line(name), name, message, f"Write {name} = true")


def _timeout(settings: Settings, least: int, most: int, effect: str) -> Iterator[Hit]:
    name = "timeoutInSeconds"
    found = number(Kind.INT, settings.value(name) or "")
    if found is not None and least <= found < most:
        message = f"{name} is {found}: {effect}"
        yield Hit(settings.line(name), name, message, f"Write {SHORTEST_TIMEOUT} or more, or remove the line")


def _timeout_zero(settings: Settings) -> Iterator[Hit]:
    yield from _timeout(settings, 0, 1, "the JVM halts at the first message to a child")


def _timeout_short(settings: Settings) -> Iterator[Hit]:
    yield from _timeout(settings, 1, SHORTEST_TIMEOUT, "the JVM halts, with every shard, while a child is at work")


def _threads(settings: Settings, least: int, most: int, effect: str) -> Iterator[Hit]:
    name = "maxActiveThreads"
    found = settings.number(name)
    if least <= found < most:
        message = f"{name} is {found}: {effect}"
        yield Hit(settings.line(name), name, message, "Remove the line")


def _threads_dead_lock(settings: Settings) -> Iterator[Hit]:
    yield from _threads(settings, 1, 4, "a single shard takes four threads, so the daemon dead-locks at once")


def _threads_few(settings: Settings) -> Iterator[Hit]:
    shards = (int(settings.number("maxActiveThreads")) - 1) // 3
    yield from _threads(settings, 4, 1 << 31, f"the daemon dead-locks with more than {shards} shards")


def _random_worker(settings: Settings) -> Iterator[Hit]:
    if not settings.value("workerId") and not settings.value("workerIdentifier"):
        message = "workerId is not set: after a restart the leases wait for failoverTimeMillis to be free"
        yield Hit(0, "workerId", message, "Write workerId = a name that no other worker has")


def _metrics(settings: Settings) -> Iterator[Hit]:
    level = settings.value("metricsLevel")
    if (level or "DETAILED").strip(BLANKS).upper() == "DETAILED":
        how = "is DETAILED" if level else "is not set, which is DETAILED"
        message = f"metricsLevel {how}: CloudWatch charges for metrics of every shard"
        yield Hit(settings.line("metricsLevel"), "metricsLevel", message, "Write metricsLevel = NONE, or SUMMARY")


def _words(settings: Settings) -> list[str]:
    return (settings.value("executableName") or "").strip(BLANKS).split()


def _executable(settings: Settings, message: str, remedy: str) -> Hit:
    return Hit(settings.line("executableName"), "executableName", message, remedy)


def _quotes(settings: Settings) -> Iterator[Hit]:
    if any(quote in word for word in _words(settings) for quote in "\"'"):
        message = "executableName has quotes: they are handed on as letters, and words are cut at blanks all the same"
        yield _executable(settings, message, "Remove them, and move files to paths without blanks")


def _unexpanded(settings: Settings) -> Iterator[Hit]:
    for word in _words(settings):
        if word.startswith("~") or re.search(r"\$[\w{(]", word):
            message = f"executableName has {word!r}: there is no shell to expand it"
            yield _executable(settings, message, "Write the path in full")


def _script(settings: Settings) -> Iterator[Hit]:
    words = _words(settings)
    if words and words[0].endswith(".py"):
        message = f"executableName begins with {words[0]}, which must be executable and begin with #!"
        yield _executable(settings, message, "Write the interpreter before it, or kcl-spark child")


def _relative(settings: Settings) -> Iterator[Hit]:
    words = _words(settings)
    if words and "/" in words[0] and words[0][0] not in "/~$\"'":
        message = f"{words[0]} is looked up from the folder that the daemon was started in"
        yield _executable(settings, message, "Write the path in full, or a program's name on PATH")


def _providers(settings: Settings) -> Iterator[tuple[str, str]]:
    for key, entry in settings.known():
        if key.kind is Kind.CREDENTIALS:
            for part in entry.value.split(","):
                name = part.strip().partition("|")[0]
                if name:
                    yield key.name, name


def _of_sdk_1(name: str) -> bool:
    return name in _SDK_1 or name.startswith("com.amazonaws.") or "AWSCredentials" in name


def _credentials_of_sdk_1(settings: Settings) -> Iterator[Hit]:
    for key, name in _providers(settings):
        if _of_sdk_1(name):
            message = f"{name} is of the AWS SDK v1 and is passed over; if no other is left the start ends"
            instead = _SDK_1.get(name.rpartition(".")[2], "DefaultCredentialsProvider")
            yield Hit(settings.line(key), key, message, f"Write {instead}")


def _unknown_credentials(settings: Settings) -> Iterator[Hit]:
    for key, name in _providers(settings):
        if "." not in name and name not in SDK_2 and not _of_sdk_1(name):
            message = f"{name} is no provider that the daemon can make: it is passed over, or ends the start"
            yield Hit(settings.line(key), key, message, f"Write one of {', '.join(SDK_2[:6])}")


def _role_without_region(settings: Settings) -> Iterator[Hit]:
    for key, entry in settings.known():
        if key.kind is Kind.CREDENTIALS:
            for part in entry.value.split(","):
                if part.strip().startswith(_ROLES) and "|endpoint" not in part:
                    message = (
                        "a role is asked for where AWS_REGION says, not regionName; without AWS_REGION the start ends"
                    )
                    yield Hit(entry.line, entry.key, message, "Write |endpointRegion=REGION after the session's name")


def _in_the_clear(settings: Settings) -> Iterator[Hit]:
    for name in keys.ENDPOINTS:
        url = urlsplit((settings.value(name) or "").strip(BLANKS))
        if url.scheme == "http" and not _is_loopback(url.hostname or ""):
            message = f"{name} is http:// to another machine: records travel in the clear"
            yield Hit(settings.line(name), name, message, "Write https://")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _secret(settings: Settings) -> Iterator[Hit]:
    remedy = "Put credentials in the environment or a profile"
    for entry in settings.entries:
        if is_secret(entry.key, entry.value) and not holds_access_key(entry.value):
            yield Hit(entry.line, entry.key, f"{entry.key} looks like a secret, and the daemon logs every line", remedy)
    for line, text in enumerate(re.split(r"\r\n|\r|\n", settings.text), 1):
        if holds_access_key(text):
            yield Hit(line, "", "an AWS access key stands in the file, and the daemon logs every line", remedy)


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "missing",
        "error",
        "`executableName`, `applicationName`, `AwsCredentialsProvider` and a stream must be there",
        _missing,
    ),
    Rule("bad-arn", "error", "a `streamArn` of another form ends the start", _bad_arn),
    Rule("two-streams", "warning", "of `streamName` and `streamArn` the ARN wins", _two_streams),
    Rule("arn-name-only", "warning", "account and region of `streamArn` are ignored", _arn_name_only),
    Rule("table-name", "error", "names that DynamoDB refuses for a table", _table_name),
    Rule("start-latest", "error", "`initialPositionInStream` unset or LATEST can skip records", _start_latest),
    Rule("start-in-milliseconds", "error", "`initialPositionInStreamExtended` is in seconds", _start_in_milliseconds),
    Rule("fan-out", "warning", "`retrievalMode` unset or DEFAULT is enhanced fan-out, which is charged for", _fan_out),
    Rule("too-many-records", "error", "`maxRecords` above 10000 ends the start", _too_many_records),
    Rule("idle-too-short", "warning", "`idleTimeBetweenReadsInMillis` below 200 is 200", _idle_too_short),
    Rule("no-grace", "warning", "`shutdownGraceMillis` unset or 0 ends children without a word", _no_grace),
    Rule("no-empty-batches", "warning", "without empty batches an idle shard can't checkpoint", _no_empty_batches),
    Rule("timeout-zero", "error", "`timeoutInSeconds = 0` halts the daemon at the first message", _timeout_zero),
    Rule(
        "timeout-short", "warning", "`timeoutInSeconds` below 15 halts the daemon while children work", _timeout_short
    ),
    Rule("threads-dead-lock", "error", "`maxActiveThreads` below 4 dead-locks the daemon", _threads_dead_lock),
    Rule("threads-few", "warning", "`maxActiveThreads` dead-locks below 1 + 3 for each shard", _threads_few),
    Rule("random-worker", "warning", "without `workerId` a restart waits for its own leases", _random_worker),
    Rule("metrics-detailed", "warning", "`metricsLevel` unset or DETAILED is charged for", _metrics),
    Rule("executable-quotes", "error", "quotes in `executableName` are letters", _quotes),
    Rule("executable-unexpanded", "error", "`~` and `$NAME` in `executableName` are not expanded", _unexpanded),
    Rule("executable-script", "warning", "a `.py` file without interpreter needs `#!` and its x bit", _script),
    Rule("executable-relative", "warning", "a relative program is looked up from the daemon's folder", _relative),
    Rule(
        "credentials-of-sdk-1",
        "error",
        "credentials providers of the AWS SDK v1 are passed over",
        _credentials_of_sdk_1,
    ),
    Rule("unknown-credentials", "error", "credentials providers that the daemon can't make", _unknown_credentials),
    Rule(
        "role-without-region", "warning", "a role is assumed in `AWS_REGION`, not in `regionName`", _role_without_region
    ),
    Rule("in-the-clear", "warning", "`http://` to another machine", _in_the_clear),
    Rule("secret", "warning", "credentials in the file, which the daemon logs", _secret),
)
