"""Pathway: `windowby` with a sliding window a query, over a static table."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


class Adapter:
    """As its own runtime decides about threads; each query is computed on its own."""

    def __init__(self, mode: str) -> None:
        self._pathway = import_module("pathway")

    def prepare(self, job: dict[str, Any]) -> str:
        """Take the path and the queries."""
        functions = {each["function"] for query in job["queries"] for each in query["aggregates"]}
        if functions - {"count", "sum"} or any(
            each["where"] for query in job["queries"] for each in query["aggregates"]
        ):
            raise NotImplementedError("counts and sums of all rows only")
        self._job = job
        return "windowby a query, static table"

    def run(self) -> list[Any]:
        """Answer all queries."""
        pw = self._pathway
        read = pq.read_table(self._job["data"], columns=self._job["columns"])
        ticks = read.column("ts").cast(pa.int64())
        frame = read.set_column(read.column_names.index("ts"), "ts", ticks).to_pandas()
        import_module("pathway.internals.parse_graph").G.clear()
        rows = pw.debug.table_from_pandas(frame)
        found = [self._answer(rows, query) for query in self._job["queries"]]
        return [pw.debug.table_to_pandas(table, include_id=False) for table in found]

    def _answer(self, rows: Any, query: dict[str, Any]) -> Any:
        pw, groups = self._pathway, query["groups"]
        if query["where"]:
            text = f"({query['where'].replace(' AND ', ') & (').replace('NOT ', '~')})"
            rows = rows.filter(eval(text, {name: rows[name] for name in self._job["columns"]}))
        windows = rows.windowby(
            rows["ts"],
            window=pw.temporal.sliding(hop=query["slide"], duration=query["range"], origin=0),
            instance=rows[groups[0]] if groups else None,
        )
        columns = {"window_start": pw.this["_pw_window_start"]}
        if groups:
            columns[groups[0]] = pw.this["_pw_instance"]
        for each in query["aggregates"]:
            column = each["column"]
            count = each["function"] == "count"
            reducer = pw.reducers.count() if count else pw.reducers.sum(pw.this[column])
            columns[each["name"]] = reducer
        return windows.reduce(**columns)

    def tables(self, found: list[Any]) -> Iterator[tuple[str, pa.Table]]:
        """The answers by name."""
        for query, frame in zip(self._job["queries"], found, strict=True):
            yield query["name"], pa.Table.from_pandas(frame, preserve_index=False)
