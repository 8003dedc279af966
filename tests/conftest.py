"""What tests share: one Spark session for the whole run, started only where a test asks for it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkSession"]:
    """A local session with the worker's own settings, two cores."""
    from kcl_spark.worker.spark import SparkOptions, start

    session = start(SparkOptions("local[2]", conf={"spark.driver.memory": "1g"}), {})
    yield session
    session.stop()
