"""Every rule finds its fault and nothing else, and the daemon does with the file what the rule says it does."""

import pytest

from kcl_spark.daemon.keys import KEYS, Kind, find
from kcl_spark.daemon.lint import RULES, Finding, lint
from kcl_spark.daemon.values import is_true, number
from tests.daemon_settings.asking import ask_daemon
from tests.daemon_settings.cases import CASES, FINE, GOOD, TWICE, Case, with_lines

IDS = [f"{case.rule}-{case.lines}" for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_fault_is_found_by_its_rule_alone(case: Case) -> None:
    assert [(finding.rule, finding.key) for finding in lint(case.text)] == [(case.rule, case.key)]


@pytest.mark.parametrize(("lines", "found"), TWICE, ids=[lines for lines, _ in TWICE])
def test_two_faults_are_found_by_two_rules(lines: str, found: dict[str, str]) -> None:
    assert {finding.rule: finding.key for finding in lint(with_lines(lines))} == found


@pytest.mark.parametrize("lines", FINE)
def test_nothing_is_found_where_nothing_is_wrong(lines: str) -> None:
    assert lint(with_lines(lines)) == []


def test_every_rule_has_a_case() -> None:
    assert {rule.name for rule in RULES} == {case.rule for case in CASES} | {"two-streams"}
    assert len({rule.name for rule in RULES}) == len(RULES)


def test_what_is_generated_is_clean() -> None:
    assert lint(GOOD) == []


def test_an_empty_file_lacks_what_is_required_and_what_is_safe() -> None:
    rules = [finding.rule for finding in lint("")]
    assert sorted(set(rules)) == [
        "fan-out",
        "metrics-detailed",
        "missing",
        "no-empty-batches",
        "no-grace",
        "random-worker",
        "start-latest",
    ]
    assert rules.count("missing") == 4


def test_a_finding_names_the_line_of_the_assignment_that_counts() -> None:
    text = "\n" * 3 + "failoverTimeMillis=x\nfailoverTimeMillis=y\n"
    assert [(f.line, f.rule) for f in lint(text) if f.line] == [(4, "duplicate"), (5, "not-a-number")]


def test_findings_come_by_line() -> None:
    lines = [finding.line for finding in lint("colour=a\nshape=b\nmetricsLevel=c\n")]
    assert lines == sorted(lines)


def test_a_file_with_cr_lf_throughout_is_read_all_the_same() -> None:
    findings = lint(GOOD.replace("\n", "\r\n"))
    assert [(finding.line, finding.rule) for finding in findings] == [(1, "line-ends")]


def test_a_line_that_cannot_be_read_does_not_hide_the_others() -> None:
    findings = lint(with_lines("a=\\u1\nmetricsLevel=LOUD"))
    assert [finding.rule for finding in findings] == ["malformed-escape", "bad-choice"]


def test_latest_is_no_fault_where_records_may_be_skipped() -> None:
    assert lint(with_lines("initialPositionInStream=LATEST"), exactly_once=False) == []


def test_a_newer_daemon_knows_newer_keys() -> None:
    text = with_lines("leaseTableScanTotalSegments=3")
    assert [finding.rule for finding in lint(text, version="3.4.3")] == ["newer-key"]
    assert lint(text, version="3.5.1") == []
    assert lint(text, version="3.10.0") == []


def test_a_newer_daemon_knows_newer_values() -> None:
    text = with_lines("clientVersionConfig=CLIENT_VERSION_CONFIG_COMPATIBLE_WITH_2X_PHASE1")
    assert [finding.rule for finding in lint(text, version="3.4.3")] == ["bad-choice"]
    assert lint(text, version="3.5.0") == []


@pytest.mark.parametrize(
    ("lines", "meant"),
    [
        ("failoverTimeMilis=5000", "failoverTimeMillis"),
        ("dynamoDBClient.region=x", "dynamoDbClient.region"),
        ("AwsCredentialsProvider=EC2ContainerCredentialsProviderWrapper", "ContainerCredentialsProvider"),
        ("AwsCredentialsProvider=com.amazonaws.auth.PropertiesFileCredentialsProvider", "ProfileCredentialsProvider"),
        ("maxActiveThreads=13", "Remove the line"),
    ],
)
def test_the_remedy_says_what_to_write(lines: str, meant: str) -> None:
    (finding,) = lint(with_lines(lines))
    assert meant in finding.remedy


@pytest.mark.parametrize(
    ("lines", "consequence"),
    [
        ("callProcessRecordsEvenForEmptyRecordList=true ", "makes it false"),
        ("callProcessRecordsEvenForEmptyRecordList=false ", "no boolean"),
        ("metricsLevel=NONE ", "the start ends"),
        ("streamName=flights ", "belongs to the value"),
        ("timeoutInSeconds=abc", "halts the daemon"),
        ("gracefulLeaseHandoffTimeoutMillis=abc", "becomes 0, and 0 it is"),
        ("failoverTimeMillis=abc", "the default, 10000"),
        ("maxActiveThreads=13", "more than 4 shards"),
        ("maxActiveThreads=12", "more than 3 shards"),
    ],
)
def test_the_message_says_what_comes_of_it(lines: str, consequence: str) -> None:
    assert consequence in " ".join(finding.message for finding in lint(with_lines(lines)))


@pytest.mark.parametrize("secret", ["AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE"])
def test_secrets_are_not_repeated(secret: str) -> None:
    findings = lint(with_lines(f"accessKey={secret}\nsecret_password=hush"))
    assert {"secret"} <= {finding.rule for finding in findings}
    assert secret not in str(findings)
    assert "hush" not in str(findings)


def test_a_finding_reads_as_one_line() -> None:
    finding = Finding(3, "a", "error", "zero", "what", "Do this")
    assert str(finding) == "error: line 3: what. Do this [zero]"
    assert str(finding._replace(line=0)) == "error: what. Do this [zero]"


@pytest.mark.jvm
def test_the_daemon_starts_or_ends_as_the_cases_say() -> None:
    answers = ask_daemon([(case.text, "-") for case in CASES])
    assert [(case.lines, answer.split()[0]) for case, answer in zip(CASES, answers, strict=True)] == [
        (case.lines, case.daemon) for case in CASES
    ]


@pytest.mark.jvm
def test_the_daemon_starts_where_nothing_is_found() -> None:
    fine = [lines for lines in FINE if "org.example" not in lines]
    answers = ask_daemon([(with_lines(lines), "-") for lines in fine])
    assert [lines for lines, answer in zip(fine, answers, strict=True) if answer == "ends"] == []


NUMBERS = [
    "5",
    "+5",
    "-5",
    " 5",
    "5 ",
    "0",
    "00012",
    "1e3",
    "1.5",
    ".5",
    "5.",
    "5d",
    "0x10",
    "1,000",
    "1_000",
    "",
    "-",
    "abc",
]
NUMBERS += [str(2**31 - 1), str(2**31), str(-(2**31)), str(2**63 - 1), str(2**63)]
WORDS = ["true", "TRUE", "yes", "y", "on", "1", "t", "enabled", "false", "no", "n", "off", "0", "f", "", "2"]


@pytest.mark.jvm
@pytest.mark.parametrize(
    "name", ["failoverTimeMillis", "timeoutInSeconds", "dampeningPercentage", "maxThroughputPerHostKBps"]
)
def test_numbers_are_read_as_the_daemon_reads_them(name: str) -> None:
    key = find(name)
    assert key
    answers = ask_daemon([(with_lines(f"{name}={value}"), name) for value in NUMBERS])
    daemons = [float(answer.removeprefix("starts ")) for answer in answers]
    assert daemons == [float(number(key.kind, value.lstrip()) or 0) for value in NUMBERS]


@pytest.mark.jvm
@pytest.mark.parametrize("name", ["callProcessRecordsEvenForEmptyRecordList", "disableWorkerMetrics"])
def test_booleans_are_read_as_the_daemon_reads_them(name: str) -> None:
    values = [*WORDS, *(f"{word} " for word in WORDS)]
    answers = ask_daemon([(with_lines(f"{name}={value}"), name) for value in values])
    assert answers == [f"starts {str(is_true(value)).lower()}" for value in values]


@pytest.mark.jvm
def test_the_daemon_takes_every_value_of_every_choice() -> None:
    choices = [(key.name, value) for key in KEYS if key.kind is Kind.ENUM for value in key.values]
    texts = [with_lines(f"{name}={value.lower()}") for name, value in choices]
    assert {answer.split()[0] for answer in ask_daemon([(text, "-") for text in texts])} == {"starts"}


@pytest.mark.jvm
def test_the_daemon_can_make_the_credentials_providers_that_are_allowed() -> None:
    from kcl_spark.daemon.rules_running import SDK_2

    plain = [name for name in SDK_2 if "AssumeRole" not in name]
    roles = [
        f"{name}|arn:aws:iam::123456789012:role/r|session|endpointRegion=us-east-1"
        for name in SDK_2
        if "AssumeRole" in name
    ]
    names = [*plain, *roles]
    answers = ask_daemon([(with_lines(f"AwsCredentialsProvider={name}"), "-") for name in names])
    assert [name for name, answer in zip(names, answers, strict=True) if answer == "ends"] == []
