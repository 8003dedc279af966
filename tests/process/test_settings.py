"""Whose Spark setting counts, and where Spark runs: what the session itself answers, in a real engine."""

import psutil
import pytest

from kcl_spark.errors import ExitCode
from kcl_spark.worker.spark import DEFAULTS
from tests.process.worker import Worker

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("process-local")]

ASK = """
NAMES = "spark.test.a spark.test.b spark.test.c spark.sql.session.timeZone spark.sql.shuffle.partitions spark.master"

def ask(df):
    for name in NAMES.split():
        print(f"<{name}={df.sparkSession.conf.get(name, None)}>", flush=True)
    return df
"""


def test_who_wins(local_worker: Worker) -> None:
    """--conf over the pipeline over spark-defaults.conf over ours; and --master over the file's."""
    conf = local_worker.root / "conf"
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text(
        "# a comment\nspark.master local[7]\nspark.test.a file\nspark.test.b=file\nspark.test.c   file\n"
        "spark.sql.shuffle.partitions 3\n"
    )
    local_worker.environment["SPARK_CONF_DIR"] = str(conf)
    local_worker.declare(
        ASK, transform="ask", spark="{'spark.test.a': 'pipeline', 'spark.test.b': 'pipeline'}", dead_letter="None"
    )
    log = local_worker.engine("--conf", "spark.test.a=option").log
    assert "<spark.test.a=option>" in log
    assert "<spark.test.b=pipeline>" in log
    assert "<spark.test.c=file>" in log
    assert "<spark.sql.shuffle.partitions=3>" in log
    assert f"<spark.sql.session.timeZone={DEFAULTS['spark.sql.session.timeZone']}>" in log
    assert "<spark.master=local[2]>" in log


def test_the_files_master_is_used_where_no_option_names_one(local_worker: Worker) -> None:
    conf = local_worker.root / "conf"
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text("spark.master local[1]\nspark.driver.memory 512m\n")
    local_worker.environment["SPARK_CONF_DIR"] = str(conf)
    local_worker.spark = ()
    local_worker.declare(ASK, transform="ask", dead_letter="None")
    assert "<spark.master=local[1]>" in local_worker.engine().log


def test_master_and_remote_exclude_each_other(worker: Worker) -> None:
    engine = worker.engine("--master", "local[1]", ready=False)
    assert engine.exit_code() == ExitCode.USAGE
    assert "Give one of --master and --remote" in engine.log


def test_a_session_that_dies_ends_the_engine(local_worker: Worker) -> None:
    engine = local_worker.engine()
    end = local_worker.child()
    end.open()
    (java,) = [p for p in psutil.Process(engine.process.pid).children(recursive=True) if p.name() == "java"]
    java.kill()
    end.deliver(1)
    assert engine.exit_code() == ExitCode.SPARK_GONE
    assert end.exit_code() == ExitCode.SPARK_GONE
