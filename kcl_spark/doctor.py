"""What `kcl-spark doctor` looks at, in the order in which a worker would stumble over it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from kcl_spark.daemon import checks, checks_aws, properties
from kcl_spark.daemon.checks import Check
from kcl_spark.errors import UsageError
from kcl_spark.pipeline import Trigger
from kcl_spark.worker import child
from kcl_spark.worker.declared import declared
from kcl_spark.worker.running import RunOptions, generated


def examine(options: RunOptions | None, environment: Mapping[str, str]) -> Iterator[Check]:
    """Check the machine, and with options the pipeline, its properties and what AWS has; each check as it is done.

    Args:
        options: what would be run; None: the machine alone.
        environment: as a worker would have it.
    """
    yield checks.java(environment)
    yield checks.memory()
    yield checks.daemon_jars(options.jars if options else None, environment)
    if options is None:
        yield checks_aws.credentials()
        return
    folder = options.folder or Path(child.folder_of(str(options.pipeline)))
    yield checks.socket_folder(folder / child.SOCKET)
    yield checks.disk(folder, 2 * Trigger().byte_limit)
    yield checks.blanks([str(options.pipeline.absolute())])
    yield _pipeline(options.pipeline)
    yield from _properties_and_aws(options)


def _pipeline(path: Path) -> Check:
    try:
        found = declared(path)
    except UsageError as error:
        return Check("pipeline", "error", error.cause, error.remedy)
    promise = "exactly once" if found.keeps_marks else "best effort"
    return Check("pipeline", "ok", f"{found.name}, {promise}, into {found.sink}")


def _properties_and_aws(options: RunOptions) -> Iterator[Check]:
    try:
        text = _text(options)
    except UsageError as error:
        yield Check("properties", "error", error.cause, error.remedy)
        yield checks_aws.credentials()
        return
    yield checks.properties(text)
    target = checks_aws.target_of(text)
    yield checks_aws.credentials()
    yield checks_aws.stream(target)
    yield checks_aws.lease_table(target)


def _text(options: RunOptions) -> str:
    return properties.read(options.properties) if options.properties else generated(options)
