"""Muntin on Spark: workers read the Parquet file themselves, or get rows from the JVM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa


class Adapter:
    """One job for all queries on `local[2]`."""

    def __init__(self, mode: str) -> None:
        import muntin  # noqa: PLC0415 - after the threads are set
        from muntin.spark import session  # noqa: PLC0415

        self._muntin, self._mode = muntin, mode
        config = {"spark.driver.memory": "3g", "spark.ui.enabled": False}
        self._session = session("muntin-peers", master="local[2]", config=config)

    def prepare(self, job: dict[str, Any]) -> str:
        """Take the path and the text."""
        self._path = job["data"]
        self._queries = [query["name"] for query in job["queries"]]
        self._text = ";\n".join(query["sql"] for query in job["queries"])
        return "through the JVM" if self._mode == "jvm" else "muntin.files(path)"

    def run(self) -> Any:
        """Answer all queries."""
        rows: Any = self._muntin.files(self._path)
        if self._mode == "jvm":
            rows = self._session.read.parquet(self._path)
        return self._muntin.aggregate(rows, self._text, time="ts")

    def tables(self, found: Any) -> Iterator[tuple[str, pa.Table]]:
        """The answers, with starts in microseconds."""
        for name in self._queries:
            table = found.table(name)
            starts = table.column("window_start").cast(pa.int64())
            yield name, table.set_column(0, "window_start", starts).drop_columns("window_end")
