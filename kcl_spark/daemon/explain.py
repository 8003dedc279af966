"""Say what each line of a properties file comes to: the value as the daemon takes it, the default, and the note."""

from __future__ import annotations

from typing import Final, NamedTuple

from kcl_spark.daemon.keys import builder_of, find
from kcl_spark.daemon.properties import effective, parse
from kcl_spark.daemon.values import is_secret, understood

_IGNORED: Final = "unknown to the daemon, which ignores it"


class Explained(NamedTuple):
    """One setting that counts.

    Attributes:
        line: where it stands.
        key: as written.
        value: as the daemon takes it; dots where it is a secret.
        default: what would hold without it.
        note: what it does.
    """

    line: int
    key: str
    value: str
    default: str
    note: str


def explain(text: str) -> list[Explained]:
    """Every setting that counts, in the order of the file.

    Raises:
        UsageError: the text can't be read by the daemon either.
    """
    return [_explained(*entry) for entry in sorted(effective(parse(text)).values())]


def _explained(line: int, name: str, value: str) -> Explained:
    shown = "…" if is_secret(name, value) else value
    key = find(name)
    if key is None:
        builder = builder_of(name)
        note = f"set on the AWS SDK's builder of {builder}" if builder else _IGNORED
        return Explained(line, name, shown, "", note)
    return Explained(line, name, understood(key, shown), key.default, key.note)
