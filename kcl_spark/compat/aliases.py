"""amazon_kclpy's modules by their old names: whoever imports them gets these, the package being installed or not.

A table of modules and no import hook: all of them together are small, and a name that is not in the table fails as a
name that does not exist.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Final

OLD: Final = "amazon_kclpy"
MODULES: Final = ("checkpoint_error", "kcl", "messages", "v2", "v2.processor", "v3", "v3.processor")


def answer_to_the_old_names() -> None:
    """From now on `import amazon_kclpy` and what is below it mean this package."""
    package = ModuleType(OLD, "kcl_spark.compat, by the name that existing processors import.")
    package.__path__ = []  # it has modules, and none can be found beside those below
    sys.modules[OLD] = package
    for name in MODULES:
        module = import_module(f"kcl_spark.compat.{name}")
        sys.modules[f"{OLD}.{name}"] = module
        if "." not in name:
            setattr(package, name, module)
