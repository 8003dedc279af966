"""amazon_kclpy's front door: `KCLProcess(RecordProcessor()).run()` answers the daemon until it closes the pipe.

What happens with each action, in `_handle`:

1. the processor is called; an exception is shown, at once and whatever follows;
2. an exception ends the process, unless that brings nothing back (failures.py);
3. a shard's end has to be recorded (shard_end.py);
4. the status goes out.

If the conversation is over by then, 2 to 4 don't happen: there is nobody to answer.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any, Final, TextIO

from kcl_spark.compat import failures, shard_end
from kcl_spark.compat.checkpoint_error import CheckpointError
from kcl_spark.compat.checkpointer import Checkpointer
from kcl_spark.compat.conversation import Conversation, DaemonGone
from kcl_spark.compat.ends import is_the_daemons, reader, writer
from kcl_spark.compat.failures import OnError
from kcl_spark.compat.group_signals import pass_over_group_signals
from kcl_spark.compat.messages import Checkpoints, message_of
from kcl_spark.compat.pipes import private_pipes
from kcl_spark.compat.records import Record
from kcl_spark.compat.shard_end import End
from kcl_spark.compat.v2.processor import V1toV2Processor
from kcl_spark.compat.v3.processor import V2toV3Processor
from kcl_spark.errors import ExitCode, KclSparkError, UsageError
from kcl_spark.protocol import Action, ShardEnded

__all__ = ["CheckpointError", "Checkpointer", "KCLProcess", "RecordProcessorBase"]


class RecordProcessorBase:
    """Derive a processor of version 1 from this.

    The base class enforces nothing, as amazon_kclpy's doesn't: a method that is missing is missed when it is called.
    """

    version = 1

    def initialize(self, shard_id: str) -> None:
        """Begin with a shard."""
        raise NotImplementedError

    def process_records(self, records: list[Record], checkpointer: Checkpoints) -> None:
        """Take a batch."""
        raise NotImplementedError

    def shutdown(self, checkpointer: Checkpoints, reason: str) -> None:
        """Stop: on TERMINATE checkpoint without arguments, on ZOMBIE checkpoint nothing."""
        raise NotImplementedError

    def shutdown_requested(self, checkpointer: Checkpoints) -> None:
        """Checkpoint for the last time before the lease is given up; does nothing unless overridden."""


_AS_VERSION_3: Final[dict[object, Callable[[Any], Any]]] = {
    1: lambda processor: V2toV3Processor(V1toV2Processor(processor)),
    2: V2toV3Processor,
}
"""Version -> how a processor of it is served; every other version is taken for 3, as amazon_kclpy does."""


class KCLProcess:
    """One process of the daemon's, for one shard.

    Args:
        record_processor: of version 1, 2 or 3, as its attribute `version` says.
        input_file: text file to read messages from; the daemon's pipe unless given.
        output_file: text file to write messages to; the daemon's pipe unless given.
        error_file: text file to log to; stderr unless given.
        on_error: "exit" or "report_success", see failures.py; the environment's choice unless given.
        clock: seconds that only go forward, for the patience at a shard's end.
        sleep: waits, between attempts at a shard's end.

    Attributes:
        processor: the record processor, in the dress of version 3.
        checkpointer: what it checkpoints with.
    """

    def __init__(
        self,
        record_processor: Any,
        input_file: TextIO | None = None,
        output_file: TextIO | None = None,
        error_file: TextIO | None = None,
        *,
        on_error: str | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._log = error_file
        self._on_pipes = is_the_daemons(input_file, 0) or is_the_daemons(output_file, 1)
        self._on_error = failures.chosen(on_error, os.environ)
        self._clock = clock
        self._sleep = sleep
        self._failed = False
        self._conversation = Conversation(reader(input_file), writer(output_file))
        self.checkpointer = Checkpointer(self._conversation, self._say)
        self.processor = _as_version_3(record_processor)

    def run(self) -> None:
        """Answer the daemon until it closes the pipe.

        Raises:
            SystemExit: an action is left unanswered, or the conversation broke, or the processor failed at its end;
                the code is that of errors.py. The processor's own SystemExit passes through.
        """
        try:
            self._make_private()
            self._answer_until_closed()
        except DaemonGone as gone:
            self._say(f"stopped: {gone}")
        except KclSparkError as error:
            self._say(str(error))
            raise SystemExit(int(error.exit_code)) from None
        if self._failed:
            raise SystemExit(int(ExitCode.FAILURE))

    def _make_private(self) -> None:
        if self._on_pipes:
            private_pipes()
            pass_over_group_signals()

    def _answer_until_closed(self) -> None:
        try:
            while (action := self._conversation.next_action()) is not None:
                self._handle(action)
        finally:
            if self._on_pipes:  # at once: a thread of the processor's may keep this process, but not the daemon
                private_pipes().close()

    def _handle(self, action: Action) -> None:
        error = self._call(action)
        self._conversation.go_on()
        if error is not None:
            self._after_failure(action, error)
        elif isinstance(action, ShardEnded):
            self._end_shard()
        self._conversation.done(action)

    def _call(self, action: Action) -> Exception | None:
        try:
            message_of(action).dispatch(self.checkpointer, self.processor)
        except Exception as error:  # its SystemExit is its own way out
            self._say(f"the processor raised {type(error).__name__} in {action.kind}:")
            traceback.print_exception(error, file=self._stderr)
            self._stderr.flush()
            return error
        return None

    def _after_failure(self, action: Action, error: Exception) -> None:
        if self._on_error is OnError.REPORT_SUCCESS:
            self._say(f"{action.kind} is reported as done all the same, and will not come again ({failures.VARIABLE})")
        elif failures.brought_back_by_leaving(action, self._conversation):
            raise failures.unanswered(action, error)
        else:
            self._failed = True

    def _end_shard(self) -> None:
        with self._conversation.turn:
            asked, delivered = self._conversation.asked, self._conversation.delivered
            end = shard_end.standing(asked, delivered)
        if end is End.RECORDED:
            return
        if self._on_error is OnError.REPORT_SUCCESS:
            self._say(f"{shard_end.left(end, asked)}. Reported as done all the same: the lease may stay held for ever")
        elif end is End.OWED:
            shard_end.record_end(self._conversation.ask, self._clock, self._sleep)
        else:
            raise shard_end.left(end, asked)

    @property
    def _stderr(self) -> TextIO:
        """Looked up when it is needed, for programs that put another stderr in its place."""
        return self._log or sys.stderr

    def _say(self, text: str) -> None:
        self._stderr.write(f"kcl-spark: {text}\n")
        self._stderr.flush()


def _as_version_3(record_processor: Any) -> Any:
    version = getattr(record_processor, "version", None)
    if version is None:
        raise UsageError(
            f"{type(record_processor).__name__} has no attribute `version`",
            "Derive it from a RecordProcessorBase, or set 1, 2 or 3",
        )
    return _AS_VERSION_3.get(version, lambda processor: processor)(record_processor)
