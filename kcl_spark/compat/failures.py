"""An exception of the processor is always shown, and by default no status covers it up.

A status says "handled", so the next checkpoint without arguments passes over the batch that failed. Leaving without one
ends the daemon, which delivers the batch again when it is restarted. Where that would bring nothing back, leaving would
only cost the worker's other shards, so the status is sent and the exit code tells:

    an exception in                                     delivered again by leaving?          so, by default
    -------------------------------------------------   ----------------------------------   ----------------------
    initialize, process_records, shutdown_requested     yes                                  leave without a status
    shard_ended, the end not recorded                   yes                                  leave without a status
    shard_ended, the end recorded                       no: the shard is finished            status; exit code 1
    lease_lost                                          no: to another worker, in any case   status; exit code 1
    any, after a checkpoint met ShutdownException       no: likewise                         status; exit code 1

`on_error="report_success"` sends the status always, as amazon_kclpy does.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from kcl_spark.compat import shard_end
from kcl_spark.compat.conversation import Conversation
from kcl_spark.compat.shard_end import End
from kcl_spark.errors import KclSparkError, UsageError
from kcl_spark.protocol import Action, LeaseLost, ShardEnded

VARIABLE: Final = "KCL_SPARK_COMPAT_ON_ERROR"


class OnError(StrEnum):
    """What to tell the daemon after the processor failed."""

    EXIT = "exit"
    REPORT_SUCCESS = "report_success"


def chosen(parameter: str | None, environment: Mapping[str, str]) -> OnError:
    """Return what the program says, else the environment, else `OnError.EXIT`.

    Raises:
        UsageError: no such choice.
    """
    given = parameter or environment.get(VARIABLE) or OnError.EXIT
    try:
        return OnError(given)
    except ValueError:
        raise UsageError(
            f"on_error is {given!r}",
            f"Give {' or '.join(map(repr, map(str, OnError)))}, as a parameter or in {VARIABLE}",
        ) from None


def brought_back_by_leaving(action: Action, conversation: Conversation) -> bool:
    """Read the table above: tell whether the action is delivered again if it is not answered."""
    if isinstance(action, LeaseLost) or conversation.lease_gone:
        return False
    if isinstance(action, ShardEnded):
        return shard_end.standing(conversation.asked, conversation.delivered) is not End.RECORDED
    return True


def unanswered(action: Action, error: Exception) -> KclSparkError:
    """Say why an action is not answered."""
    return KclSparkError(
        f"the processor raised {type(error).__name__} in {action.kind}, which is left unanswered",
        "It is delivered again when the daemon is restarted; "
        f"{VARIABLE}={OnError.REPORT_SUCCESS} would report success and go on, past what was not processed",
    )
