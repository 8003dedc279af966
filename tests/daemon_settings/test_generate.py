"""What is written for the daemon: complete, clean, and refused where it could not be safe."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcl_spark.daemon.generate import ONE_MACHINE, DaemonOptions, generate
from kcl_spark.daemon.lint import lint
from kcl_spark.daemon.properties import effective, parse
from kcl_spark.errors import UsageError
from tests.daemon_settings.asking import ask_daemon

OPTIONS = DaemonOptions(
    application="flights", stream="words", executable=("kcl-spark", "child", "flights.py"), worker_id="worker-1"
)
PROFILE = "ProfileCredentialsProvider"
ARN = "arn:aws:kinesis:eu-west-1:123456789012:stream/words"


def written(text: str) -> dict[str, str]:
    return {key: entry.value for key, entry in effective(parse(text)).items()}


def options(**changes: Any) -> DaemonOptions:
    return replace(OPTIONS, **changes)


def test_the_least() -> None:
    assert written(generate(OPTIONS)) == {
        "applicationName": "flights",
        "streamName": "words",
        "executableName": "kcl-spark child flights.py",
        "workerId": "worker-1",
        "AwsCredentialsProvider": "DefaultCredentialsProvider",
        "initialPositionInStream": "TRIM_HORIZON",
        "retrievalMode": "POLLING",
        "idleTimeBetweenReadsInMillis": "1000",
        "callProcessRecordsEvenForEmptyRecordList": "true",
        "shutdownGraceMillis": "30000",
        "metricsLevel": "NONE",
    }


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({"region": "eu-west-1"}, {"regionName": "eu-west-1"}),
        ({"kinesis_endpoint": "http://127.0.0.1:4568"}, {"kinesisEndpoint": "http://127.0.0.1:4568"}),
        ({"dynamodb_endpoint": "http://127.0.0.1:5000"}, {"dynamoDBEndpoint": "http://127.0.0.1:5000"}),
        ({"shutdown_grace": 2.5}, {"shutdownGraceMillis": "2500"}),
        ({"shutdown_grace": 0.0001}, {"shutdownGraceMillis": "1"}),
        ({"timeout": 60}, {"timeoutInSeconds": "60"}),
        ({"max_records": 500}, {"maxRecords": "500"}),
        ({"metrics_level": "SUMMARY"}, {"metricsLevel": "SUMMARY"}),
        ({"stream": ARN}, {"streamName": "words", "regionName": "eu-west-1"}),
        ({"stream": ARN, "region": "eu-west-1"}, {"streamName": "words", "regionName": "eu-west-1"}),
        ({"credentials_provider": PROFILE}, {"AwsCredentialsProvider": PROFILE}),
        ({"extra": {"metricsLevel": "SUMMARY"}}, {"metricsLevel": "SUMMARY"}),
        ({"extra": {"awscredentialsprovider": PROFILE}}, {"AwsCredentialsProvider": PROFILE}),
        ({"extra": ONE_MACHINE}, dict(ONE_MACHINE)),
    ],
)  # fmt: skip
def test_an_option_becomes_a_line(changes: Mapping[str, Any], lines: dict[str, str]) -> None:
    text = generate(options(**changes))
    assert written(text) == {**written(generate(OPTIONS)), **lines}
    assert lint(text) == []


def test_fan_out_leaves_polling_out() -> None:
    text = generate(options(fan_out=True))
    assert written(text)["retrievalMode"] == "FANOUT"
    assert "idleTimeBetweenReadsInMillis" not in written(text)
    assert lint(text) == []


@pytest.mark.parametrize(
    ("moment", "seconds"),
    [
        (datetime(2024, 1, 1, tzinfo=UTC), "1704067200"),
        (datetime(2024, 1, 1, 0, 0, 0, 999_999, tzinfo=UTC), "1704067200"),
        (datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=2))), "1704060000"),
    ],
)
def test_a_moment_is_written_in_whole_seconds_and_never_too_late(moment: datetime, seconds: str) -> None:
    lines = written(generate(options(start=moment)))
    assert lines["initialPositionInStreamExtended"] == seconds
    assert "initialPositionInStream" not in lines


@pytest.mark.parametrize("name", ["workerIdentifier", "initialPositionInStreamExtended", "kinesisClient.region"])
def test_an_extra_replaces_the_line_of_its_other_name(name: str) -> None:
    text = generate(options(region="us-east-1", extra={name: "1"}))
    assert "two-names" not in {finding.rule for finding in lint(text)}
    assert written(text)[name] == "1"


def test_every_line_has_its_reason() -> None:
    lines = generate(options(timeout=60, max_records=5, region="eu-west-1")).splitlines()
    for before, line in pairwise(lines):
        assert line == "" or line.startswith("#") or before.startswith("# ")


def test_latest_is_refused_unless_skipping_is_allowed() -> None:
    with pytest.raises(UsageError, match="LATEST"):
        generate(options(start="latest"))
    text = generate(options(start="latest"), exactly_once=False)
    assert written(text)["initialPositionInStream"] == "LATEST"
    assert lint(text, exactly_once=False) == []


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"executable": ()}, "is empty"),
        ({"executable": ("",)}, "is empty"),
        ({"executable": ("python", "my file.py")}, "'my file.py'"),
        ({"executable": ("python", "a\tb.py")}, "cuts commands at blanks"),
        ({"executable": ("python", "")}, "''"),
        ({"stream": "arn:aws:kinesis:eu-west-1:stream/words"}, "no stream's ARN"),
        ({"stream": ARN, "region": "us-east-1"}, "of eu-west-1, not of us-east-1"),
        ({"start": datetime(2024, 1, 1)}, "no time zone"),  # noqa: DTZ001 - that is the fault
        ({"shutdown_grace": 0}, "without a word"),
        ({"timeout": 14}, "halts the daemon"),
        ({"max_records": 0}, "max_records is 0"),
        ({"max_records": 10_001}, "max_records is 10001"),
        ({"fan_out": True, "max_records": 5}, "fan-out is asked for"),
    ],
)
def test_what_cannot_be_right_is_refused(changes: Mapping[str, Any], cause: str) -> None:
    with pytest.raises(UsageError, match=cause) as raised:
        options(**changes)
    assert raised.value.remedy


NAMES = st.text("abcXYZ019_.-", min_size=3, max_size=40)
WORDS = st.text(st.characters(categories=["L", "N"]), min_size=1).filter(lambda word: "AKIA" not in word)
STARTS = st.just("trim_horizon") | st.integers(0, 2**32).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))


@given(
    application=NAMES,
    stream=NAMES,
    executable=st.lists(WORDS, min_size=1, max_size=4).map(tuple),
    worker_id=WORDS,
    region=st.sampled_from([None, "eu-west-1"]),
    start=STARTS,
    shutdown_grace=st.floats(0.001, 3600),
    timeout=st.none() | st.integers(15, 3600),
    max_records=st.none() | st.integers(1, 10_000),
)
def test_whatever_is_asked_for_is_written_clean_and_reads_back(**asked: Any) -> None:
    made = DaemonOptions(**asked)
    text = generate(made)
    assert lint(text) == []
    assert written(text)["executableName"].split(" ") == list(made.executable)
    assert written(text)["workerId"] == made.worker_id


@pytest.mark.jvm
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("applicationName", "flights"),
        ("streamName", "words"),
        ("workerIdentifier", "wörker-😀"),
        ("shutdownGraceMillis", "30000"),
        ("callProcessRecordsEvenForEmptyRecordList", "true"),
        ("retrievalMode", "POLLING"),
        ("initialPositionInStream", "AT_TIMESTAMP"),
    ],
)
def test_the_daemon_takes_it_as_it_is_meant(name: str, value: str) -> None:
    start = datetime(2024, 1, 1, tzinfo=UTC)
    text = generate(options(stream=ARN, worker_id="wörker-😀", start=start, extra=ONE_MACHINE))
    assert ask_daemon([(text, name)]) == [f"starts {value}"]
