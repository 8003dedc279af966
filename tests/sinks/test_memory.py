from pathlib import Path

import pytest

from kcl_spark.sinks.base import OpenSink
from kcl_spark.sinks.memory import MemorySink, memory
from tests.sinks.contract import SinkContract


class TestMemory(SinkContract):
    @pytest.fixture
    def table(self, tmp_path: Path) -> MemorySink:
        return memory()

    def opened(self, table: MemorySink, ledger: str = "test") -> OpenSink:
        return table.open(ledger)

    def ids(self, table: MemorySink) -> list[int]:
        return [row["id"] for row in table.table.rows]
