"""One faulty file for each rule at least: what is added to a good one, who finds it, and what the daemon does."""

from typing import Literal, NamedTuple

from kcl_spark.daemon.generate import DaemonOptions, generate

GOOD = generate(
    DaemonOptions(
        application="flights",
        stream="flights",
        executable=("kcl-spark", "child", "flights.py"),
        worker_id="worker-1",
        region="us-east-1",
    )
)


class Case(NamedTuple):
    """`lines` replace the good file's lines of the same keys; a key alone only removes that."""

    rule: str
    lines: str
    key: str
    daemon: Literal["starts", "ends"] = "starts"

    @property
    def text(self) -> str:
        return with_lines(self.lines)


def with_lines(lines: str) -> str:
    replaced = {line.split("=")[0].strip() for line in lines.splitlines()}
    kept = [line for line in GOOD.splitlines() if line.split("=")[0].strip() not in replaced]
    added = [line for line in lines.split("\n") if "=" in line or line.startswith("#")]
    return "\n".join([*kept, *added]) + "\n"


EMPTY, GRACE, START = "callProcessRecordsEvenForEmptyRecordList", "shutdownGraceMillis", "initialPositionInStream"
MOMENT, IDLE, TIMEOUT = "initialPositionInStreamExtended", "idleTimeBetweenReadsInMillis", "timeoutInSeconds"
AGE = "staleWorkerMetricsEntryCleanupDuration"
CREDENTIALS, HANDOFF = "AwsCredentialsProvider", "isGracefulLeaseHandoffEnabled"
ROLE = "StsAssumeRoleCredentialsProvider|arn:aws:iam::123456789012:role/r|session"

CASES = [
    Case("malformed-escape", "tableName=\\u12g4", "", "ends"),
    Case("wrong-case", "failovertimemillis=5000", "failovertimemillis"),
    Case("wrong-case", "dynamoDBClient.endpointOverride=http://127.0.0.1:1", "dynamoDBClient.endpointOverride"),
    Case("wrong-case", "AwsCredentialsProviderdynamodb=DefaultCredentialsProvider", "AwsCredentialsProviderdynamodb"),
    Case("misspelt-key", "failoverTimeMilis=5000", "failoverTimeMilis"),
    Case("misspelt-key", "fanoutConfig.consumersName=x", "fanoutConfig.consumersName"),
    Case("unknown-key", "colour=blue", "colour"),
    Case("unknown-client-setting", "kinesisClient.colour=blue", "kinesisClient.colour", "ends"),
    Case("newer-key", "migrateAllEntitiesToLeaseTable=true", "migrateAllEntitiesToLeaseTable"),
    Case("duplicate", "failoverTimeMillis=5000\nfailoverTimeMillis=6000", "failoverTimeMillis"),
    Case("two-names", "workerIdentifier=b", "workerIdentifier"),
    Case("two-names", f"{MOMENT}=1700000000", MOMENT),
    Case("two-names", "pollingConfig.maxRecords=5\nmaxRecords=6", "pollingConfig.maxRecords"),
    Case("two-names", "AWSCredentialsProvider=DefaultCredentialsProvider", "AWSCredentialsProvider", "ends"),
    Case("trailing-blank", f"{EMPTY}=true ", EMPTY),
    Case("trailing-blank", "metricsLevel=NONE\t", "metricsLevel", "ends"),
    Case("trailing-blank", "maxActiveThreads=0 ", "maxActiveThreads", "ends"),
    Case("trailing-blank", f"{START}\n{MOMENT}=1700000000 ", MOMENT, "ends"),
    Case("trailing-blank", "regionName=us-east-1 ", "regionName", "ends"),
    Case("trailing-blank", "kinesisEndpoint=http://127.0.0.1:4568 ", "kinesisEndpoint", "ends"),
    Case("trailing-blank", "streamName=flights ", "streamName"),
    Case("harmless-blank", "failoverTimeMillis=5000 ", "failoverTimeMillis"),
    Case("harmless-blank", f"{AGE}=P1D ", AGE),
    Case("harmless-blank", f"{CREDENTIALS}=DefaultCredentialsProvider ", CREDENTIALS),
    Case("line-ends", "maxRecords=5\r\n", ""),
    Case("not-ascii", "processingLanguage=café", ""),
    Case("not-a-number", "failoverTimeMillis=10s", "failoverTimeMillis"),
    Case("not-a-number", "maxRecords=1e3", "maxRecords"),
    Case("not-a-number", "maxRecords=99999999999", "maxRecords"),
    Case("not-a-number", f"{TIMEOUT}=1m", TIMEOUT),
    Case("not-a-number", "maxActiveThreads=many", "maxActiveThreads", "ends"),
    Case("not-a-number", f"{START}\n{MOMENT}=2024-01-01", MOMENT, "ends"),
    Case("not-a-number", "maxThroughputPerHostKBps=fast", "maxThroughputPerHostKBps"),
    Case("zero", "failoverTimeMillis=0", "failoverTimeMillis"),
    Case("negative", "failoverTimeMillis=-1", "failoverTimeMillis"),
    Case("not-a-boolean", f"{HANDOFF}=maybe", HANDOFF),
    Case("not-a-boolean", f"{HANDOFF}=t", HANDOFF),
    Case("false-changes-nothing", "cleanupLeasesUponShardCompletion=false", "cleanupLeasesUponShardCompletion"),
    Case("bad-choice", "metricsLevel=LOUD", "metricsLevel", "ends"),
    Case("bad-choice", f"{START}=AT_TIMESTAMP", START, "ends"),
    Case("bad-choice", "clientVersionConfig=3X", "clientVersionConfig", "ends"),
    Case("bad-choice", "retrievalMode=", "retrievalMode", "ends"),
    Case("bad-duration", f"{AGE}=1 day", AGE, "ends"),
    Case("bad-duration", f"{AGE}=PT", AGE, "ends"),
    Case("bad-duration", f"{AGE}=P-1D", AGE, "ends"),
    Case("bad-tag", "workerMetricsTags=team=data,blue", "workerMetricsTags"),
    Case("bad-endpoint", "kinesisEndpoint=localhost:4568", "kinesisEndpoint"),
    Case("bad-endpoint", "dynamoDBEndpoint=", "dynamoDBEndpoint", "ends"),
    Case("never", "shardPrioritization=x", "shardPrioritization", "ends"),
    Case("unused", "validateSequenceNumberBeforeCheckpointing=true", "validateSequenceNumberBeforeCheckpointing"),
    Case("missing", "executableName", "executableName", "ends"),
    Case("missing", "applicationName= ", "applicationName", "ends"),
    Case("missing", CREDENTIALS, CREDENTIALS, "ends"),
    Case("missing", "streamName", "streamName", "ends"),
    Case("bad-arn", "streamName\nstreamArn=flights", "streamArn", "ends"),
    Case("bad-arn", "streamName\nstreamArn=arn:aws:kinesis:us-east-1:12:stream/flights", "streamArn", "ends"),
    Case("arn-name-only", "streamName\nstreamArn=arn:aws:kinesis:us-east-1:123456789012:stream/x", "streamArn"),
    Case("table-name", "applicationName=my flights", "applicationName"),
    Case("table-name", f"applicationName={'a' * 238}", "applicationName"),
    Case("table-name", "tableName=a/b", "tableName"),
    Case("start-latest", f"{START}=latest", START),
    Case("start-latest", START, START),
    Case("start-in-milliseconds", f"{START}\n{MOMENT}=1700000000000", MOMENT),
    Case("fan-out", f"retrievalMode\n{IDLE}", "retrievalMode"),
    Case("fan-out", f"retrievalMode=default\n{IDLE}", "retrievalMode"),
    Case("too-many-records", "maxRecords=10001", "maxRecords", "ends"),
    Case("idle-too-short", f"{IDLE}=199", IDLE),
    Case("no-grace", GRACE, GRACE),
    Case("no-grace", f"{GRACE}=0", GRACE),
    Case("no-empty-batches", EMPTY, EMPTY),
    Case("no-empty-batches", f"{EMPTY}=no", EMPTY),
    Case("timeout-zero", f"{TIMEOUT}=0", TIMEOUT),
    Case("timeout-short", f"{TIMEOUT}=14", TIMEOUT),
    Case("threads-dead-lock", "maxActiveThreads=3", "maxActiveThreads"),
    Case("threads-few", "maxActiveThreads=13", "maxActiveThreads"),
    Case("random-worker", "workerId", "workerId"),
    Case("metrics-detailed", "metricsLevel", "metricsLevel"),
    Case("metrics-detailed", "metricsLevel=Detailed", "metricsLevel"),
    Case("executable-quotes", 'executableName=sh -c "python a.py"', "executableName"),
    Case("executable-unexpanded", "executableName=~/bin/child", "executableName"),
    Case("executable-unexpanded", "executableName=python $HOME/child.py", "executableName"),
    Case("executable-script", "executableName=child.py", "executableName"),
    Case("executable-relative", "executableName=bin/child x", "executableName"),
    Case("credentials-of-sdk-1", f"{CREDENTIALS}=DefaultAWSCredentialsProviderChain", CREDENTIALS, "ends"),
    Case("credentials-of-sdk-1", f"{CREDENTIALS}=com.amazonaws.auth.X,DefaultCredentialsProvider", CREDENTIALS),
    Case("unknown-credentials", f"{CREDENTIALS}=Defaultcredentialsprovider", CREDENTIALS, "ends"),
    Case("role-without-region", f"{CREDENTIALS}={ROLE}", CREDENTIALS, "ends"),
    Case("role-without-region", f"{CREDENTIALS}={ROLE},DefaultCredentialsProvider", CREDENTIALS),
    Case(
        "bad-choice",
        "clientVersionConfig=CLIENT_VERSION_CONFIG_COMPATIBLE_WITH_2X_PHASE1",
        "clientVersionConfig",
        "ends",
    ),
    Case("in-the-clear", "kinesisEndpoint=http://kinesis.example.com:4568", "kinesisEndpoint"),
    Case("secret", "# AKIAIOSFODNN7EXAMPLE\ncolour", ""),
]

TWICE = [
    # Files in which two rules find something, each for a reason of its own.
    (
        "streamArn=arn:aws:kinesis:us-east-1:123456789012:stream/x",
        {"two-streams": "streamName", "arn-name-only": "streamArn"},
    ),
    ("secretKey=wJalrXUtnFEMI", {"secret": "secretKey", "unknown-key": "secretKey"}),
    ("executableName=", {"missing": "executableName"}),
]
"""(lines, what is found: rule and key)"""

FINE = [
    "maxActiveThreads=0",
    "millisBehindLatestThresholdForReducedTps=0",
    "retrievalMode=FANOUT\n" + IDLE,
    "retrievalMode=default",
    "retrievalMode",
    f"{START}=trim_horizon",
    f"{START}\n{MOMENT}=1700000000",
    f"{EMPTY}=YES",
    f"{TIMEOUT}=15",
    "kinesisEndpoint=http://localhost:4568\ndynamoDBEndpoint=http://[::1]:8000",
    "kinesisClient.endpointOverride=https://kinesis.example.com\ncloudWatchClient.overrideConfiguration.apiCallTimeout=PT5S",
    "awscredentialsprovider=ProfileCredentialsProvider|other\n" + CREDENTIALS,
    f"{CREDENTIALS}=StsAssumeRoleCredentialsProvider|arn:aws:iam::123456789012:role/r|session|endpointRegion=us-east-1,DefaultCredentialsProvider",
    f"{CREDENTIALS}=org.example.Own,DefaultCredentialsProvider",
    f"{AGE}=pt1.5s",
    "coordinatorStateTags=team = data , cost=low",
    "metricsEnabledDimensions=Operation, ShardId",
    "executableName=/opt/my/child --level 3",
    "executableName=python -u app/child.py",
    "failoverTimeMillis=+5000",
    "processingLanguage=caf\\u00e9",
    "# café\ncolour",
    "maxRecords=10000",
    "maxThroughputPerHostKBps=1.5e3",
]
"""Lines with which nothing is wrong."""
