"""The open Delta table: Spark writes the files, one commit of delta-rs makes them visible and moves the marks.

A commit, step by step (the numbers stand in `commit` too):

1. Load the newest state of the table; there may be none yet.
2. Compare the shards' versions in it with the entries that the batch was built on: a difference is a conflict.
3. Compare the staged files' columns with the table's, and see that the files are there.
4. Write {adds, marks} built on exactly that state. delta-rs re-reads what others commit meanwhile and lets our commit
   pass over it only if none of it touched one of our application ids; it never re-bases over a shard.
5. Load our own commit, so that the next one does not take it for somebody else's.

delta-rs does not compare versions itself (the same or a lower one is taken without a word), hence 2; after a commit its
handle is stale, hence 5; its retries must stay on (with 0 it fails as soon as the table moved at all).
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.schema import Field
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions
from pyarrow import compute as pc
from pyarrow import fs

from kcl_spark.errors import CommitConflict, OutcomeUnknown, SinkError, TableRefused
from kcl_spark.positions import Position
from kcl_spark.sinks.base import Entry, Move, Staged
from kcl_spark.sinks.delta import ledger, rules
from kcl_spark.sinks.delta.compaction import Compaction, Compactor
from kcl_spark.sinks.delta.files import StagedFile, staged_files
from kcl_spark.sinks.delta.place import Place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_UNREACHABLE: Final = "Look at the path, the credentials and the storage options"
_NO_DICTIONARY: Final = "parquet.enable.dictionary#"
_CREATED: Final = "already exists"
_CONFLICTS: Final = ("Concurrent transaction failed", "Transaction conflict")


class OpenDelta:
    """A Delta table in use.

    Args:
        place: where it is.
        partition_by: its partition columns.
        evolve: whether columns may be added.
        writer_options: Spark's Parquet options.
        compaction: when to compact; None for never.
        name: the ledger's name.
        stream: the stream's name, where it is known.
        token: makes the name of a staging folder; random by default.
    """

    def __init__(
        self,
        place: Place,
        partition_by: tuple[str, ...],
        *,
        evolve: bool,
        writer_options: dict[str, str],
        compaction: Compaction | None,
        name: str,
        stream: str | None = None,
        token: Callable[[], str] = lambda: uuid.uuid4().hex,
    ) -> None:
        self._place = place
        self._partition_by = partition_by
        self._evolve = evolve
        self._writer_options = writer_options
        self._name = name
        self._stream = stream
        self._token = token
        self._lock = RLock()
        self._handle: DeltaTable | None = None
        self._fields: list[dict[str, Any]] = []
        self._ours: int | None = None
        self._versions: dict[str, int] = {}
        self._plain: dict[str, str] = {}
        self._filesystem: fs.FileSystem = place.filesystem()
        self._compactor = Compactor(place, compaction) if compaction else None

    # ------------------------------------------------------------------------------------------------- reading

    def check(self, schema: StructType) -> None:
        """See `OpenSink.check`; what is checked here is checked again by each commit, should the table change."""
        self._fields = schema.jsonValue()["fields"]
        rules.refuse_unsuitable(self._fields, self._partition_by)
        with self._lock:
            table = self._load()
            if table is not None:
                self._check_table(table)

    def entries(self, shard_ids: Collection[str]) -> Mapping[str, Entry]:
        """See `OpenSink.entries`."""
        with self._lock:
            table = self._load()
            if table is None:
                return dict.fromkeys(shard_ids, Entry())
            return {shard_id: ledger.read_entry(table, self._name, shard_id) for shard_id in shard_ids}

    def identities(self, shard_id: str, after: Position | None) -> set[Position]:
        """See `OpenSink.identities`; reads two columns of the files that may hold the shard."""
        with self._lock:
            table = self._load()
        if table is None:
            return set()
        rows = table.to_pyarrow_dataset().to_table(
            columns=["_sequence_number", "_sub_sequence_number"], filter=pc.field("_shard_id") == shard_id
        )
        places = map(Position.parse, *(rows[name].to_pylist() for name in rows.column_names))
        return {place for place in places if after is None or place > after}

    def _load(self) -> DeltaTable | None:
        """The table's newest state; None where there is no table."""
        try:
            if self._handle is None:
                self._handle = DeltaTable(self._place.delta, storage_options=dict(self._place.options))
            else:
                self._handle.update_incremental()
        except TableNotFoundError:
            self._handle = None
        except (DeltaError, OSError) as error:
            self._handle = None
            raise SinkError(f"the table {self._place.uri} can't be read: {_first_line(error)}", _UNREACHABLE) from error
        return self._handle

    def _check_table(self, table: DeltaTable) -> None:
        rules.refuse_unsupported(table)
        has = tuple(table.metadata().partition_columns)
        if has != self._partition_by:
            raise TableRefused(
                f"the table {self._place.uri} is partitioned by {has or 'nothing'}, the sink by "
                f"{self._partition_by or 'nothing'}",
                "Declare the table's own partition columns",
            )
        known = ledger.read_stream(table, self._name)
        if self._stream is not None and known not in (None, ledger.fingerprint(self._stream)):
            raise TableRefused(
                f"the ledger {self._name} in {self._place.uri} was begun on another stream than {self._stream}",
                "Give the pipeline another name: its marks are places in one stream",
            )
        rules.new_columns(table, self._fields, additive=self._evolve)

    # ------------------------------------------------------------------------------------------------- staging

    def stage(self, frame: DataFrame, name: str) -> Staged:
        """See `OpenSink.stage`; the folder does not begin with `_`, or readers and vacuum would pass it over."""
        folder = f"kcl-spark-{name}-{self._token()}"
        fields = self._expected(frame.schema)
        # Spark Connect knows this word for it, and not `errorifexists`.
        writer = frame.write.mode("error").options(**(self._plain | self._writer_options))
        if self._partition_by:
            writer = writer.partitionBy(*self._partition_by)
        try:
            writer.parquet(f"{self._place.spark}/{folder}")
            files = staged_files(self._filesystem, self._place.root, folder, self._partition_by)
        except BaseException:
            self._remove(folder)
            raise
        # Learned from the footers: the writer's attempt at a dictionary of unique values costs a tenth of its time.
        self._plain |= {f"{_NO_DICTIONARY}{column}": "false" for file in files for column in file.varied}
        return Staged(sum(file.rows for file in files), sum(file.size for file in files), _Token(folder, files, fields))

    def _expected(self, schema: StructType) -> list[dict[str, Any]]:
        """A batch's columns, which a transform may make from its data: they have to be the ones that were checked."""
        fields: list[dict[str, Any]] = schema.jsonValue()["fields"]
        if _types(fields) != _types(self._fields):
            if not self._evolve:
                raise rules.drift(self._place.uri, _types(self._fields), _types(fields))
            rules.refuse_unsuitable(fields, self._partition_by)
        return fields

    def abandon(self, staged: Staged) -> None:
        """See `OpenSink.abandon`."""
        self._remove(_token_of(staged).folder)

    def _remove(self, folder: str) -> None:
        with suppress(OSError):
            self._filesystem.delete_dir(f"{self._place.root}/{folder}")

    # ------------------------------------------------------------------------------------------------- committing

    def commit(self, staged: Staged | None, moves: Sequence[Move]) -> None:
        """See `OpenSink.commit`; the numbers are those of the module's first lines."""
        token = _token_of(staged) if staged else _Token("", [], self._fields)
        with self._lock:
            table = self._load()  # 1
            if table is not None:
                self._look_again(table)
                if staged:
                    self._add_columns(table, token.fields)  # before the fence: it moves on to a newer state
                self._fence(table, moves)  # 2
            self._see(token.files)  # 3
            before = -1 if table is None else table.version()
            properties = self._properties(table, moves)
            try:
                self._write(table, token, properties)  # 4
            except Exception as error:  # whatever it is: the commit may have happened
                self._ours = None
                raise self._judged(error, table) from error
            self._note_ours(before, moves)  # 5
        if self._compactor and token.files:
            with suppress(OSError):  # no process to be had now; a later commit asks again
                self._compactor.committed()

    def _look_again(self, table: DeltaTable) -> None:
        """What was known of the table holds only while nobody but us has committed."""
        if table.version() != self._ours:
            self._versions.clear()
            self._check_table(table)

    def _fence(self, table: DeltaTable, moves: Sequence[Move]) -> None:
        for move in moves:
            known = self._versions.get(move.shard_id)
            if known is None:  # half a millisecond each, which adds up with a hundred shards and a commit a second
                known = ledger.read_version(table, self._name, move.shard_id)
            if known != move.base.version:
                raise CommitConflict(f"shard {move.shard_id}: its mark has been moved by another commit")

    def _see(self, files: list[StagedFile]) -> None:
        """Refuse files that are gone: delta-rs would take them, and every reader would fail from then on.

        A conflict, because nothing has happened and the batch has to be staged again.
        """
        for file in files:
            path = f"{self._place.root}/{file.add.path}"
            if self._filesystem.get_file_info(path).size != file.size:
                raise CommitConflict(
                    f"the staged file {path} is gone", "Keep other programs away from the table's folder"
                )

    def _add_columns(self, table: DeltaTable, fields: list[dict[str, Any]]) -> None:
        added = rules.new_columns(table, fields, additive=self._evolve)
        if added:
            table.alter.add_columns([Field.from_json(json.dumps(field | {"nullable": True})) for field in added])
            table.update_incremental()
            self._ours = None
            self._look_again(table)

    def _write(self, table: DeltaTable | None, token: _Token, properties: CommitProperties) -> None:
        adds: list[AddAction | RemoveAction] = [file.add for file in token.files]
        if table is None:
            schema = Schema.from_json(json.dumps({"type": "struct", "fields": _nullable(token.fields)}))
            create_table_with_add_actions(
                self._place.delta,
                schema,
                [file.add for file in token.files],
                mode="error",
                partition_by=list(self._partition_by),
                storage_options=dict(self._place.options),
                commit_properties=properties,
            )
        else:
            table.create_write_transaction(
                adds,
                "append",
                table.schema(),
                list(self._partition_by),
                commit_properties=properties,
            )

    def _properties(self, table: DeltaTable | None, moves: Sequence[Move]) -> CommitProperties:
        actions = ledger.transactions(self._name, moves)
        if self._stream is not None and (table is None or ledger.read_stream(table, self._name) is None):
            actions.append(ledger.stream_transaction(self._name, self._stream))
        # None is delta-rs' own number. With retries it re-bases a table's creation over somebody else's: both succeed,
        # and the later one's marks replace the earlier one's (seen in two of three races).
        return CommitProperties(self._history(moves), 0 if table is None else None, actions)

    def _history(self, moves: Sequence[Move]) -> dict[str, Any]:
        """What `DESCRIBE HISTORY` shows of the commit: each shard's range, so that a row's origin can be traced."""
        ranges = {move.shard_id: [str(move.base.mark), str(move.mark), move.records] for move in moves}
        return {"kclSpark.pipeline": self._name, "kclSpark.ranges": json.dumps(ranges)}

    def _judged(self, error: Exception, table: DeltaTable | None) -> SinkError:
        text = str(error)
        conflict = table is None and _CREATED in text
        conflict = conflict or (isinstance(error, CommitFailedError) and any(word in text for word in _CONFLICTS))
        if conflict:
            return CommitConflict(f"another commit came first: {_first_line(error)}")
        return OutcomeUnknown(f"the commit to {self._place.uri} failed: {_first_line(error)}", _UNREACHABLE)

    def _note_ours(self, before: int, moves: Sequence[Move]) -> None:
        """Load our own commit; if it is the only one since, what it wrote is what the table holds."""
        self._ours = None
        with suppress(SinkError):
            table = self._load()
            if table is not None and table.version() == before + 1:
                self._ours = before + 1
                self._versions |= {move.shard_id: move.entry.version for move in moves}

    def close(self) -> None:
        """See `OpenSink.close`."""
        if self._compactor:
            self._compactor.close()


class _Token(NamedTuple):
    """What a staging left: its folder, its files, and the columns of the frame that it wrote."""

    folder: str
    files: list[StagedFile]
    fields: list[dict[str, Any]]


def _token_of(staged: Staged) -> _Token:
    assert isinstance(staged.token, _Token)
    return staged.token


def _types(fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {field["name"]: rules.plain(field["type"]) for field in fields}


def _nullable(fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A table of ours allows nulls everywhere: NOT NULL would be a promise that raw commits can't keep."""
    return [field | {"nullable": True, "metadata": {}} for field in fields]


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
