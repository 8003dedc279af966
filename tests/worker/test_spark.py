"""Where Spark's settings come from, and whose word counts; real sessions are in tests/process/test_settings.py."""

import socket
from pathlib import Path

import pytest

from kcl_spark.errors import ExitCode, SparkGone, UsageError
from kcl_spark.worker.spark import DEFAULTS, SparkOptions, settings, spark_defaults, start

MEMORY = "spark.driver.memory"


def test_the_command_line_wins_over_the_pipeline_over_the_file_over_us() -> None:
    everyone = settings(SparkOptions(conf={MEMORY: "1g"}), {MEMORY: "3g"}, {MEMORY: "4g"})
    assert everyone[MEMORY] == "1g"
    assert settings(SparkOptions(), {MEMORY: "3g"}, {MEMORY: "4g"})[MEMORY] == "3g"
    assert MEMORY not in settings(SparkOptions(), {}, {MEMORY: "4g"}), "Spark reads its file itself"
    assert settings(SparkOptions(), {}, {})[MEMORY] == DEFAULTS[MEMORY]


def test_without_a_word_spark_is_local() -> None:
    assert settings(SparkOptions(), {}, {})["spark.master"] == "local[*]"
    assert "spark.master" not in settings(SparkOptions(), {}, {"spark.master": "spark://a:7077"})
    assert settings(SparkOptions("local[3]"), {}, {"spark.master": "spark://a:7077"})["spark.master"] == "local[3]"


def test_spark_defaults_are_read_as_spark_reads_them(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("# a comment\n\nspark.a 1\nspark.b=2\nspark.c   x y \nalone\n")
    assert spark_defaults({"SPARK_CONF_DIR": str(tmp_path)}) == {"spark.a": "1", "spark.b": "2", "spark.c": "x y"}
    assert spark_defaults({}) == {}


def test_a_master_or_a_remote() -> None:
    with pytest.raises(UsageError, match="both"):
        SparkOptions("local", "sc://a")


def test_a_remote_that_nobody_answers_is_said_at_once() -> None:
    """pyspark itself would try again for minutes, without a word."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    with pytest.raises(SparkGone, match=f"nobody listens at 127.0.0.1:{port}") as raised:
        start(SparkOptions(remote=f"sc://127.0.0.1:{port}/;user_id=x"), {})
    assert raised.value.exit_code == ExitCode.SPARK_GONE
