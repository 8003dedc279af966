"""The worker's log: one line an event, on stderr, with a time; records' contents never appear in it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TextIO

import structlog


class Log:
    """Writes lines.

    Args:
        target: where to.
        now: what time it is, for the lines only.
    """

    def __init__(self, target: TextIO, now: Callable[[], datetime]) -> None:
        self._now = now
        self._logger = structlog.wrap_logger(
            structlog.PrintLogger(target),
            processors=[self._stamp, structlog.dev.ConsoleRenderer(colors=target.isatty(), pad_event_to=0)],
        )

    def _stamp(self, _: object, level: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        time = self._now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return {"timestamp": time, "level": level, **event}

    def info(self, line: str) -> None:
        """Something happened that is as it should be."""
        self._logger.info(line)

    def warning(self, line: str) -> None:
        """Something happened that a user should know."""
        self._logger.warning(line)
