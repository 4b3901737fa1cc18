"""What a database holds for Muntin: a table for each query, and which batches are in them."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from muntin.sinks.databases.layout import Layout, fitted, quoted, table_of
from muntin.sinks.databases.live import drop_ended
from muntin.sinks.sink import SinkError

_logger = logging.getLogger("muntin.sinks")

# Only the last batch is ever repeated; the others are there for people to look at.
KEPT_BATCHES = 100


@dataclass(frozen=True)
class Load:
    """Rows for a table, in columns of the table's own names; a live one has their signs beside."""

    table: str
    layout: Layout
    rows: pa.Table


class Ledger(ABC):
    """A transaction in a database: everything that is done through it happens, or nothing.

    Args:
        schema: The schema that all tables lie in.
        prefix: What the names of all tables begin with.
    """

    # The longest name that the database keeps apart from others, in bytes.
    room = 63

    def __init__(self, schema: str, prefix: str) -> None:
        self.schema, self.prefix = schema, prefix
        self._own = fitted(f"{prefix}_muntin_batches", self.room)
        self._batches = self.named(self._own)
        self._queries = self.named(fitted(f"{prefix}_muntin_queries", self.room))
        self._known: dict[str, tuple[str, Layout, str]] | None = None
        self._made: set[str] | None = None

    @abstractmethod
    def execute(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Run a statement with parameters ``$1``, ``$2`` and so on; the rows it gives."""

    @abstractmethod
    def layout(self, query: str, schema: pa.Schema) -> Layout:
        """The table that results of these columns need."""

    @abstractmethod
    def column(self, name: str) -> str:
        """What a result's column is called in the database."""

    @abstractmethod
    def load(self, loads: Sequence[Load]) -> None:
        """Bring rows into their tables, in place of those with the same key."""

    @abstractmethod
    def lock(self) -> None:
        """Keep others from making tables until the transaction ends."""

    @abstractmethod
    def index(self, table: str, key: Sequence[str]) -> None:
        """Let the database find rows of a table by its key."""

    @abstractmethod
    def index_lifetimes(self, table: str) -> None:
        """Let the database find rows of a live table by when they begin and end."""

    def drop_ended(self, query: str, time: object) -> None:
        """Drop the rows of a query's live table whose ends a time has reached."""
        known = self.tables().get(query.lower())
        if known is not None and known[1].live:
            self.execute(drop_ended(self.named(known[0])), [time])

    def named(self, table: str) -> str:
        """A table as SQL spells it."""
        return quoted(self.schema, table)

    def prepare(self) -> None:
        """Make Muntin's own tables, where there are none."""
        self.lock()
        self.execute(
            f"CREATE TABLE IF NOT EXISTS {self._batches} (run text, batch bigint, query text, "
            "results bigint, committed_at timestamp with time zone DEFAULT now(), "
            "PRIMARY KEY (run, batch, query))"
        )
        self.execute(
            f"CREATE TABLE IF NOT EXISTS {self._queries} (query text PRIMARY KEY, "
            "table_name text NOT NULL, layout text NOT NULL, run text NOT NULL)"
        )

    def last_batch(self, run: str) -> int:
        """The last batch of a run that is committed here; -1 for none."""
        found = self.execute(f"SELECT max(batch) FROM {self._batches} WHERE run = $1", [run])
        return -1 if found[0][0] is None else int(found[0][0])

    def position(self, run: str) -> int:
        """The same, also where Muntin has no tables yet."""
        return self.last_batch(run) if self._exists(self._own) else -1

    def skip_to(self, run: str, batch: int) -> None:
        """Take batches of a run up to one for committed."""
        self.execute(
            f"INSERT INTO {self._batches} (run, batch, query, results) VALUES ($1, $2, '', 0) "
            "ON CONFLICT DO NOTHING",
            [run, batch],
        )

    def add_batch(self, run: str, batch: int, results: Mapping[str, int]) -> set[str]:
        """Take note of a batch's queries and how many rows they have; those that are not there.

        Each query has a line of its own: late rows, or other queries of the run, may come to the
        same database by another sink.
        """
        lines = ", ".join(f"($1, $2, ${3 + 2 * i}, ${4 + 2 * i})" for i in range(len(results)))
        added = self.execute(
            f"INSERT INTO {self._batches} (run, batch, query, results) VALUES {lines} "
            "ON CONFLICT DO NOTHING RETURNING query",
            [run, batch, *(part for each in results.items() for part in each)],
        )
        last = self.last_batch(run)
        if added and last > batch:
            raise SinkError(
                f"batch {batch} was never committed to the database, but batch {last} was",
                hint="continue with the checkpoint that wrote there, or choose another database",
            )
        self.execute(
            f"DELETE FROM {self._batches} WHERE run = $1 AND batch <= $2",
            [run, batch - KEPT_BATCHES],
        )
        return {str(query) for (query,) in added}

    def tables(self) -> dict[str, tuple[str, Layout, str]]:
        """The table, layout and run of every query, by its name in lower case."""
        if self._known is None:
            rows = self.execute(f"SELECT query, table_name, layout, run FROM {self._queries}")
            self._known = {each[0]: (each[1], Layout.of_text(each[2]), each[3]) for each in rows}
        return self._known

    def declare(self, layouts: Mapping[str, Layout], run: str) -> None:
        """Make tables for queries that have none."""
        known = self.tables()
        for query, layout in layouts.items():
            if query.lower() not in known or not self._exists(known[query.lower()][0]):
                self.lock()
                self._create(query, layout, run)

    def place(self, query: str, layout: Layout, run: str) -> tuple[str, Layout]:
        """The table for rows of a query, changed where they need it, and its layout."""
        known = self.tables().get(query.lower())
        if known is None:
            self.lock()
            return self._create(query, layout, run), layout
        table, kept, owner = known
        self._check_owner(query, table, kept, owner, run)
        taken = kept.taking(layout)
        if taken is None:
            self.lock()
            self._set_aside(query, table)
            return self._create(query, layout, run), layout
        for name in [name for name in taken.columns if name not in kept.columns]:
            kind = taken.columns[name]
            self.execute(f"ALTER TABLE {self.named(table)} ADD COLUMN {quoted(name)} {kind}")
        if taken != kept or owner != run:
            self._note(query, table, taken, run)
        return table, taken

    def _create(self, query: str, layout: Layout, run: str) -> str:
        table = table_of(query, self.prefix, self.room)
        if self._exists(table):
            raise SinkError(
                f"there is a table {table} in schema {self.schema} that Muntin did not make, so "
                f"results of query {query} cannot go there",
                hint="rename it, or choose another schema, prefix or name of the query",
            )
        columns = ", ".join(f"{quoted(name)} {kind}" for name, kind in layout.columns.items())
        self.execute(f"CREATE TABLE {self.named(table)} ({columns})")
        self._present().add(table)
        if layout.key:
            self.index(table, layout.key)
        if layout.live:
            self.index_lifetimes(table)
        self._note(query, table, layout, run)
        return table

    def _note(self, query: str, table: str, layout: Layout, run: str) -> None:
        self.execute(
            f"INSERT INTO {self._queries} (query, table_name, layout, run) "
            "VALUES ($1, $2, $3, $4) ON CONFLICT (query) DO UPDATE "
            "SET table_name = EXCLUDED.table_name, layout = EXCLUDED.layout, run = EXCLUDED.run",
            [query.lower(), table, layout.to_text(), run],
        )
        self.tables()[query.lower()] = (table, layout, run)

    def _exists(self, table: str) -> bool:
        return table in self._present()

    def _present(self) -> set[str]:
        if self._made is None:
            sql = "SELECT table_name FROM information_schema.tables WHERE table_schema = $1"
            self._made = {str(name) for (name,) in self.execute(sql, [self.schema])}
        return self._made

    def _set_aside(self, query: str, table: str) -> None:
        """Give a table another name: rows that it cannot hold are about to come."""
        number = 1
        while self._exists(aside := fitted(f"{table}-{number}", self.room)):
            number += 1
        self.execute(f"ALTER TABLE {self.named(table)} RENAME TO {quoted(aside)}")
        self._present().symmetric_difference_update({table, aside})
        _logger.warning(
            "query %s has other types or groups than before: its results so far are in table %s",
            query,
            aside,
        )

    def _check_owner(self, query: str, table: str, kept: Layout, owner: str, run: str) -> None:
        if not (run and owner) or run == owner:
            return
        if not kept.key:
            raise SinkError(
                f"table {table} holds the results of query {query} from another run",
                hint="continue with that run's checkpoint, or choose another schema or prefix",
            )
        _logger.warning(
            "table %s has results of query %s from another run: rows of the same window and "
            "groups are replaced",
            table,
            query,
        )
