"""Results in the driver's memory."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock

import pyarrow as pa

from muntin.errors import UnknownQueryError, did_you_mean
from muntin.sinks.schemas import concat, fingerprint, pick
from muntin.sinks.sink import DriverSink, SinkError


class MemorySink(DriverSink):
    """Keeps results on the driver, each row once; they end with the process.

    A batch that is repeated replaces what it gave before. A run that continues in another
    process starts with an empty memory: earlier results are not computed again.

    Args:
        max_rows: How many rows to keep for each query, the latest ones; None for all.

    >>> sink = MemorySink(max_rows=2)
    >>> entries = sink.writer().write(0, 0, {"spikes": pa.table({"value": [1, 2, 3]})})
    >>> sink.commit(0, entries)
    >>> sink.table("spikes")["value"].to_pylist()
    [2, 3]
    """

    def __init__(self, max_rows: int | None = None) -> None:
        if max_rows is not None and max_rows < 1:
            raise SinkError(
                f"max_rows must be 1 or more, not {max_rows}", hint="None keeps all rows"
            )
        self.max_rows = max_rows
        self._lock = Lock()
        self._names: dict[str, str] = {}
        self._schemas: dict[str, pa.Schema] = {}
        self._batches: dict[str, dict[int, pa.Table]] = {}

    def deliver(self, batch_id: int, tables: Mapping[str, pa.Table]) -> None:
        """Keep a batch's tables in place of what the same batch gave before."""
        with self._lock:
            for batches in self._batches.values():
                batches.pop(batch_id, None)
            for name, table in tables.items():
                key = name.lower()
                self._names[key] = name
                kept = self._batches.setdefault(key, {})
                kept[batch_id] = table
                self._trim(kept)

    def recover(self, last_batch: int, *, run: str = "") -> None:
        """Forget batches that the checkpoint has not finished: they come again."""
        del run
        with self._lock:
            for batches in self._batches.values():
                for batch in [batch for batch in batches if batch > last_batch]:
                    del batches[batch]

    def declare(self, schemas: Mapping[str, pa.Schema]) -> None:
        """Know the columns of queries that have no results yet."""
        with self._lock:
            for name, schema in schemas.items():
                self._names[name.lower()] = name
                self._schemas[name.lower()] = schema

    def queries(self) -> list[str]:
        """The queries that are known, sorted by name."""
        with self._lock:
            return sorted(self._names.values())

    def table(self, query: str, *, version: int | None = None) -> pa.Table:
        """The rows of a query so far, in the order of their batches.

        Args:
            query: Its name.
            version: Which version of its columns, counted from 0, where a query was replaced
                by one with other columns; by default, all of them.
        """
        key = query.lower()
        with self._lock:
            if key not in self._names:
                raise UnknownQueryError(
                    f"there are no results of a query {query!r}",
                    hint=did_you_mean(query, self._names.values()),
                )
            batches = self._batches.get(key, {})
            tables = [batches[batch] for batch in sorted(batches)]
            schema = self._schemas.get(key)
        if version is not None:
            chosen = pick(query, version, [fingerprint(table.schema) for table in tables])
            tables = [table for table in tables if fingerprint(table.schema) == chosen]
        if not tables and schema is not None:
            return schema.empty_table()
        return concat(query, tables)

    def __getitem__(self, query: str) -> pa.Table:
        return self.table(query)

    def _trim(self, batches: dict[int, pa.Table]) -> None:
        if self.max_rows is None:
            return
        spare = sum(table.num_rows for table in batches.values()) - self.max_rows
        for batch in sorted(batches):
            if spare <= 0:
                return
            table = batches[batch]
            if table.num_rows <= spare:
                del batches[batch]
            else:
                batches[batch] = table.slice(spare)
            spare -= table.num_rows


def memory(max_rows: int | None = None) -> MemorySink:
    """Keep results on the driver: ``sink.table("spikes")``."""
    return MemorySink(max_rows)
