"""Kinesis streams into tables with PySpark, exactly once, under the KCL MultiLangDaemon."""

__version__ = "0.1.0"

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kcl_spark import formats, sinks
    from kcl_spark.pipeline import METADATA, DeadLetterLimit, Pipeline, Trigger

__all__ = ["METADATA", "DeadLetterLimit", "Pipeline", "Trigger", "formats", "sinks"]


def __getattr__(name: str) -> Any:
    """Import what is asked for, when it is asked for: commands that need none of it start in a tenth of the time."""
    from importlib import import_module

    if name in ("formats", "sinks"):
        return import_module(f"kcl_spark.{name}")
    if name in __all__:
        return getattr(import_module("kcl_spark.pipeline"), name)
    raise AttributeError(f"module 'kcl_spark' has no attribute {name!r}")
