"""Spark's own `window()`: a query each, or one union of all."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pyarrow as pa

_CONFIG = {
    "spark.driver.memory": "4g",
    # As many as cores: more only add tasks that hold nothing.
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


class Adapter:
    """Both cores; answers go to the `noop` sink, which takes every row and keeps none."""

    def __init__(self, mode: str) -> None:
        builder = import_module("pyspark.sql").SparkSession.builder.master("local[2]")
        for name, value in _CONFIG.items():
            builder = builder.config(name, value)
        self._session = builder.appName("peers").getOrCreate()
        self._session.sparkContext.setLogLevel("ERROR")
        self._union = mode == "union"

    def prepare(self, job: dict[str, Any]) -> str:
        """Take the path and the queries."""
        self._path, self._queries = job["data"], job["queries"]
        return (
            "UNION ALL of all, noop sink" if self._union else "one query after another, noop sink"
        )

    def run(self) -> None:
        """Answer all queries."""
        rows = self._session.read.parquet(self._path)
        rows.createOrReplaceTempView("events")
        for text in self._texts():
            self._session.sql(text).write.format("noop").mode("overwrite").save()

    def _texts(self) -> list[str]:
        texts = [_text(query) for query in self._queries]
        return [" UNION ALL ".join(texts)] if self._union else texts

    def tables(self, _: None) -> Iterator[tuple[str, pa.Table]]:
        """The answers, of a run of their own."""
        for text in self._texts():
            table = self._session.sql(text).toArrow()
            names = table.column("query").unique().to_pylist() if self._union else [None]
            for name in names:
                own = table.filter(pa.compute.field("query") == name) if self._union else table
                if own.num_rows:
                    yield own.column("query")[0].as_py(), own.drop_columns("query")


def _spelled(each: dict[str, Any]) -> str:
    if each["function"] != "top":
        return str(each["sql"])
    column, name = each["column"], each["name"]
    return f"slice(sort_array(collect_list({column}), false), 1, 10) AS {name}"


def _text(query: dict[str, Any]) -> str:
    window = f"window(ts, '{query['range']} microseconds', '{query['slide']} microseconds')"
    where = f"WHERE {query['where']}" if query["where"] else ""
    chosen = ", ".join(
        (
            *query["groups"],
            *map(_spelled, query["aggregates"]),
        )
    )
    by = ", ".join((window, *query["groups"]))
    return (
        f"SELECT '{query['name']}' AS query, unix_micros(window.start) AS window_start, {chosen} "
        f"FROM events {where} GROUP BY {by}"
    )
