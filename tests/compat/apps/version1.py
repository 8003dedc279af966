#!/usr/bin/env python
# mypy: ignore-errors
"""A processor of version 1, as scripts for amazon_kclpy are written."""

from amazon_kclpy import kcl
from obedient import Version1


class RecordProcessor(Version1, kcl.RecordProcessorBase):
    pass


if __name__ == "__main__":
    kcl_process = kcl.KCLProcess(RecordProcessor())
    kcl_process.run()
