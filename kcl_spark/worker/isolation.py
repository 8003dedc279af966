"""Finding the records that break a transform: probes first, then halves. Pure; the trial itself is a parameter.

A failing job does not say which record it failed on. If the transform is broken, every record is a culprit, and
quarantine would empty the stream into the dead letters; so before anything is halved, records spread over the batch are
tried one by one, and if not one of them passes, the transform is the culprit. Then the batch is halved until each
failing piece is a single record: about `2 · culprits · log2(rows)` trials.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

PROBES: Final = 8
"""Single records tried before halving. If a share f of the records fails, a sound transform is taken for a broken one
with probability f^8: one in a hundred million at the default dead-letter limit of 10 %."""

Trial = Callable[[Sequence[int]], str | None]
"""Try some rows: None if they pass, else the reason."""


class NothingPasses(Exception):
    """Every probe failed; carries the last reason and how many were tried."""

    def __init__(self, reason: str, tried: int) -> None:
        super().__init__(reason, tried)
        self.reason = reason
        self.tried = tried


def culprits(rows: int, trial: Trial) -> dict[int, str]:
    """Return the rows that fail on their own, with their reasons; empty if the failure can't be traced to any row.

    Args:
        rows: how many rows the failing batch has, at least one.
        trial: tries some of them, by number.

    Raises:
        NothingPasses: none of the probes passed, and they were all of the rows or `PROBES` of them.
    """
    found = _probe(rows, trial)
    _halve([row for row in range(rows) if row not in found], trial, found)
    return {row: reason for row, reason in sorted(found.items()) if reason is not None}


def _probe(rows: int, trial: Trial) -> dict[int, str | None]:
    """Try single rows spread evenly; return what came of each."""
    chosen = sorted({index * rows // PROBES for index in range(min(PROBES, rows))} if rows > PROBES else range(rows))
    tried = {row: trial([row]) for row in chosen}
    reasons = [reason for reason in tried.values() if reason is not None]
    if len(reasons) == len(tried):
        raise NothingPasses(reasons[-1], len(tried))
    return tried


def _halve(rows: Sequence[int], trial: Trial, found: dict[int, str | None]) -> None:
    pieces = [list(rows)]
    while pieces:
        piece = pieces.pop()
        reason = trial(piece) if piece else None
        if reason is None:
            continue
        if len(piece) == 1:
            found[piece[0]] = reason
            continue
        middle = len(piece) // 2
        pieces += [piece[middle:], piece[:middle]]
