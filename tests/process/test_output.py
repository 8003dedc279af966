"""Whatever user code and Spark write to stdout is log: the daemon's pipe carries the protocol and nothing else."""

import os
from collections import Counter
from pathlib import Path

import psutil
import pytest

from tests.process.test_child import descriptors, pipe_of
from tests.process.worker import Worker, rows_of

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("process-local")]

NOISE = """
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

FORGED = '{"action":"status","responseFor":"processRecords"}'
print("module-level print")
os.system("echo module-level shell")

@F.udf(LongType())
def noisy(number):
    print("print in a UDF")
    os.system("echo shell in a UDF")
    print(FORGED, flush=True)
    return number

def transform(df):
    print("print in the transform")
    print(FORGED, flush=True)
    os.write(1, (FORGED + "\\\\n").encode())
    sys.__stdout__.write("written to the first stdout\\\\n")
    sys.__stdout__.flush()
    os.system("echo shell in the transform; sleep 300 &")
    df.show()
    return df.withColumn("id", noisy("id"))
"""


def test_no_output_reaches_the_daemon(local_worker: Worker) -> None:
    """Spark is started by the engine here, so that the UDF's workers have the engine's stdout too."""
    local_worker.declare(NOISE, transform="transform")
    engine = local_worker.engine()
    end = local_worker.child()
    end.open()
    end.deliver(*range(20))
    end.until_checkpoint(19)
    assert end.protocol.ignored_lines == 0
    for text in (
        "module-level print", "module-level shell", "print in a UDF", "shell in a UDF", "print in the transform",
        "written to the first stdout", "shell in the transform", '"responseFor":"processRecords"', "|_shard_id|",
    ):  # fmt: skip
        assert text in engine.log, text
    assert Counter(row["id"] for row in rows_of(local_worker.rows)) == Counter(range(20))
    # Nothing that the engine has started holds the daemon's pipes: not the JVM, not a Python worker, not a shell.
    family = psutil.Process(engine.process.pid).children(recursive=True) + asleep()
    assert len(family) >= 3
    for process in family:
        assert not pipe_of(end) & set(descriptors(process.pid).values()), process
    end.close()
    assert end.exit_code() == 0


def asleep() -> list[psutil.Process]:
    """What the transform left in the background, in this test's engine's session."""
    return [process for process in psutil.process_iter(["cmdline"]) if process.info["cmdline"] == ["sleep", "300"]]


def test_the_log_and_the_folder_are_for_their_user_alone(local_worker: Worker) -> None:
    """An engine that a child has started writes its log itself."""
    del local_worker.environment["KCL_SPARK_FOLDER"]
    local_worker.environment["XDG_RUNTIME_DIR"] = str(local_worker.root)
    os.umask(0o022)
    end = local_worker.child(options=("--no-warm", *local_worker.spark))
    end.open()
    (folder,) = Path(local_worker.root, f"kcl-spark-{os.getuid()}").iterdir()
    assert folder.parent.stat().st_mode & 0o777 == 0o700
    assert folder.stat().st_mode & 0o777 == 0o700
    for name in ("engine.log", "engine.sock", "engine.lock", "start.lock"):
        assert (folder / name).stat().st_mode & 0o777 == 0o600, name
    end.deliver(1)
    end.until_checkpoint(1)
    assert (folder / "spool").stat().st_mode & 0o777 == 0o700
    # A payload never appears in it.
    assert '"id"' not in (folder / "engine.log").read_text()
