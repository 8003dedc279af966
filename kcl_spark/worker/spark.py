"""The one long-lived Spark session of a worker: started once, warmed before it is needed, never touched below its API.

Whose word counts, from the strongest: `--conf`, the pipeline's `spark` settings, spark-defaults.conf, ours. Spark gives
a builder's settings precedence over spark-defaults.conf, so ours are left out where that file has a word of its own.

Only the DataFrame API is used, so that `local[*]`, any cluster master and Spark Connect (`remote`) all work.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from kcl_spark.errors import SparkGone, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG4J: Final = Path(__file__).with_name("log4j2.properties")

_CONNECT_PORT: Final = 15002
"""Spark Connect's own default."""

DEFAULTS: Final[Mapping[str, str]] = {
    "spark.app.name": "kcl-spark",
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOG4J} -XX:-UsePerfData",
    "spark.log.level": "WARN",
    # Off: a long-lived driver would keep every job's history, and the bar writes to the log without end.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Timestamps in the files as every reader expects them, and dates that do not depend on the machine.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.session.timeZone": "UTC",
    # Small batches should not be cut into 200 pieces by a transform that groups.
    "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
    # The checksummed local file system leaves a .crc file beside each data file, which nothing would ever collect.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
}
"""Ours, for a session that we start; a remote one is as its owner made it."""


@dataclass(frozen=True)
class SparkOptions:
    """Where Spark runs and how.

    Attributes:
        master: a master's address; None leaves it to spark-defaults.conf, and then to `local[*]`.
        remote: a Spark Connect address; excludes `master`.
        conf: settings that win over all others.
    """

    master: str | None = None
    remote: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.master and self.remote:
            raise UsageError("both a master and a remote are given", "Give one of --master and --remote")


def spark_defaults(environment: Mapping[str, str]) -> dict[str, str]:
    """Read spark-defaults.conf, from SPARK_CONF_DIR or SPARK_HOME/conf; empty where there is none."""
    folder = environment.get("SPARK_CONF_DIR")
    if folder is None and "SPARK_HOME" in environment:
        folder = f"{environment['SPARK_HOME']}/conf"
    path = Path(folder or "/nonexistent") / "spark-defaults.conf"
    if not path.is_file():
        return {}
    lines = (line.strip() for line in path.read_text().splitlines())
    pairs = (line.replace("=", " ", 1).split(None, 1) for line in lines if line and not line.startswith("#"))
    return {pair[0]: pair[1].strip() for pair in pairs if len(pair) > 1}


def settings(options: SparkOptions, pipeline: Mapping[str, str], file: Mapping[str, str]) -> dict[str, str]:
    """Merge the four sources by their rank, for a session that we start ourselves."""
    merged = {key: value for key, value in DEFAULTS.items() if key not in file} | dict(pipeline) | dict(options.conf)
    if options.master:
        merged["spark.master"] = options.master
    elif "spark.master" not in file:
        merged.setdefault("spark.master", "local[*]")
    return merged


def start(options: SparkOptions, pipeline: Mapping[str, str]) -> SparkSession:
    """Start or reach the session. Blocks for seconds.

    Raises:
        SparkGone: it can't be started or reached.
    """
    from pyspark.sql import SparkSession

    # Executors on this machine must run the interpreter that has the user's packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder
    if options.remote:
        _knock(options.remote)
        configured = builder.remote(options.remote)
        merged = dict(pipeline) | dict(options.conf)
    else:
        configured = builder
        merged = settings(options, pipeline, spark_defaults(os.environ))
        if merged.get("spark.master", "").startswith("local"):
            # Not the machine's name: a container's need not resolve, and nobody outside has to reach the driver.
            os.environ.setdefault("SPARK_LOCAL_HOSTNAME", "localhost")
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    for key, value in merged.items():
        configured = configured.config(key, value)
    try:
        return configured.getOrCreate()
    except Exception as error:
        where = options.remote or merged.get("spark.master", "the master of spark-defaults.conf")
        raise SparkGone(
            f"Spark can't be started on {where}: {str(error).strip().splitlines()[0]}",
            "Run `kcl-spark doctor` to see what the machine lacks",
        ) from error


def _knock(remote: str) -> None:
    """See whether somebody listens there: pyspark would go on trying for minutes, without a word.

    Raises:
        SparkGone: nobody does.
    """
    address = urlsplit(remote)
    if address.scheme != "sc" or address.hostname is None:
        return  # "local[2]" and the like: pyspark starts a server of its own
    try:
        socket.create_connection((address.hostname, address.port or _CONNECT_PORT), timeout=10.0).close()
    except OSError as error:
        raise SparkGone(
            f"nobody listens at {address.hostname}:{address.port or _CONNECT_PORT}: {error.strerror or error}",
            "Start a Spark Connect server there, or mind --remote",
        ) from error
