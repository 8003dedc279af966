#!/usr/bin/env python
# mypy: ignore-errors
"""A processor of version 3, as scripts for amazon_kclpy are written."""

from amazon_kclpy import kcl
from amazon_kclpy.v3 import processor
from obedient import Version3


class RecordProcessor(Version3, processor.RecordProcessorBase):
    pass


if __name__ == "__main__":
    kcl_process = kcl.KCLProcess(RecordProcessor())
    kcl_process.run()
