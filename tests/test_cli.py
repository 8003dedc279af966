"""The command line: what each command shows, and that an error is one line with cause, remedy and exit code."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kcl_spark import cli, shown
from kcl_spark.errors import ExitCode, UsageError
from kcl_spark.worker import handover

# Each look at a pipeline file is a process of its own.
pytestmark = pytest.mark.process

PIPELINE = """
from kcl_spark import Pipeline, formats, sinks
print("printed by the pipeline file")
pipeline = Pipeline("flights", formats.raw(), sinks.delta("out/flights"))
"""

LINES_OF_ONE_MESSAGE = 1


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    file = tmp_path / "flights.py"
    file.write_text(PIPELINE)
    return file


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    folder = tmp_path / "jars"
    folder.mkdir()
    for name in ("amazon-kinesis-client-multilang-3.1.3", "amazon-kinesis-client-3.1.3", "logback-classic-1.3.14"):
        (folder / f"{name}.jar").write_bytes(b"PK")
    return folder


class Said:
    """What a command came to."""

    def __init__(self, code: object, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def message(self) -> str:
        """The one line of an error."""
        lines = [line for line in self.err.splitlines() if line.startswith("kcl-spark: ")]
        assert len(lines) == LINES_OF_ONE_MESSAGE, self.err
        assert "Traceback" not in self.err
        return lines[0]


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """Run the command line in this process."""

    def run(*words: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["kcl-spark", *words])
        try:
            cli.main()
        except SystemExit as end:
            out, err = capfd.readouterr()
            return Said(end.code or 0, out, err)
        raise AssertionError("a command ends by exit")

    monkeypatch.setenv("COLUMNS", "200")
    return run


def test_help_names_every_command(say: Any) -> None:
    told = say("--help")
    assert told.code == 0
    for command in ("run", "child", "engine", "simulate", "status", "doctor", "properties"):
        assert f" {command} " in told.out


def test_an_unknown_option_is_a_usage_error(say: Any) -> None:
    assert say("run", "--no-such-option").code == ExitCode.USAGE


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("import nothing_of_that_name\n", ":1: ModuleNotFoundError: No module named 'nothing_of_that_name'"),
        ("x = 1\n", "has no `pipeline`"),
        ("\n\n1/0\n", ":3: ZeroDivisionError"),
        ("pipeline = 3\n", "a `pipeline` that is a int"),
        ("from kcl_spark import Trigger\nTrigger(interval='soon')\n", ":2: 'soon' is no duration"),
        ("import os\nos._exit(3)\n", "ended python with code 3"),
    ],
)
def test_a_bad_pipeline_file_is_one_line_before_anything_starts(
    say: Any, tmp_path: Path, jars: Path, text: str, told: str
) -> None:
    file = tmp_path / "bad.py"
    file.write_text(text)
    done = say("run", str(file), "--stream", "s", "--jars", str(jars))
    assert done.code == ExitCode.USAGE
    assert str(file) in done.message
    assert told in done.message


def test_a_pipeline_file_that_is_not_there(say: Any, tmp_path: Path, jars: Path) -> None:
    done = say("run", str(tmp_path / "none.py"), "--stream", "s", "--jars", str(jars))
    assert done.code == ExitCode.USAGE
    assert "there is no pipeline file" in done.message


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "no stream is named"),
        (("--stream", "s", "--start", "latest"), "starts at a later LATEST and skips"),
        (("--stream", "s", "--start", "soon"), "--start soon is no place"),
        (("--stream", "s", "--start", "2026-01-01T00:00:00"), "has no time zone"),
        (("--stream", "s", "--grace", "0"), "ends the children without a word"),
        (("--stream", "s", "--timeout", "3"), "halts the daemon while a child is at work"),
        (("--stream", "s", "--set", "nothing"), "--set nothing has no value"),
        (("--stream", "s", "--conf", "spark.x"), "--conf spark.x has no value"),
        (("--stream", "s", "--set", "maxActiveThreads=2"), "have 1 errors"),
        (("--properties", "/no/such/file"), "/no/such/file"),
    ],
)
def test_what_can_be_refused_is_refused_before_anything_starts(
    say: Any, pipeline: Path, jars: Path, options: tuple[str, ...], told: str
) -> None:
    done = say("run", str(pipeline), "--jars", str(jars), *options)
    assert done.code == ExitCode.USAGE
    assert told in done.message


def test_no_jars(say: Any, pipeline: Path, tmp_path: Path) -> None:
    done = say("run", str(pipeline), "--stream", "s", "--jars", str(tmp_path / "none"))
    assert done.code == ExitCode.USAGE
    assert "Run bin/fetch-daemon" in done.message


def test_debug_shows_where_an_error_comes_from(pipeline: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["kcl-spark", "run", str(pipeline), "--debug", "--set", "nothing"])
    with pytest.raises(UsageError):
        cli.main()


def test_the_properties_of_a_pipeline_can_be_read_and_redirected(say: Any, pipeline: Path) -> None:
    done = say("properties", "--pipeline", str(pipeline), "--stream", "flights", "--region", "eu-west-1")
    assert done.code == 0
    assert "streamName = flights\n" in done.out
    assert "regionName = eu-west-1\n" in done.out
    assert "printed by the pipeline file" not in done.out, "what the file prints is no property"
    assert "printed by the pipeline file" in done.err


def test_two_pipelines_on_one_machine_have_workers_of_their_own(say: Any, pipeline: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    other.write_text(PIPELINE)
    texts = [say("properties", "--pipeline", str(file), "--stream", "s").out for file in (pipeline, other, pipeline)]
    ids = [next(line for line in text.splitlines() if line.startswith("workerId")) for text in texts]
    assert ids[0] != ids[1]
    assert ids[0] == ids[2], "and have it again after a restart"


def test_a_properties_file_is_checked_and_explained(say: Any, tmp_path: Path) -> None:
    file = tmp_path / "kcl.properties"
    file.write_text("streamName = s\nexecutableName = x\ncallProcessRecordsEvenForEmptyRecordList = true \n")
    done = say("properties", str(file))
    assert done.code == 1
    assert "line 3: " in done.out
    assert "[trailing-blank]" in done.out
    assert "streamName" in say("properties", str(file), "--explain").out


def test_a_file_or_a_pipeline(say: Any) -> None:
    assert "name a properties file, or a pipeline" in say("properties").message


def test_a_status_without_an_engine(say: Any, pipeline: Path, tmp_path: Path) -> None:
    done = say("status", str(pipeline), "--folder", str(tmp_path))
    assert done.code == ExitCode.ENGINE_GONE
    assert f"no engine answers in {tmp_path}" in done.message


ACCOUNT: Mapping[str, Any] = {
    "pipeline": "flights", "sink": "out/flights", "ready": True, "draining": False, "buffered_records": 1_000,
    "buffered_bytes": 5, "in_flight_records": 0, "records": 12_000, "rows": 11_000, "dead_letters": 3, "batches": 4,
    "last_commit_seconds_ago": 1.25, "batch_floor_seconds": 0.12, "batch_seconds": {"spark": 3.0, "commit": 1.0},
    "last_batch_seconds": {"spark": 0.3, "commit": 0.1}, "steps": {},
    "shards": [
        {"shard": "shardId-0", "mark": "7:3", "checkpoint": "7:0", "delivered": "9:0", "millis_behind_latest": 1_500,
         "commit_lag_seconds": 0.4, "waits_for": None, "stopped": None},
        {"shard": "shardId-1", "mark": None, "checkpoint": "TRIM_HORIZON", "delivered": None, "waits_for": None,
         "millis_behind_latest": None, "commit_lag_seconds": None, "stopped": "too many dead letters"},
    ],
}  # fmt: skip


def test_a_status_shows_where_time_goes() -> None:
    told = dict(shown.totals(ACCOUNT))
    assert told["pipeline"] == "flights, running"
    assert told["last commit"] == "1.2 s ago"
    assert told["batch floor"] == "120 ms, the quickest there was"
    assert told["batch time"] == "4.00 s: spark 75%, commit 25%"


def test_a_machine_is_examined(say: Any, jars: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of no use")
    done = say("doctor", "--jars", str(jars))
    for name in ("java", "memory", "daemon", "credentials"):
        assert f" {name} " in done.out
    assert "of no use" not in done.out


def test_a_pipeline_is_examined_with_all_that_it_needs(say: Any, pipeline: Path, jars: Path, tmp_path: Path) -> None:
    nobody = "http://127.0.0.1:9"
    done = say(
        "doctor", str(pipeline), "--stream", "s", "--jars", str(jars), "--folder", str(tmp_path / "w"),
        "--region", "eu-west-1", "--kinesis-endpoint", nobody, "--dynamodb-endpoint", nobody,
    )  # fmt: skip
    assert done.code == 1, "nobody answers there"
    for name in ("folder", "disk", "command", "pipeline", "properties", "stream", "leases"):
        assert f" {name} " in done.out
    assert "flights, exactly once, into " in done.out


def test_a_simulation_of_nothing(say: Any, pipeline: Path, tmp_path: Path) -> None:
    done = say("simulate", str(pipeline), "--input", str(tmp_path / "none"))
    assert done.code == ExitCode.USAGE
    assert "can't be read" in done.message


def test_a_status_can_be_read_by_a_program(say: Any, pipeline: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handover, "status", lambda _: ACCOUNT)
    assert json.loads(say("status", str(pipeline), "--json").out) == ACCOUNT


def test_a_status_for_people(say: Any, pipeline: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handover, "status", lambda _: ACCOUNT)
    told = say("status", str(pipeline)).out
    for word in ("shardId-0", "7:3", "1.5 s", "too many dead letters"):
        assert word in told
