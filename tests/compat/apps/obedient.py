# mypy: ignore-errors
"""What the scripts beside this do with what they are given: note everything they see, and obey what the records say.

    a record's data       what the processor does
    -------------------   ---------------------------------------------------------------------
    !checkpoint           checkpoint without arguments
    !checkpoint here      checkpoint this record by both numbers
    !checkpoint number    checkpoint this record by its sequence number
    !persist              checkpoint without arguments, again and again while it is throttled
    !raise                raise ValueError
    anything else         nothing

Nothing here imports amazon_kclpy, so that the same conduct is given to its base classes and to ours.
"""

import json
import os


def checkpoint_error_name(error):
    return [type(error).__name__, error.value, str(error)]


class Obedient:
    """Conduct for a processor of any version.

    Args:
        at_end: what to do at the end and when asked to shut down: persist, once, number, forget, or raise.
    """

    def __init__(self, at_end=None):
        self.at_end = at_end or os.environ.get("AT_END", "persist")
        self.seen = []
        self.last = None

    def note(self, *what):
        self.seen.append(list(what))
        path = os.environ.get("SEEN")
        if path:
            with open(path, "a", encoding="utf-8") as file:  # noqa: PTH123
                file.write(json.dumps(list(what)) + "\n")

    def take(self, records, checkpointer):
        for record in records:
            self.note("record", *self.everything_about(record))
            self.last = record
            self.obey(record, checkpointer)

    def everything_about(self, record):
        fields = (
            "data",
            "partitionKey",
            "sequenceNumber",
            "subSequenceNumber",
            "approximateArrivalTimestamp",
            "action",
        )
        arrived = record.approximate_arrival_timestamp
        return [
            record.binary_data.hex(),
            record.data,
            record.partition_key,
            record.sequence_number,
            record.sub_sequence_number,
            record.timestamp_millis,
            [arrived.isoformat(), str(arrived.tzinfo)],
            [record[field] for field in fields],
            [record.get(field) for field in fields],
        ]

    def obey(self, record, checkpointer):
        word = record.binary_data.decode("latin-1")
        if word == "!checkpoint":
            self.try_to(checkpointer.checkpoint)
        elif word == "!checkpoint here":
            self.try_to(checkpointer.checkpoint, record.sequence_number, record.sub_sequence_number)
        elif word == "!checkpoint number":
            self.try_to(checkpointer.checkpoint, record.sequence_number)
        elif word == "!persist":
            self.persist(checkpointer)
        elif word == "!raise":
            raise ValueError("told to")

    def try_to(self, checkpoint, *arguments, **named):
        """Checkpoint; True unless it is worth another try."""
        try:
            self.note("returned", checkpoint(*arguments, **named))
        except Exception as error:
            self.note("error", *checkpoint_error_name(error))
            return error.value != "ThrottlingException"
        return True

    def persist(self, checkpointer):
        while not self.try_to(checkpointer.checkpoint):
            self.note("throttled")

    def finish(self, checkpointer):
        if self.at_end == "persist":
            self.persist(checkpointer)
        elif self.at_end == "once":
            self.try_to(checkpointer.checkpoint)
        elif self.at_end == "number" and self.last is not None:
            self.try_to(
                checkpointer.checkpoint,
                sequence_number=self.last.sequence_number,
                sub_sequence_number=self.last.sub_sequence_number,
            )
        elif self.at_end == "raise":
            raise ValueError("told to, at the end")


class Version1(Obedient):
    def initialize(self, shard_id):
        self.note("initialize", shard_id)

    def process_records(self, records, checkpointer):
        self.note("process_records", len(records))
        self.take(records, checkpointer)

    def shutdown(self, checkpointer, reason):
        self.note("shutdown", reason)
        self.finish(checkpointer)

    def shutdown_requested(self, checkpointer):
        self.note("shutdown_requested")
        self.finish(checkpointer)


class _Versions2And3(Obedient):
    def initialize(self, initialize_input):
        given = initialize_input
        self.note("initialize", given.action, given.shard_id, given.sequence_number, given.sub_sequence_number)

    def process_records(self, process_records_input):
        given = process_records_input
        self.note("process_records", given.action, len(given.records), given.millis_behind_latest)
        self.take(given.records, given.checkpointer)

    def shutdown_requested(self, shutdown_requested_input):
        self.note("shutdown_requested", shutdown_requested_input.action)
        self.finish(shutdown_requested_input.checkpointer)


class Version2(_Versions2And3):
    def shutdown(self, shutdown_input):
        self.note("shutdown", shutdown_input.action, shutdown_input.reason)
        self.finish(shutdown_input.checkpointer)


class Version3(_Versions2And3):
    def lease_lost(self, lease_lost_input):
        self.note("lease_lost", lease_lost_input.action)

    def shard_ended(self, shard_ended_input):
        self.note("shard_ended", shard_ended_input.action)
        self.finish(shard_ended_input.checkpointer)
