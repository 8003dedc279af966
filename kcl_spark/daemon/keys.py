"""Every property that the MultiLangDaemon accepts, once, with what its Java does to the value.

The daemon sets each property on a Java bean and ignores keys that the bean does not have, so this table is the only
place where a misspelt key can be noticed. A test holds it against the beans of the daemon's own jar, both ways.

What the kinds hide, each tried on the daemon 3.1.3:

* A number of a primitive field that can't be read becomes 0, and 0 is never passed on: it means "the default".
* A number or boolean of a *boxed* field that can't be read becomes 0 or false, and that is passed on.
* `maxActiveThreads` and `initialPositionInStreamExtended` have parsers of their own, which end the start instead.
* Blanks at the end of a value are cut from numbers, lists and durations, and belong to everything else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

TESTED_VERSION: Final = "3.1.3"
"""The daemon that everything here was tried on, and that bin/fetch-daemon gets unless told otherwise."""


class Kind(Enum):
    """How the daemon reads a value."""

    TEXT = auto()
    INT = auto()
    LONG = auto()
    DOUBLE = auto()
    BOOLEAN = auto()
    ENUM = auto()
    LIST = auto()
    URI = auto()
    REGION = auto()
    DURATION = auto()
    TAGS = auto()
    CREDENTIALS = auto()
    STRICT_INT = auto()  # ends the start where it can't be read
    EPOCH_SECONDS = auto()  # ends the start where it can't be read
    NEVER = auto()  # any value ends the start


@dataclass(frozen=True, slots=True)
class Key:
    """One property.

    Attributes:
        name: as it must be written.
        kind: how the value is read.
        default: what holds without it, in words.
        note: what it does, and what is not obvious about it.
        values: those of an ENUM, in any case.
        since: the first multilang version that knows it.
        boxed: whether 0, false and what can't be read are passed on as values.
        zero: what 0 means where that is neither the default nor a mistake.
        later: one more value of an ENUM, and the first version that knows it.
    """

    name: str
    kind: Kind
    default: str
    note: str
    values: tuple[str, ...] = ()
    since: str = "2.1.0"
    boxed: bool = False
    zero: str = ""
    later: tuple[str, str] | None = None

    def values_of(self, version: str) -> tuple[str, ...]:
        """The values that a daemon of that version takes for a choice."""
        known = self.later and version_order(self.later[1]) <= version_order(version)
        return (*self.values, self.later[0]) if self.later and known else self.values


_V30: Final = "3.0.0"
_V35: Final = "3.5.0"


def _table(name: str, default: str) -> tuple[Key, ...]:
    billing = ("PROVISIONED", "PAY_PER_REQUEST")
    return (
        Key(f"{name}TableName", Kind.TEXT, default, "", since=_V30),
        Key(f"{name}BillingMode", Kind.ENUM, "PAY_PER_REQUEST", "", billing, since=_V30),
        Key(f"{name}ReadCapacity", Kind.LONG, "none", "of a provisioned table only", since=_V30),
        Key(f"{name}WriteCapacity", Kind.LONG, "none", "of a provisioned table only", since=_V30),
        Key(f"{name}PointInTimeRecoveryEnabled", Kind.BOOLEAN, "false", "", since=_V30, boxed=True),
        Key(f"{name}DeletionProtectionEnabled", Kind.BOOLEAN, "false", "", since=_V30, boxed=True),
        Key(f"{name}Tags", Kind.TAGS, "none", "name=value, separated by commas", since=_V30),
    )


KEYS: Final[tuple[Key, ...]] = (
    # What must be there.
    Key("executableName", Kind.TEXT, "required", "the child's command, cut at blanks: no shell, quotes or escapes"),
    Key("applicationName", Kind.TEXT, "required", "names the lease table, the fan-out consumer and the metrics"),
    Key("streamName", Kind.TEXT, "required, or streamArn", "the stream"),
    Key("streamArn", Kind.TEXT, "none", "wins over streamName, but only its name part is used", since="2.5.1"),
    Key("AwsCredentialsProvider", Kind.CREDENTIALS, "required", "classes of the AWS SDK v2, tried in this order"),
    # Who and where.
    Key("workerId", Kind.TEXT, "a random UUID", "owner of the leases: a fixed one gets them back at once"),
    Key("workerIdentifier", Kind.TEXT, "a random UUID", "the same as workerId"),
    Key("tableName", Kind.TEXT, "applicationName", "the lease table"),
    Key("regionName", Kind.REGION, "the SDK's default", "of Kinesis, DynamoDB and CloudWatch together"),
    Key("kinesisEndpoint", Kind.URI, "the region's", "must speak HTTP/2, in the clear for http://"),
    Key("dynamoDBEndpoint", Kind.URI, "the region's", ""),
    Key(
        "AwsCredentialsProviderDynamoDB",
        Kind.CREDENTIALS,
        "AwsCredentialsProvider",
        "credentials for the lease table, where they differ",
    ),
    Key(
        "AwsCredentialsProviderCloudWatch",
        Kind.CREDENTIALS,
        "AwsCredentialsProvider",
        "credentials for the metrics, where they differ",
    ),
    Key("processingLanguage", Kind.TEXT, "none", "only logged"),
    # Where a shard without a lease starts.
    Key(
        "initialPositionInStream",
        Kind.ENUM,
        "LATEST",
        "where a shard without a checkpoint starts",
        ("TRIM_HORIZON", "LATEST"),
    ),
    Key(
        "initialPositionInStreamExtended",
        Kind.EPOCH_SECONDS,
        "none",
        "a moment in seconds since 1970 to start at, in place of initialPositionInStream",
    ),
    # How records are got.
    Key(
        "retrievalMode",
        Kind.ENUM,
        "DEFAULT",
        "DEFAULT is enhanced fan-out unless a polling property is set",
        ("DEFAULT", "FANOUT", "POLLING"),
    ),
    Key("maxRecords", Kind.INT, "10000", "Kinesis records a call; more than 10000 ends the start"),
    Key("idleTimeBetweenReadsInMillis", Kind.LONG, "1500", "pause between two reads of a shard; at least 200"),
    Key(
        "millisBehindLatestThresholdForReducedTps",
        Kind.LONG,
        "off",
        "reads are paced only while the shard is less than this behind",
        since="3.1.1",
        zero="off",
    ),
    Key("retryGetRecordsInSeconds", Kind.INT, "none", "time limit of a read before it is tried again", boxed=True),
    Key("maxGetRecordsThreadPool", Kind.INT, "none", "threads that read in parallel", boxed=True),
    Key("fanoutConfig.consumerArn", Kind.TEXT, "none", "a consumer that is registered already"),
    Key("fanoutConfig.consumerName", Kind.TEXT, "applicationName", "the consumer to register"),
    Key("fanoutConfig.maxDescribeStreamSummaryRetries", Kind.INT, "10", ""),
    Key("fanoutConfig.maxDescribeStreamConsumerRetries", Kind.INT, "10", ""),
    Key("fanoutConfig.registerStreamConsumerRetries", Kind.INT, "10", ""),
    Key("fanoutConfig.retryBackoffMillis", Kind.LONG, "1000", ""),
    # The conversation with the child.
    Key(
        "callProcessRecordsEvenForEmptyRecordList",
        Kind.BOOLEAN,
        "false",
        "empty batches are the tick in which an idle shard can checkpoint",
    ),
    Key(
        "timeoutInSeconds",
        Kind.INT,
        "none",
        "longest silence of a child in a reply before the JVM halts, with every shard",
        boxed=True,
    ),
    Key(
        "shutdownGraceMillis",
        Kind.LONG,
        "0",
        "how long an ending daemon waits for its children; 0 asks them nothing",
    ),
    Key(
        "maxActiveThreads",
        Kind.STRICT_INT,
        "0",
        "a fixed pool dead-locks below 1 + 3 a shard",
        zero="as many threads as needed",
    ),
    Key(
        "logWarningForTaskAfterMillis", Kind.LONG, "none", "logs a batch that takes longer, again and again", boxed=True
    ),
    Key("taskBackoffTimeMillis", Kind.LONG, "500", "pause before a failed step is tried again"),
    Key("validateSequenceNumberBeforeCheckpointing", Kind.BOOLEAN, "false", "read and used by nothing"),
    # Leases.
    Key("failoverTimeMillis", Kind.LONG, "10000", "a lease not renewed for this long is free for others"),
    Key("leaseAssignmentIntervalMillis", Kind.LONG, "2 x failoverTimeMillis", "", since="3.1.1"),
    Key("shardSyncIntervalMillis", Kind.LONG, "60000", "between two looks for new shards"),
    Key("parentShardPollIntervalMillis", Kind.LONG, "10000", "between two looks whether a parent is finished"),
    Key("maxLeasesForWorker", Kind.INT, "no limit", "the most shards, and children, of this worker"),
    Key("maxLeasesToStealAtOneTime", Kind.INT, "1", "used by the lease assignment of 2.x only"),
    Key(
        "enablePriorityLeaseAssignment",
        Kind.BOOLEAN,
        "true",
        "used by the lease assignment of 2.x only",
        since="2.6.0",
        boxed=True,
    ),
    Key("maxLeaseRenewalThreads", Kind.INT, "20", ""),
    Key("leaseTableScanTotalSegments", Kind.INT, "0", "", since=_V35, zero="chosen by the table's size"),
    Key("initialLeaseTableReadCapacity", Kind.INT, "10", "of a provisioned table only"),
    Key("initialLeaseTableWriteCapacity", Kind.INT, "10", "of a provisioned table only"),
    Key("leaseTableDeletionProtectionEnabled", Kind.BOOLEAN, "false", "", since="2.6.1", boxed=True),
    Key("leaseTablePitrEnabled", Kind.BOOLEAN, "false", "point-in-time recovery", since="2.6.1", boxed=True),
    Key("listShardsBackoffTimeInMillis", Kind.LONG, "1500", ""),
    Key("maxListShardsRetryAttempts", Kind.INT, "50", ""),
    Key("cleanupLeasesUponShardCompletion", Kind.BOOLEAN, "true", "false changes nothing"),
    Key("ignoreUnexpectedChildShards", Kind.BOOLEAN, "false", ""),
    Key("skipShardSyncAtWorkerInitializationIfLeasesExist", Kind.BOOLEAN, "false", ""),
    Key("schedulerInitializationBackoffTimeMillis", Kind.LONG, "1000", "between 20 attempts", since="2.2.8"),
    Key("shardPrioritization", Kind.NEVER, "none", "a Java object, which no text can give"),
    Key(
        "clientVersionConfig",
        Kind.ENUM,
        "CLIENT_VERSION_CONFIG_3X",
        "which lease assignment is used; the others are steps of a move from 2.x",
        ("CLIENT_VERSION_CONFIG_3X", "CLIENT_VERSION_CONFIG_COMPATIBLE_WITH_2X"),
        since=_V30,
        later=("CLIENT_VERSION_CONFIG_COMPATIBLE_WITH_2X_PHASE1", _V35),
    ),
    Key("isGracefulLeaseHandoffEnabled", Kind.BOOLEAN, "true", "", since=_V30, boxed=True),
    Key(
        "gracefulLeaseHandoffTimeoutMillis",
        Kind.LONG,
        "30000",
        "from the wish for a lease until it is taken by force, the running batch included",
        since=_V30,
        boxed=True,
    ),
    Key("migrateAllEntitiesToLeaseTable", Kind.BOOLEAN, "false", "one table in place of three", since=_V35),
    Key("tableMigrationCompleteBakeTimeSeconds", Kind.LONG, "86400", "", since=_V35),
    # Metrics.
    Key(
        "metricsLevel",
        Kind.ENUM,
        "DETAILED",
        "what goes to CloudWatch, which charges for it",
        ("NONE", "SUMMARY", "DETAILED"),
    ),
    Key("metricsBufferTimeMillis", Kind.LONG, "10000", ""),
    Key("metricsMaxQueueSize", Kind.INT, "10000", ""),
    Key("metricsEnabledDimensions", Kind.LIST, "all", ""),
    # The tables beside the lease table; 3.5 can do without them.
    *_table("coordinatorState", "<applicationName>-CoordinatorState"),
    *_table("workerMetrics", "<applicationName>-WorkerMetricStats"),
    # Balancing by load.
    Key(
        "disableWorkerMetrics",
        Kind.BOOLEAN,
        "false",
        "true outside EC2 and ECS saves the probe",
        since=_V30,
        boxed=True,
    ),
    Key("inMemoryWorkerMetricsCaptureFrequencyMillis", Kind.LONG, "1000", "", since=_V30),
    Key("workerMetricsReporterFreqInMillis", Kind.LONG, "30000", "", since=_V30),
    Key("noOfPersistedMetricsPerWorkerMetrics", Kind.INT, "10", "", since=_V30),
    Key("maxThroughputPerHostKBps", Kind.DOUBLE, "no limit", "", since=_V30),
    Key("dampeningPercentage", Kind.INT, "60", "", since=_V30),
    Key("reBalanceThresholdPercentage", Kind.INT, "10", "", since=_V30),
    Key("allowThroughputOvershoot", Kind.BOOLEAN, "true", "", since=_V30, boxed=True),
    Key("varianceBalancingFrequency", Kind.INT, "3", "", since=_V30),
    Key("workerMetricsEMAAlpha", Kind.DOUBLE, "0.5", "", since=_V30),
    Key("staleWorkerMetricsEntryCleanupDuration", Kind.DURATION, "P1D", "", since=_V30),
)

_POLLING: Final = (
    "maxRecords",
    "idleTimeBetweenReadsInMillis",
    "millisBehindLatestThresholdForReducedTps",
    "retryGetRecordsInSeconds",
    "maxGetRecordsThreadPool",
)

PATHS: Final[Mapping[str, tuple[str, ...]]] = {
    "pollingConfig": _POLLING,
    "gracefulLeaseHandoffConfigBean": ("isGracefulLeaseHandoffEnabled", "gracefulLeaseHandoffTimeoutMillis"),
    "workerUtilizationAwareAssignmentConfigBean": (
        "disableWorkerMetrics",
        "inMemoryWorkerMetricsCaptureFrequencyMillis",
        "workerMetricsReporterFreqInMillis",
        "noOfPersistedMetricsPerWorkerMetrics",
        "maxThroughputPerHostKBps",
        "dampeningPercentage",
        "reBalanceThresholdPercentage",
        "allowThroughputOvershoot",
        "varianceBalancingFrequency",
        "workerMetricsEMAAlpha",
        "staleWorkerMetricsEntryCleanupDuration",
    ),
    "workerMetricStatsTableConfigBean": tuple(key.name for key in _table("workerMetrics", "")),
    "coordinatorStateTableConfigBean": tuple(key.name for key in _table("coordinatorState", "")),
}
"""Beans inside the bean: `pollingConfig.maxRecords` is a second way to write `maxRecords`."""

_CLIENT: Final = (
    "addPlugin",
    "asyncConfiguration",
    "authSchemeProvider",
    "credentialsProvider",
    "defaultsMode",
    "dualstackEnabled",
    "endpointOverride",
    "endpointProvider",
    "fipsEnabled",
    "httpClient",
    "httpClientBuilder",
    "overrideConfiguration",
    "putAuthScheme",
    "region",
)

BUILDERS: Final[Mapping[str, tuple[str, ...]]] = {
    "kinesisClient": _CLIENT,
    "dynamoDbClient": (*_CLIENT, "accountIdEndpointMode", "endpointDiscoveryEnabled"),
    "cloudWatchClient": _CLIENT,
}
"""Builders of the AWS SDK, set below a dot and to any depth. An unknown name below them ends the start."""

CREDENTIAL_BUILDERS: Final = (
    "kinesisCredentialsProvider",
    "dynamoDBCredentialsProvider",
    "cloudWatchCredentialsProvider",
)
"""Builders of the credentials behind the three AwsCredentialsProvider keys; excluded by those, so hardly of use."""

ENDPOINTS: Final = ("kinesisEndpoint", "dynamoDBEndpoint", *(f"{client}.endpointOverride" for client in BUILDERS))
"""Addresses of services."""

RIVALS: Final[tuple[tuple[str, str], ...]] = (
    ("workerId", "workerIdentifier"),
    ("initialPositionInStream", "initialPositionInStreamExtended"),
    ("kinesisEndpoint", "kinesisClient.endpointOverride"),
    ("dynamoDBEndpoint", "dynamoDbClient.endpointOverride"),
    ("regionName", "kinesisClient.region"),
    ("regionName", "dynamoDbClient.region"),
    ("regionName", "cloudWatchClient.region"),
    *((name, f"{path}.{name}") for path, names in PATHS.items() for name in names),
)
"""Two names of one setting. The daemon sets them in the order of a hash table: nobody says which one wins."""

REQUIRED: Final = ("executableName", "applicationName", "AwsCredentialsProvider")
"""Beside one of streamName and streamArn."""

POLLING: Final = frozenset({*_POLLING, *(f"pollingConfig.{name}" for name in _POLLING)})
"""Any of these, unless 0, makes polling of the retrieval mode DEFAULT."""

_CREDENTIALS: Final = "AwsCredentialsProvider"
_BY_NAME: Final[Mapping[str, Key]] = {key.name: key for key in KEYS} | {
    f"{path}.{name}": key for path, names in PATHS.items() for key in KEYS for name in names if key.name == name
}


def version_order(version: str) -> list[int]:
    """A version as a list that compares as versions do: 3.10 after 3.9."""
    return [int(part) for part in re.findall(r"\d+", version)[:3]]


def spelled(name: str) -> str:
    """The name as the daemon sees it: letters' case matters, except in the word AwsCredentialsProvider at the front."""
    front = len(_CREDENTIALS)
    return _CREDENTIALS + name[front:] if name[:front].lower() == _CREDENTIALS.lower() else name


def find(name: str) -> Key | None:
    """The property of that name, by either of its paths; None where the daemon knows no such name."""
    return _BY_NAME.get(spelled(name))


def names() -> tuple[str, ...]:
    """Every name that can be written, nested ones included, builders' inner names excluded."""
    return tuple(_BY_NAME)


def builder_of(name: str) -> str | None:
    """The builder that a dotted name belongs to."""
    front, dot, _ = name.partition(".")
    return front if dot and (front in BUILDERS or front in CREDENTIAL_BUILDERS) else None
