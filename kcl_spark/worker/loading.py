"""Finding the `pipeline` in a user's file; whatever is wrong with it is one line that names file, line and reason."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path

from kcl_spark.errors import KclSparkError, UsageError
from kcl_spark.pipeline import Pipeline


def load(path: Path) -> Pipeline:
    """Import the file and return its `pipeline`.

    The file's own folder is importable while it runs, as it is for a script.

    Raises:
        UsageError: it is not there, does not import, or has no `pipeline`.
    """
    path = path.absolute()
    if not path.is_file():
        raise UsageError(f"there is no pipeline file {path}", "Name the Python file that defines `pipeline`")
    found = getattr(_import(path), "pipeline", None)
    if not isinstance(found, Pipeline):
        what = "has no `pipeline`" if found is None else f"has a `pipeline` that is a {type(found).__name__}"
        raise UsageError(f"{path} {what}", "Write: pipeline = Pipeline(name=..., source=..., sink=...)")
    return found


def _import(path: Path) -> object:
    spec = importlib.util.spec_from_file_location(f"kcl_spark_pipeline_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is no Python file", "Its name has to end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except KclSparkError as error:
        raise UsageError(f"{_where(path, error)}: {error.cause}", error.remedy) from error
    except (Exception, SystemExit) as error:
        raise UsageError(f"{_where(path, error)}: {type(error).__name__}: {error}", "Correct the file") from error
    return module


def _where(path: Path, error: BaseException) -> str:
    """The line of the user's file that raised, whatever deeper code it called."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"{path}:{error.lineno}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f"{path}:{frames[-1].lineno}" if frames else str(path)
