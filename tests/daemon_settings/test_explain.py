"""Each setting with the value that the daemon makes of it."""

import pytest

from kcl_spark.daemon.explain import Explained, explain
from kcl_spark.errors import UsageError


def test_a_setting_is_shown_with_its_line_default_and_note() -> None:
    assert explain("\nfailoverTimeMillis = 5000") == [
        Explained(2, "failoverTimeMillis", "5000", "10000", "a lease not renewed for this long is free for others")
    ]


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("failoverTimeMillis=abc", "10000 ('abc' is no number)"),
        ("failoverTimeMillis=0", "10000 (0 means the default)"),
        ("failoverTimeMillis=5000 ", "5000"),
        ("timeoutInSeconds=abc", "0 ('abc' is no number)"),
        ("timeoutInSeconds=0", "0"),
        ("maxActiveThreads=0", "0 (as many threads as needed)"),
        ("maxActiveThreads=4 ", "4  (no number: ends the start)"),
        ("disableWorkerMetrics=true ", "false ('true ' is no boolean)"),
        ("disableWorkerMetrics=ON", "true"),
        ("disableWorkerMetrics=off", "false"),
        ("metricsLevel=none", "NONE"),
        ("streamName=words", "words"),
        ("pollingConfig.maxRecords=5", "5"),
        ("awscredentialsprovider=DefaultCredentialsProvider", "DefaultCredentialsProvider"),
    ],
)
def test_the_value_is_the_daemons(line: str, value: str) -> None:
    assert [setting.value for setting in explain(line)] == [value]


def test_the_last_of_a_key_is_explained_in_the_order_of_the_file() -> None:
    settings = explain("metricsLevel=NONE\nmaxRecords=5\nmetricsLevel=SUMMARY")
    assert [(setting.line, setting.value) for setting in settings] == [(2, "5"), (3, "SUMMARY")]


def test_what_the_daemon_ignores_and_what_the_sdk_takes_is_said() -> None:
    ignored, builder = explain("colour=blue\nkinesisClient.fipsEnabled=true")
    assert "ignores" in ignored.note
    assert "kinesisClient" in builder.note


def test_secrets_are_not_shown() -> None:
    settings = explain("secretKey=hush\nworkerId=AKIAIOSFODNN7EXAMPLE")
    assert [setting.value for setting in settings] == ["…", "…"]


def test_what_cannot_be_read_is_an_error() -> None:
    with pytest.raises(UsageError, match="line 1"):
        explain("a=\\u00")
