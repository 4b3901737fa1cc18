"""Polars: `group_by_dynamic` a query, or slices by hand."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pyarrow as pa


class Adapter:
    """All threads; rows are read once, and lazy queries are collected together.

    Queries are `group_by_dynamic`; in mode `slices` rows are first summed up between the edges
    of windows.
    """

    def __init__(self, mode: str) -> None:
        self._polars, self.mode = import_module("polars"), mode

    def prepare(self, job: dict[str, Any]) -> str:
        """Take the path and the queries."""
        self._job = job
        way = "slices, then windows" if self.mode == "slices" else "group_by_dynamic"
        return f"{way}; collect_all"

    def run(self) -> list[Any]:
        """Answer all queries."""
        form = self._sliced if self.mode == "slices" else self._dynamic
        rows = self.rows().set_sorted("ts")
        queries = [form(rows, query) for query in self._job["queries"]]
        found: list[Any] = self._polars.collect_all(queries)
        return found

    def rows(self) -> Any:
        """The rows that queries read, their times in microseconds."""
        pl = self._polars
        read = pl.read_parquet(self._job["data"], columns=self._job["columns"])
        return read.with_columns(pl.col("ts").cast(pl.Int64)).lazy()

    def tables(self, found: list[Any]) -> Iterator[tuple[str, pa.Table]]:
        """The answers by name."""
        for query, frame in zip(self._job["queries"], found, strict=True):
            yield query["name"], frame.to_arrow()

    def _dynamic(self, rows: Any, query: dict[str, Any]) -> Any:
        size, slide = query["range"], query["slide"]
        # Without an offset, windows that start before the first row are left out.
        before = -(-size // slide) * slide - query["offset"]
        grouped = self._filtered(rows, query).group_by_dynamic(
            "ts",
            every=f"{slide}i",
            period=f"{size}i",
            offset=f"{-before}i",
            group_by=query["groups"] or None,
        )
        return grouped.agg(self._partials(query)).rename({"ts": "window_start"})

    def _sliced(self, rows: Any, query: dict[str, Any]) -> Any:
        """Aggregate the slices between window edges, then the slices of each window."""
        if any(each["function"] not in ("count", "sum") for each in query["aggregates"]):
            raise NotImplementedError("slices by hand are added up: counts and sums only")
        pl, slide, offset = self._polars, query["slide"], query["offset"]
        whole, rest = divmod(query["range"], slide)
        ts, keys = pl.col("ts"), query["groups"]
        ts = ts - offset if offset else ts
        later = (ts % slide >= rest).cast(pl.Int64)
        slices = (
            self._filtered(rows, query)
            .group_by((ts // slide).alias("pane"), later.alias("later"), *keys)
            .agg(self._partials(query))
        )
        numbers = pl.int_ranges(pl.col("pane") - whole + pl.col("later"), pl.col("pane") + 1)
        names = [each["name"] for each in query["aggregates"]]
        copies = slices.select(*keys, *names, number=numbers).explode("number")
        return (
            copies.group_by("number", *keys)
            .agg(pl.col(name).sum() for name in names)
            .with_columns(window_start=pl.col("number") * slide + offset)
        )

    def _filtered(self, rows: Any, query: dict[str, Any]) -> Any:
        return rows.filter(self._polars.sql_expr(query["where"])) if query["where"] else rows

    def _partials(self, query: dict[str, Any]) -> list[Any]:
        return [self._spelled(each).alias(each["name"]) for each in query["aggregates"]]

    def _spelled(self, each: dict[str, Any]) -> Any:
        pl, function = self._polars, each["function"]
        where = pl.sql_expr(each["where"]) if each["where"] else None
        if function == "count":
            return (pl.len() if where is None else where.sum()).cast(pl.Int64)
        column = pl.col(each["column"])
        column = column if where is None else column.filter(where)
        if function == "top":
            return column.top_k(10).sort(descending=True)
        if function == "distinct":
            return column.n_unique().cast(pl.Int64)
        return getattr(column, {"avg": "mean"}.get(function, function))()
