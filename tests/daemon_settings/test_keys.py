"""The table of keys: sound in itself, and the same as the daemon's own beans."""

import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from kcl_spark.daemon import keys
from kcl_spark.daemon.keys import KEYS, Kind, builder_of, find, names, spelled
from tests.daemon_settings.jars import installed

JAVA = {
    Kind.INT: {"int", "java.lang.Integer"},
    Kind.LONG: {"long", "java.lang.Long"},
    Kind.DOUBLE: {"double"},
    Kind.BOOLEAN: {"boolean", "java.lang.Boolean"},
    Kind.TEXT: {"java.lang.String"},
    Kind.URI: {"java.lang.String"},
    Kind.CREDENTIALS: {"java.lang.String"},
    Kind.LIST: {"[Ljava.lang.String;"},
    Kind.REGION: {"software.amazon.awssdk.regions.Region"},
    Kind.DURATION: {"java.time.Duration"},
    Kind.TAGS: {"software.amazon.kinesis.multilang.config.converter.TagConverter$TagCollection"},
    Kind.EPOCH_SECONDS: {"software.amazon.kinesis.common.InitialPositionInStreamExtended"},
    Kind.NEVER: {"software.amazon.kinesis.leases.ShardPrioritization"},
}
BOXED = {"java.lang.Integer", "java.lang.Long", "java.lang.Boolean"}
NOT_OF_THE_BEAN = {"executableName", "processingLanguage", "maxActiveThreads"}
"""Read from the file by the daemon itself."""


def test_no_name_is_there_twice() -> None:
    assert len({key.name for key in KEYS}) == len(KEYS)


def test_choices_and_only_they_have_values() -> None:
    assert all(bool(key.values) is (key.kind is Kind.ENUM) for key in KEYS)
    assert all(key.default in key.values for key in KEYS if key.kind is Kind.ENUM)


@pytest.mark.parametrize(
    "name", sorted({*keys.REQUIRED, *keys.POLLING, *(key for pair in keys.RIVALS for key in pair)})
)
def test_what_is_spoken_of_is_known(name: str) -> None:
    assert find(name) is not None or builder_of(name) is not None


def test_the_case_of_the_credentials_key_does_not_matter_and_that_of_its_ending_does() -> None:
    assert spelled("aWSCredentialsproviderDynamoDB") == "AwsCredentialsProviderDynamoDB"
    assert find("AWSCredentialsProvider") is find("AwsCredentialsProvider")
    assert find("AwsCredentialsProviderdynamodb") is None


def test_a_nested_name_is_the_same_key() -> None:
    assert find("pollingConfig.maxRecords") is find("maxRecords")
    assert find("pollingConfig.failoverTimeMillis") is None


def test_builders_are_told_by_their_front() -> None:
    assert builder_of("kinesisClient.endpointOverride") == "kinesisClient"
    assert builder_of("kinesisClient") is None
    assert builder_of("pollingConfig.maxRecords") is None


@pytest.fixture(scope="module")
def beans() -> dict[str, str]:
    """Every property of the beans of the daemon's jar, with its Java type."""
    found = installed()
    source = Path(__file__).with_name("Beans.java")
    run = ["java", "-cp", f"{found.folder}/*", str(source)]
    lines = subprocess.run(run, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()
    return dict(line.split(" ")[1:3] for line in lines if line.startswith("bean "))


def of(beans: dict[str, str], fronts: Iterable[str]) -> set[str]:
    return {name for name in beans if name.partition(".")[0] in set(fronts) and "." in name}


@pytest.mark.jvm
def test_the_daemon_has_these_properties_and_no_others(beans: dict[str, str]) -> None:
    ours = {name[0].lower() + name[1:] for name in names()} - NOT_OF_THE_BEAN
    newer = {key.name for key in KEYS if key.since == "3.5.0"}
    assert ours - newer == set(beans) - of(beans, keys.BUILDERS)


@pytest.mark.jvm
def test_the_daemon_reads_them_as_the_table_says(beans: dict[str, str]) -> None:
    for name in names():
        key, java = find(name), beans.get(name[0].lower() + name[1:])
        if key and java and key.kind is not Kind.ENUM:
            assert java in JAVA[key.kind], name
            assert key.boxed is (java in BOXED), name


@pytest.mark.jvm
def test_the_builders_have_these_names(beans: dict[str, str]) -> None:
    listed = {f"{builder}.{name}" for builder, inner in keys.BUILDERS.items() for name in inner}
    assert listed == of(beans, keys.BUILDERS)
