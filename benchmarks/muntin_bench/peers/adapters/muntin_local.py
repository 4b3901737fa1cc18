"""Muntin's local engine: Parquet to answers in one call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

# As many as plans are made from at most.
_SAMPLE = 32_768


class Adapter:
    """Reads the columns that queries use, plans from SQL text, and answers all at once.

    In mode `plan` it answers for a few rows only: what reading the SQL and planning take.
    """

    def __init__(self, mode: str) -> None:
        import muntin  # noqa: PLC0415 - after the threads are set

        self._muntin, self._planning = muntin, mode == "plan"

    def prepare(self, job: dict[str, Any]) -> str:
        """Take the path and the text."""
        self._path, self._columns = job["data"], job["columns"]
        self._queries = [query["name"] for query in job["queries"]]
        self._text = ";\n".join(query["sql"] for query in job["queries"])
        if self._planning:
            self._few = pq.read_table(self._path, columns=self._columns).slice(0, _SAMPLE)
            return f"aggregate({_SAMPLE:,} rows, sql)"
        return "aggregate(table, sql)"

    def run(self) -> Any:
        """Answer all queries."""
        if self._planning:
            return self._muntin.aggregate(self._few, self._text, time="ts")
        table = pq.read_table(self._path, columns=self._columns)
        return self._muntin.aggregate(table, self._text, time="ts")

    def tables(self, found: Any) -> Iterator[tuple[str, pa.Table]]:
        """The answers, with starts in microseconds."""
        for name in () if self._planning else self._queries:
            table = found.table(name)
            starts = table.column("window_start").cast(pa.int64())
            yield name, table.set_column(0, "window_start", starts).drop_columns("window_end")
