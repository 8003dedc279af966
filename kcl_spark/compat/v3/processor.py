"""Version 3: a method an action, each with one message.

The base class enforces nothing, as amazon_kclpy's doesn't: a method that is missing is missed when it is called.
"""

from __future__ import annotations

from typing import Protocol

from kcl_spark.compat.messages import (
    InitializeInput,
    LeaseLostInput,
    ProcessRecordsInput,
    ShardEndedInput,
    ShutdownInput,
    ShutdownRequestedInput,
)


class RecordProcessorBase:
    """Derive a processor of version 3 from this."""

    version = 3

    def initialize(self, initialize_input: InitializeInput) -> None:
        """Begin with a shard."""
        raise NotImplementedError

    def process_records(self, process_records_input: ProcessRecordsInput) -> None:
        """Take a batch."""
        raise NotImplementedError

    def lease_lost(self, lease_lost_input: LeaseLostInput) -> None:
        """Stop: another worker has the shard."""
        raise NotImplementedError

    def shard_ended(self, shard_ended_input: ShardEndedInput) -> None:
        """Finish the shard, and checkpoint without arguments."""
        raise NotImplementedError

    def shutdown_requested(self, shutdown_requested_input: ShutdownRequestedInput) -> None:
        """Checkpoint for the last time before the lease is given up."""
        raise NotImplementedError


class _Version2(Protocol):
    def initialize(self, initialize_input: InitializeInput) -> None: ...
    def process_records(self, process_records_input: ProcessRecordsInput) -> None: ...
    def shutdown(self, shutdown_input: ShutdownInput) -> None: ...
    def shutdown_requested(self, shutdown_requested_input: ShutdownRequestedInput) -> None: ...


class V2toV3Processor(RecordProcessorBase):
    """Serve a processor of version 2, which knows both ends of a shard as a `shutdown`."""

    def __init__(self, delegate: _Version2) -> None:
        self.delegate = delegate

    def initialize(self, initialize_input: InitializeInput) -> None:
        """Pass it on."""
        self.delegate.initialize(initialize_input)

    def process_records(self, process_records_input: ProcessRecordsInput) -> None:
        """Pass it on."""
        self.delegate.process_records(process_records_input)

    def lease_lost(self, lease_lost_input: LeaseLostInput) -> None:  # noqa: ARG002 - there is nothing in it
        """Shut down as a ZOMBIE, with a checkpointer that refuses."""
        self.delegate.shutdown(ShutdownInput.zombie())

    def shard_ended(self, shard_ended_input: ShardEndedInput) -> None:
        """Shut down as TERMINATE, with the checkpointer."""
        self.delegate.shutdown(ShutdownInput.terminate(shard_ended_input.checkpointer))

    def shutdown_requested(self, shutdown_requested_input: ShutdownRequestedInput) -> None:
        """Pass it on."""
        self.delegate.shutdown_requested(shutdown_requested_input)
