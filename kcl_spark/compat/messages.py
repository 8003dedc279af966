"""What a processor's methods are given: one object an action, with kclpy's names.

Each is made from the message as it stands on the wire (a dict, so that a processor's own tests can make one by hand),
and knows which method of a version 3 processor it is for. A field that the message lacks is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol, Self

import msgspec

from kcl_spark.compat.checkpoint_error import CheckpointError
from kcl_spark.compat.records import Record
from kcl_spark.protocol import Action, Initialize, LeaseLost, ProcessRecords, ShardEnded, ShutdownRequested

__all__ = [
    "CheckpointInput",
    "InitializeInput",
    "LeaseLostCheckpointer",
    "LeaseLostInput",
    "MessageDispatcher",
    "ProcessRecordsInput",
    "Record",
    "ShardEndedInput",
    "ShutdownInput",
    "ShutdownRequestedInput",
]

Message = Mapping[str, Any]


class Checkpoints(Protocol):
    """Whatever takes checkpoints."""

    def checkpoint(
        self, sequence_number: str | int | None = None, sub_sequence_number: int | str | None = None
    ) -> None:
        """Store a place as done."""


class Processor(Protocol):
    """A processor of version 3, by which all others are served."""

    def initialize(self, initialize_input: InitializeInput) -> None:
        """Begin with a shard."""

    def process_records(self, process_records_input: ProcessRecordsInput) -> None:
        """Take a batch."""

    def lease_lost(self, lease_lost_input: LeaseLostInput) -> None:
        """Stop: another worker has the shard."""

    def shard_ended(self, shard_ended_input: ShardEndedInput) -> None:
        """Finish the shard, and checkpoint without arguments."""

    def shutdown_requested(self, shutdown_requested_input: ShutdownRequestedInput) -> None:
        """Checkpoint for the last time before the lease is given up."""


class MessageDispatcher:
    """A message that knows which method of a processor it is for."""

    def __init__(self, json_dict: Message) -> None:
        self._action: str | None = json_dict.get("action")

    @property
    def action(self) -> str | None:
        """The action's name on the wire."""
        return self._action

    def dispatch(self, checkpointer: Checkpoints, record_processor: Processor) -> None:
        """Call the processor."""
        raise NotImplementedError


class _WithCheckpointer(MessageDispatcher):
    def __init__(self, json_dict: Message) -> None:
        super().__init__(json_dict)
        self._checkpointer: Checkpoints = None  # type: ignore[assignment]  # dispatch sets it

    @property
    def checkpointer(self) -> Checkpoints:
        """What takes checkpoints; None until the message is dispatched."""
        return self._checkpointer


class InitializeInput(MessageDispatcher):
    """The shard, and the lease's checkpoint: digits, or TRIM_HORIZON, LATEST, AT_TIMESTAMP on a new one."""

    def __init__(self, json_dict: Message) -> None:
        super().__init__(json_dict)
        self._shard_id: str = json_dict["shardId"]
        self._sequence_number: str | None = json_dict.get("sequenceNumber")
        self._sub_sequence_number: int | None = json_dict.get("subSequenceNumber")

    @property
    def shard_id(self) -> str:
        """The shard's name."""
        return self._shard_id

    @property
    def sequence_number(self) -> str | None:
        """The last place done, or where a new lease begins."""
        return self._sequence_number

    @property
    def sub_sequence_number(self) -> int | None:
        """The last place done within an aggregate."""
        return self._sub_sequence_number

    def dispatch(self, checkpointer: Checkpoints, record_processor: Processor) -> None:  # noqa: ARG002
        """Call `initialize`."""
        record_processor.initialize(self)


class ProcessRecordsInput(_WithCheckpointer):
    """A batch."""

    def __init__(self, json_dict: Message) -> None:
        super().__init__(json_dict)
        self._arrived: ProcessRecords | None = None
        self._records: list[Record] = json_dict["records"]
        self._millis_behind_latest: int | None = json_dict.get("millisBehindLatest")

    @classmethod
    def of(cls, arrived: ProcessRecords) -> Self:
        """Wrap a batch as it came from the daemon; its records are wrapped when they are first looked at."""
        batch = cls({"action": arrived.kind, "records": [], "millisBehindLatest": arrived.millis_behind_latest})
        batch._arrived = arrived
        return batch

    @property
    def records(self) -> list[Record]:
        """The records, in the shard's order; a list of the processor's own."""
        arrived = self._arrived
        if arrived is not None:  # cleared last, so that no thread can meet an empty list
            text = arrived.undecodable
            self._records = [Record(record, text.get(index)) for index, record in enumerate(arrived.records)]
            self._arrived = None
        return self._records

    @property
    def millis_behind_latest(self) -> int | None:
        """How old the batch was when it was read, in milliseconds."""
        return self._millis_behind_latest

    def dispatch(self, checkpointer: Checkpoints, record_processor: Processor) -> None:
        """Call `process_records`."""
        self._checkpointer = checkpointer
        record_processor.process_records(self)


class LeaseLostInput(MessageDispatcher):
    """The lease is gone; nothing can be checkpointed."""

    def dispatch(self, checkpointer: Checkpoints, record_processor: Processor) -> None:  # noqa: ARG002
        """Call `lease_lost`."""
        record_processor.lease_lost(self)


class ShardEndedInput(_WithCheckpointer):
    """The shard is read to its end, which has to be checkpointed."""

    def dispatch(self, checkpointer: Checkpoints, record_processor: Processor) -> None:
        """Call `shard_ended`."""
        self._checkpointer = checkpointer
        record_processor.shard_ended(self)


class ShutdownRequestedInput(_WithCheckpointer):
    """The lease is about to be given up."""

    def dispatch(self, checkpointer: Checkpoints, record_processor: Processor) -> None:
        """Call `shutdown_requested`."""
        self._checkpointer = checkpointer
        record_processor.shutdown_requested(self)


class LeaseLostCheckpointer:
    """What versions 1 and 2 are given when the lease is lost: it refuses."""

    def checkpoint(
        self,
        sequence_number: str | int | None = None,  # noqa: ARG002
        sub_sequence_number: int | str | None = None,  # noqa: ARG002
    ) -> None:
        """Refuse.

        Raises:
            CheckpointError: always, with kclpy's sentence in place of an error's name.
        """
        raise CheckpointError("Checkpointing is not allowed when the lease is lost")


class ShutdownInput:
    """The end, as versions 1 and 2 know it: TERMINATE at the shard's end, ZOMBIE where the lease is lost."""

    def __init__(self, reason: str, checkpointer: Checkpoints) -> None:
        self._action = "shutdown"
        self._reason = reason
        self._checkpointer = checkpointer

    @staticmethod
    def zombie() -> ShutdownInput:
        """The lease is lost."""
        return ShutdownInput("ZOMBIE", LeaseLostCheckpointer())

    @staticmethod
    def terminate(checkpointer: Checkpoints) -> ShutdownInput:
        """The shard is at its end, which has to be checkpointed."""
        return ShutdownInput("TERMINATE", checkpointer)

    @property
    def reason(self) -> str:
        """TERMINATE or ZOMBIE."""
        return self._reason

    @property
    def checkpointer(self) -> Checkpoints:
        """What takes checkpoints, or refuses them."""
        return self._checkpointer

    @property
    def action(self) -> str:
        """The word `shutdown`."""
        return self._action


class CheckpointInput:
    """The answer to a checkpoint; no processor ever sees one."""

    def __init__(self, json_dict: Message) -> None:
        self._sequence_number: str | None = json_dict.get("sequenceNumber")
        self._sub_sequence_number: int | None = json_dict.get("subSequenceNumber")
        self._error: str | None = json_dict.get("error")

    @property
    def sequence_number(self) -> str | None:
        """What was asked for."""
        return self._sequence_number

    @property
    def sub_sequence_number(self) -> int | None:
        """What was asked for."""
        return self._sub_sequence_number

    @property
    def error(self) -> str | None:
        """Why it was not stored."""
        return self._error


_INPUTS: Final[dict[type[Action], type[MessageDispatcher]]] = {
    Initialize: InitializeInput,
    LeaseLost: LeaseLostInput,
    ShardEnded: ShardEndedInput,
    ShutdownRequested: ShutdownRequestedInput,
}


def message_of(action: Action) -> MessageDispatcher:
    """Wrap what the daemon sent."""
    if isinstance(action, ProcessRecords):
        return ProcessRecordsInput.of(action)
    return _INPUTS[type(action)](msgspec.to_builtins(action))
