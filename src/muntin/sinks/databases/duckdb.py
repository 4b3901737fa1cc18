"""Results in a DuckDB file, each row exactly once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import pyarrow as pa

from muntin.errors import UnknownQueryError, did_you_mean
from muntin.sinks.databases.database import DatabaseSink, named_layout, waits
from muntin.sinks.databases.layout import Layout, quoted
from muntin.sinks.databases.ledger import Ledger, Load
from muntin.sinks.databases.live import apply_changes
from muntin.sinks.durable import local_path, make_folder
from muntin.sinks.schemas import BOUNDS
from muntin.sinks.sink import SinkError

T = TypeVar("T")
PATIENCE = 30.0
_STAGED = "muntin_staged"
_locks: dict[Path, Lock] = {}
_types: dict[pa.Schema, list[str]] = {}


class DuckDBLedger(Ledger):
    """A transaction in a DuckDB file."""

    room = 1 << 10

    def __init__(self, connection: Any, schema: str, prefix: str) -> None:
        super().__init__(schema, prefix)
        self._connection = connection

    def execute(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Run a statement."""
        return list(self._connection.execute(sql, list(values)).fetchall())

    def layout(self, query: str, schema: pa.Schema) -> Layout:
        """The types are those that DuckDB reads Arrow's as."""
        bare = schema.remove_metadata()
        if bare not in _types:
            _types[bare] = self._types_of(query, bare)
        return named_layout(schema, _types[bare], self.column)

    def _types_of(self, query: str, schema: pa.Schema) -> list[str]:
        duckdb = _duckdb()
        try:
            kinds = self._connection.from_arrow(schema.empty_table()).types
        except duckdb.Error as error:
            raise SinkError(
                f"query {query} has a column that DuckDB has no type for: {error}",
                hint="cast it in the query, for example to STRING",
            ) from error
        # Columns of nothing but NULL need some type.
        return [str(kind).replace('"NULL"', "INTEGER") for kind in kinds]

    def column(self, name: str) -> str:
        """The same name: DuckDB takes any."""
        return name

    def lock(self) -> None:
        """Nobody else has the file open."""

    def index(self, table: str, key: Sequence[str]) -> None:
        """None is needed: rows are found by scanning blocks of their windows."""

    def index_lifetimes(self, table: str) -> None:
        """None is needed: blocks of rows know their least and largest values."""

    def load(self, loads: Sequence[Load]) -> None:
        """Delete the rows that are replaced, and insert: no index can tell NULL groups apart."""
        for load in loads:
            target = self.named(load.table)
            self._connection.register(_STAGED, load.rows)
            if load.layout.live:
                columns = list(load.layout.columns)
                many = "unnest(generate_series(1, n))"
                staged = f"FROM {_STAGED}"
                for each in apply_changes(target, staged, columns, "rowid", many):
                    self.execute(each)
                self._connection.unregister(_STAGED)
                continue
            if load.layout.key:
                same = " AND ".join(map(_same, load.layout.key, range(len(load.layout.key))))
                self.execute(f"DELETE FROM {target} AS kept USING {_STAGED} AS staged WHERE {same}")
            self.execute(f"INSERT INTO {target} BY NAME FROM {_STAGED}")
            self._connection.unregister(_STAGED)

    def rows(self, query: str) -> pa.Table:
        """All rows of a query."""
        known = self.tables()
        if query.lower() not in known:
            raise UnknownQueryError(
                f"the database has no results of a query {query!r}",
                hint=did_you_mean(query, known),
            )
        return self._connection.sql(f"FROM {self.named(known[query.lower()][0])}").to_arrow_table()


def _same(name: str, place: int) -> str:
    # Window bounds are never NULL, and plain equality lets DuckDB skip blocks of other windows.
    operator = "=" if place < BOUNDS else "IS NOT DISTINCT FROM"
    return f"kept.{quoted(name)} {operator} staged.{quoted(name)}"


class DuckDBSink(DatabaseSink):
    """A DuckDB file with one table for each query; every row is there once.

    The file is open only while a batch is committed, so that others can read it meanwhile; as
    long as another process has it open, a commit waits.

    Args:
        path: The file; it is made where there is none.
        patience: How many seconds to wait for others to close the file.
        live: Whether tables of rows with lifetimes hold them only while they live: '+' and '-' of
            ``changes`` are applied, and rows that W has passed are dropped.

    >>> import tempfile
    >>> sink = DuckDBSink(tempfile.mkdtemp() + "/results.duckdb")
    >>> for _ in range(2):
    ...     sink.commit(4, sink.writer().write(4, 0, {"spikes": pa.table({"value": [1, 2]})}))
    >>> sink.table("spikes")["value"].to_pylist()
    [1, 2]
    """

    def __init__(
        self, path: str | os.PathLike[str], *, patience: float = PATIENCE, live: bool = False
    ) -> None:
        super().__init__(patience, live)
        if os.fspath(path).startswith(":memory:"):
            raise SinkError(
                f"{path} is not a file", hint="give a path, or use muntin.sinks.memory()"
            )
        self.path = local_path(path)
        self._lock = _locks.setdefault(self.path, Lock())
        self._is_prepared = False
        _duckdb()

    def table(self, query: str) -> pa.Table:
        """The committed rows of a query, in no promised order."""
        return self.transact(lambda ledger: ledger.rows(query))

    @property
    def place(self) -> str:
        """The path."""
        return str(self.path)

    def positions(self, run: str) -> dict[str, int]:
        """The last batch in the table of committed batches; a file is not made to look at it."""
        return super().positions(run) if self.path.exists() else {self.place: -1}

    def transact(self, work: Callable[[DuckDBLedger], T], *, is_look: bool = False) -> T:
        """Open the file, do the work, and close it."""
        duckdb = _duckdb()
        with self._lock:
            connection = self._connect()
            try:
                connection.execute("BEGIN")
                ledger = DuckDBLedger(connection, "main", "")
                if not (self._is_prepared or is_look):
                    ledger.prepare()
                done = work(ledger)
                connection.execute("COMMIT")
                self._is_prepared |= not is_look
                return done
            except duckdb.Error as error:
                raise SinkError(
                    f"cannot write results to {self.path}: {error}",
                    hint="the batch is not committed, and is delivered again when the run restarts",
                ) from error
            finally:
                # What is not committed is gone with the connection.
                connection.close()

    def _connect(self) -> Any:
        duckdb = _duckdb()
        try:
            make_folder(self.path.parent)
        except OSError as error:
            raise SinkError.of("make", self.path.parent, error) from error
        for wait in waits(self.patience):
            if wait:
                time.sleep(wait)
            try:
                return duckdb.connect(str(self.path))
            except duckdb.Error as error:
                failure = error
                if not _is_in_use(error):
                    break
        in_use = "close it there: one process at a time can write to a DuckDB file"
        raise SinkError(
            f"cannot open {self.path}: {failure}",
            hint=in_use
            if _is_in_use(failure)
            else "choose a DuckDB file, or one that does not exist yet",
        ) from failure

    def __repr__(self) -> str:
        return f"<DuckDBSink {self.path}>"


def _is_in_use(error: Exception) -> bool:
    """Whether another process, or another way of opening in this one, keeps the file."""
    return "lock on file" in str(error) or "different configuration" in str(error)


def _duckdb() -> Any:
    try:
        import duckdb  # noqa: PLC0415  an optional package
    except ImportError as error:
        raise SinkError(
            "DuckDB is not installed", hint="install it: pip install 'muntin[duckdb]'"
        ) from error
    return duckdb


def duckdb(
    path: str | os.PathLike[str], *, patience: float = PATIENCE, live: bool = False
) -> DuckDBSink:
    """Write results to a DuckDB file, one table for each query, each row exactly once.

    With ``live``, tables of rows with lifetimes hold the rows that live now.
    """
    return DuckDBSink(path, patience=patience, live=live)
