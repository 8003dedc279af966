"""The daemon's jars for tests that ask the daemon itself; those are skipped on a machine that has none."""

import os

import pytest

from kcl_spark.daemon.jars import Jars, find
from kcl_spark.errors import UsageError


def installed() -> Jars:
    try:
        return find(None, os.environ)
    except UsageError as error:
        pytest.skip(str(error))
