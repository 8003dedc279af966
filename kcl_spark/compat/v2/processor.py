"""Version 2: a method an action but for the end, which is `shutdown` with a reason.

The base class enforces nothing, as amazon_kclpy's doesn't: a method that is missing is missed when it is called.
"""

from __future__ import annotations

from typing import Protocol

from kcl_spark.compat.messages import (
    Checkpoints,
    InitializeInput,
    ProcessRecordsInput,
    Record,
    ShutdownInput,
    ShutdownRequestedInput,
)


class RecordProcessorBase:
    """Derive a processor of version 2 from this."""

    version = 2

    def initialize(self, initialize_input: InitializeInput) -> None:
        """Begin with a shard."""
        raise NotImplementedError

    def process_records(self, process_records_input: ProcessRecordsInput) -> None:
        """Take a batch."""
        raise NotImplementedError

    def shutdown(self, shutdown_input: ShutdownInput) -> None:
        """Stop: on TERMINATE checkpoint without arguments, on ZOMBIE checkpoint nothing."""
        raise NotImplementedError

    def shutdown_requested(self, shutdown_requested_input: ShutdownRequestedInput) -> None:
        """Checkpoint for the last time before the lease is given up; does nothing unless overridden."""


class _Version1(Protocol):
    def initialize(self, shard_id: str) -> None: ...
    def process_records(self, records: list[Record], checkpointer: Checkpoints) -> None: ...
    def shutdown(self, checkpointer: Checkpoints, reason: str) -> None: ...
    def shutdown_requested(self, checkpointer: Checkpoints) -> None: ...


class V1toV2Processor(RecordProcessorBase):
    """Serve a processor of version 1, which is given the parts of each message instead of the message."""

    def __init__(self, delegate: _Version1) -> None:
        self.delegate = delegate

    def initialize(self, initialize_input: InitializeInput) -> None:
        """Pass the shard's name on."""
        self.delegate.initialize(initialize_input.shard_id)

    def process_records(self, process_records_input: ProcessRecordsInput) -> None:
        """Pass the records and the checkpointer on."""
        self.delegate.process_records(process_records_input.records, process_records_input.checkpointer)

    def shutdown(self, shutdown_input: ShutdownInput) -> None:
        """Pass the checkpointer and the reason on."""
        self.delegate.shutdown(shutdown_input.checkpointer, shutdown_input.reason)

    def shutdown_requested(self, shutdown_requested_input: ShutdownRequestedInput) -> None:
        """Pass the checkpointer on."""
        self.delegate.shutdown_requested(shutdown_requested_input.checkpointer)
