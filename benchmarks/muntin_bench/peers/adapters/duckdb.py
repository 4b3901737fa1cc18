"""DuckDB: SQL a query, in one of two ways."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pyarrow as pa


class Adapter:
    """Two threads; rows become a table in memory once, for many queries.

    Rows are copied into each of their windows, or, in mode `slices`, first summed up between the
    edges of windows.
    """

    def __init__(self, mode: str) -> None:
        self.mode, self._form = mode, _sliced if mode == "slices" else _copied
        self._connection = import_module("duckdb").connect()
        self._connection.execute("SET threads = 2; SET TimeZone = 'UTC'")

    def prepare(self, job: dict[str, Any]) -> str:
        """Take the path and the queries."""
        self._job = job
        return "slices, then windows" if self._form is _sliced else "unnest: a copy a window"

    def run(self) -> list[pa.Table]:
        """Answer all queries."""
        queries = self._job["queries"]
        kind = "TABLE" if len(queries) > 1 else "VIEW"
        self._connection.execute(f"CREATE TEMP {kind} events AS {self.rows()}")
        try:
            found = (self._connection.sql(self._form(query)) for query in queries)
            return [each.to_arrow_table() for each in found]
        finally:
            self._connection.execute(f"DROP {kind} events")

    def rows(self) -> str:
        """SQL for the rows that queries read, their times in microseconds."""
        columns = "".join(f", {name}" for name in self._job["columns"] if name != "ts")
        return f"SELECT epoch_us(ts) AS ts{columns} FROM read_parquet('{self._job['data']}')"

    def tables(self, found: list[pa.Table]) -> Iterator[tuple[str, pa.Table]]:
        """The answers by name."""
        for query, table in zip(self._job["queries"], found, strict=True):
            yield query["name"], table


def _copied(query: dict[str, Any]) -> str:
    """Copy each row into all of its windows, then group."""
    size, slide, offset = query["range"], query["slide"], query["offset"]
    keys = "".join(f", {name}" for name in query["groups"])
    chosen = ", ".join(map(_spelled, query["aggregates"]))
    # A condition begins with the column that it is about.
    needed = [each["column"] for each in query["aggregates"] if each["column"] != "*"]
    needed += [each["where"].split()[0] for each in query["aggregates"] if each["where"]]
    read = dict.fromkeys(name for name in needed if name not in query["groups"])
    columns = keys + "".join(f", {name}" for name in read)
    return f"""
        SELECT number * {slide} + {offset} AS window_start{keys}, {chosen}
        FROM (SELECT unnest(range((ts - {offset} - {size}) // {slide} + 1,
                                  (ts - {offset}) // {slide} + 1)) AS number{columns}
              FROM events {_where(query)})
        GROUP BY number{keys}"""


def _spelled(each: dict[str, Any]) -> str:
    if each["function"] != "top":
        return str(each["sql"])
    return f"list_slice(list_reverse_sort(list({each['column']})), 1, 10) AS {each['name']}"


def _sliced(query: dict[str, Any]) -> str:
    """Aggregate the slices between window edges, then the slices of each window."""
    if any(each["function"] not in ("count", "sum") for each in query["aggregates"]):
        raise NotImplementedError("slices by hand are added up: counts and sums only")
    slide, offset = query["slide"], query["offset"]
    whole, rest = divmod(query["range"], slide)
    keys = "".join(f", {name}" for name in query["groups"])
    partials = ", ".join(
        f"{each['function']}({each['column']}) AS {each['name']}" for each in query["aggregates"]
    )
    finals = ", ".join(f"sum({each['name']}) AS {each['name']}" for each in query["aggregates"])
    names = ", ".join(each["name"] for each in query["aggregates"])
    return f"""
        SELECT number * {slide} + {offset} AS window_start{keys}, {finals}
        FROM (SELECT unnest(range(pane - {whole} + later, pane + 1)) AS number{keys}, {names}
              FROM (SELECT (ts - {offset}) // {slide} AS pane,
                           ((ts - {offset}) % {slide} >= {rest})::BIGINT AS later{keys}, {partials}
                    FROM events {_where(query)} GROUP BY pane, later{keys}))
        GROUP BY number{keys}"""


def _where(query: dict[str, Any]) -> str:
    return f"WHERE {query['where']}" if query["where"] else ""
