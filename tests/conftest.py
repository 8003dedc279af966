"""What tests share: one Spark session for the whole run, started only where a test asks for it; and their layers.

A layer is a marker: none (a unit test), `jvm`, `spark`, `process`, `daemon`. `bin/test unit` runs those without one.
Units run first, so that what is simply wrong shows within seconds.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The same commit gives the same result: `pytest --hypothesis-profile=explore` is for finding what nobody thought of.
hypothesis.settings.register_profile("same", derandomize=True, deadline=None)
hypothesis.settings.register_profile("explore", derandomize=False, deadline=None, max_examples=2_000)
hypothesis.settings.load_profile("same")

LAYERS = ("jvm", "spark", "process", "daemon")


def layer(item: pytest.Item) -> int:
    return max((number for number, name in enumerate(LAYERS, 1) if name in item.keywords), default=0)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
        if layer(item) == LAYERS.index("spark") + 1:
            # One worker of xdist has the session: a second JVM would cost more than it brings on two cores.
            item.add_marker(pytest.mark.xdist_group("spark"))
    items.sort(key=layer)


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkSession"]:
    """A local session with the worker's own settings, two cores."""
    from kcl_spark.worker.spark import SparkOptions, start

    session = start(SparkOptions("local[2]", conf={"spark.driver.memory": "1g"}), {})
    yield session
    session.stop()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what tests measured: figures that depend on the machine are reported, not asserted."""
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            terminalreporter.write_line(f"measured: {name}: {value:.2f} ({report.nodeid.rpartition('::')[2]})")
