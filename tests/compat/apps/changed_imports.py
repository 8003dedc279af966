#!/usr/bin/env python
# mypy: ignore-errors
"""A processor of version 3 whose imports were changed; started by `python`, and in need of no amazon_kclpy."""

import os

from obedient import Version3

from kcl_spark.compat import kcl
from kcl_spark.compat.v3 import processor


class RecordProcessor(Version3, processor.RecordProcessorBase):
    def process_records(self, process_records_input):
        super().process_records(process_records_input)
        if os.environ.get("LOUD"):
            print("taken")


if __name__ == "__main__":
    kcl_process = kcl.KCLProcess(RecordProcessor())
    kcl_process.run()
