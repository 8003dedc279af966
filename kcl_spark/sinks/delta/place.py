"""One table, three libraries: the same folder as delta-rs, Spark and pyarrow each want to hear of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pyarrow import fs

from kcl_spark.errors import UsageError

_S3_OPTIONS = {
    "AWS_ACCESS_KEY_ID": "access_key",
    "AWS_SECRET_ACCESS_KEY": "secret_key",
    "AWS_SESSION_TOKEN": "session_token",
    "AWS_REGION": "region",
    "AWS_ENDPOINT_URL": "endpoint_override",
}
"""delta-rs' names for S3 settings -> pyarrow's."""


@dataclass(frozen=True)
class Place:
    """Where a table is: a local path, or `s3://bucket/key`.

    Attributes:
        uri: as the user gave it; a relative path is taken from the working directory.
        options: storage options in delta-rs' words (AWS_REGION, AWS_ENDPOINT_URL, ...).
    """

    uri: str
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        scheme = urlsplit(self.uri).scheme
        if scheme not in ("", "file", "s3", "s3a"):
            raise UsageError(f"a Delta table can't be written to {self.uri}", "Use a local path or s3://bucket/key")
        if not self.uri.strip("/ "):
            raise UsageError(f"{self.uri!r} is no place for a table", "Use a folder of its own")

    @property
    def _remote(self) -> bool:
        return urlsplit(self.uri).scheme in ("s3", "s3a")

    @property
    def delta(self) -> str:
        """For delta-rs."""
        if self._remote:
            return "s3://" + self._key
        return str(Path(self.uri.removeprefix("file://")).absolute())

    @property
    def spark(self) -> str:
        """For Spark, whose S3 file system is called s3a (the jar is hadoop-aws)."""
        return "s3a://" + self._key if self._remote else Path(self.delta).as_uri()

    @property
    def root(self) -> str:
        """The table's folder on `filesystem`."""
        return self._key if self._remote else self.delta

    def filesystem(self) -> fs.FileSystem:
        """For listing, reading footers and removing what was abandoned."""
        return fs.S3FileSystem(**self._s3()) if self._remote else fs.LocalFileSystem()

    def _s3(self) -> dict[str, Any]:
        given: dict[str, Any] = {_S3_OPTIONS[key]: value for key, value in self.options.items() if key in _S3_OPTIONS}
        endpoint = given.get("endpoint_override", "")
        if endpoint.startswith("http://"):
            given |= {"endpoint_override": endpoint.removeprefix("http://"), "scheme": "http"}
        return given

    @property
    def _key(self) -> str:
        return self.uri.split("://", 1)[1].rstrip("/")
