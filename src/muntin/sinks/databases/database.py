"""What sinks that write to a database share: exactly once, by a table of committed batches."""

from __future__ import annotations

import random
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import pyarrow as pa

from muntin.sinks.databases.layout import Layout
from muntin.sinks.databases.ledger import Ledger, Load
from muntin.sinks.databases.live import SIGN, check_outputs, is_living, live_schema, signed
from muntin.sinks.schemas import key_of, with_key
from muntin.sinks.sink import DriverSink, RowsEntry, SinkError

T = TypeVar("T")
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 5.0


class DatabaseSink(DriverSink):
    """One table for each query; a batch and the note that it is there are one transaction.

    Rows of a window and group that are there already are replaced. A batch that is repeated
    changes nothing.

    Args:
        patience: How many seconds to try when the database cannot be reached.
        live: Whether rows with lifetimes are kept only while they live: the table then holds the
            answer as of W.
    """

    def __init__(self, patience: float, live: bool = False) -> None:
        if patience < 0:
            raise SinkError(
                f"patience must be 0 or more, not {patience}", hint="give seconds; 0 tries once"
            )
        if not isinstance(live, bool):
            raise SinkError(f"live must be True or False, not {live!r}")
        self.patience = patience
        self.live = live
        self._reached: dict[str, object] = {}
        self._run = ""
        self._keys: dict[str, tuple[str, ...]] = {}

    @property
    @abstractmethod
    def place(self) -> str:
        """The name of the place that keeps the results."""

    @abstractmethod
    def transact(self, work: Callable[[Ledger], T], *, is_look: bool = False) -> T:
        """Do work in one transaction, again from its beginning when that may help.

        One that only looks makes no tables of Muntin's where there are none.
        """

    def places(self, entries: Sequence[RowsEntry]) -> set[str]:
        """The database, if anything goes there."""
        return {self.place} if entries else set()

    def positions(self, run: str) -> dict[str, int]:
        """The last batch in the table of committed batches."""
        return {self.place: self.transact(lambda ledger: ledger.position(run), is_look=True)}

    def skip_to(self, batches: Mapping[str, int], run: str) -> None:
        """Note a batch without rows."""
        self.transact(lambda ledger: ledger.skip_to(run, batches[self.place]))

    def recover(self, last_batch: int, *, run: str = "") -> None:
        """Learn the run's name, and refuse a database that is ahead of its checkpoint."""
        self._run = run
        last = self.transact(lambda ledger: ledger.last_batch(run))
        if last > last_batch + 1:
            done = f"batch {last_batch}" if last_batch >= 0 else "none"
            raise SinkError(
                f"{self!r} holds results up to batch {last}, and the checkpoint has only "
                f"finished {done}",
                hint="continue with the checkpoint that wrote there, or choose another database",
            )

    def declare(self, schemas: Mapping[str, pa.Schema]) -> None:
        """Make a table for every query that has none; others change when rows come."""
        self._keys |= {name.lower(): key_of(schema) for name, schema in schemas.items()}
        self.transact(partial(self._declare, dict(schemas)))

    def _declare(self, schemas: Mapping[str, pa.Schema], ledger: Ledger) -> None:
        layouts = {name: self._layout(ledger, name, schema) for name, schema in schemas.items()}
        ledger.declare(layouts, self._run)

    def _layout(self, ledger: Ledger, query: str, schema: pa.Schema) -> Layout:
        if self.live and is_living(schema):
            return replace(ledger.layout(query, live_schema(schema)), live=True)
        return ledger.layout(query, schema)

    def check_outputs(self, outputs: Mapping[str, str]) -> None:
        """Refuse queries whose rows a live table would never hold."""
        if self.live:
            check_outputs(outputs)

    def reach(self, times: Mapping[str, pa.Scalar]) -> None:
        """Learn how far results have come: rows that ended by then leave their live tables."""
        if not self.live:
            return
        self._reached = {
            name: each.as_py() if isinstance(each, pa.Scalar) else each
            for name, each in times.items()
        }

    def deliver(self, batch_id: int, tables: Mapping[str, pa.Table]) -> None:
        """Bring a batch's rows into their tables, unless they are there."""
        if tables or self._reached:
            self.transact(partial(self._store, batch_id, tables))

    def _store(self, batch_id: int, tables: Mapping[str, pa.Table], ledger: Ledger) -> None:
        rows = {query: table.num_rows for query, table in tables.items()}
        added = ledger.add_batch(self._run, batch_id, rows) if rows else set()
        ledger.load(
            [self._load(ledger, query, tables[query]) for query in tables if query in added]
        )
        for query, reached in self._reached.items():
            ledger.drop_ended(query, reached)

    def _load(self, ledger: Ledger, query: str, rows: pa.Table) -> Load:
        if self.live and is_living(rows.schema):
            wanted = self._layout(ledger, query, rows.schema)
            table, layout = ledger.place(query, wanted, self._run)
            changes = signed(rows)
            names = map(ledger.column, changes.column_names[:-1])
            return Load(table, layout, changes.rename_columns([*names, SIGN]))
        schema = with_key(rows.schema, self._keys.get(query.lower(), ()))
        table, layout = ledger.place(query, ledger.layout(query, schema), self._run)
        return Load(table, layout, rows.rename_columns(list(map(ledger.column, schema.names))))


def named_layout(schema: pa.Schema, types: list[str], column: Callable[[str], str]) -> Layout:
    """The layout of columns of these SQL types, under the names that the database has."""
    columns = dict(zip(map(column, schema.names), types, strict=True))
    return Layout(columns, tuple(map(column, key_of(schema))))


def waits(patience: float) -> Iterator[float]:
    """Seconds to sleep before each further attempt, none before the first, until patience ends.

    They double, and are spread at random so that many clients do not come back together.
    """
    deadline = time.monotonic() + patience
    wait = _FIRST_WAIT
    yield 0.0
    while (left := deadline - time.monotonic()) > 0:
        yield min(wait * random.uniform(0.5, 1.0), left)
        wait = min(wait * 2, _LONGEST_WAIT)
