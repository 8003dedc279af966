#!/usr/bin/env python
# mypy: ignore-errors
"""A script that wants its arguments, its own folder on the path, its name to be __main__, and every old module."""

import sys
from pathlib import Path

import amazon_kclpy.messages
import amazon_kclpy.v2.processor
from amazon_kclpy import checkpoint_error, kcl
from amazon_kclpy.checkpoint_error import CheckpointError
from amazon_kclpy.messages import ShutdownInput
from amazon_kclpy.v3 import processor
from obedient import Version3


class RecordProcessor(Version3, processor.RecordProcessorBase):
    def initialize(self, initialize_input):
        assert isinstance(initialize_input, amazon_kclpy.messages.InitializeInput)
        assert kcl.CheckpointError is CheckpointError is checkpoint_error.CheckpointError
        assert ShutdownInput.zombie().reason == "ZOMBIE"
        assert amazon_kclpy.v2.processor.RecordProcessorBase.version == 2
        self.note("started", __name__, sys.argv[1:], Path(sys.path[0]).name, kcl.__name__)


if __name__ == "__main__":
    kcl.KCLProcess(RecordProcessor()).run()
