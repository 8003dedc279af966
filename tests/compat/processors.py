"""The conduct of apps/obedient.py on our base classes, for tests that run a processor inside."""

from __future__ import annotations

from typing import Any

from kcl_spark.compat import kcl
from kcl_spark.compat.v2 import processor as v2
from kcl_spark.compat.v3 import processor as v3
from tests.compat.apps import obedient

CONDUCT: dict[int, Any] = {1: obedient.Version1, 2: obedient.Version2, 3: obedient.Version3}
BASES: dict[int, Any] = {1: kcl.RecordProcessorBase, 2: v2.RecordProcessorBase, 3: v3.RecordProcessorBase}


def processor(at_end: str = "persist", version: int = 3, **methods: Any) -> Any:
    """Make a processor; `methods` replace those of its class."""
    return type("RecordProcessor", (CONDUCT[version], BASES[version]), methods)(at_end)
