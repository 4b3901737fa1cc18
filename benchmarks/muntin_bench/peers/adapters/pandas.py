"""Pandas: `resample` into bins as long as all edges allow, then `rolling` over the bins."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from math import gcd
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

# Bins are a dense matrix of bins and groups.
_CELLS = 1_000_000


class Adapter:
    """One core, as pandas is; for small sizes."""

    def __init__(self, mode: str) -> None:
        self._pandas = import_module("pandas")

    def prepare(self, job: dict[str, Any]) -> str:
        """Take the path and the queries."""
        functions = {each["function"] for query in job["queries"] for each in query["aggregates"]}
        if functions - {"count", "sum"} or any(
            each["where"] for query in job["queries"] for each in query["aggregates"]
        ):
            raise NotImplementedError("counts and sums of all rows only")
        self._job = job
        return "resample, then rolling"

    def run(self) -> list[Any]:
        """Answer all queries."""
        read = pq.read_table(self._job["data"], columns=self._job["columns"]).to_pandas()
        rows = read.set_index("ts")
        return [self._answer(rows, query) for query in self._job["queries"]]

    def _answer(self, rows: Any, query: dict[str, Any]) -> Any:
        size, slide = query["range"], query["slide"]
        bin_size = gcd(size, slide)
        if query["where"]:
            rows = rows[_condition(rows, query["where"])]
        bins = self._bins(rows, query, bin_size)
        # Windows are named by their last bin; those that start before the first bin count too.
        first, last = (bins.index[place].value // 1000 for place in (0, -1))
        begin = (first - size) // slide * slide + slide
        whole = self._pandas.date_range(
            *(self._pandas.Timestamp(at * 1000, tz="UTC") for at in (begin, last + size)),
            freq=f"{bin_size}us",
        )
        summed = bins.reindex(whole, fill_value=0).rolling(size // bin_size).sum()
        ends = summed.iloc[size // bin_size - 1 :: slide // bin_size]
        starts = ends.index.as_unit("us").asi8 - size + bin_size
        return self._long(ends, starts, query)

    def _bins(self, rows: Any, query: dict[str, Any], bin_size: int) -> Any:
        """A row a bin; a column an aggregate, and a group where there are groups."""
        pandas, groups = self._pandas, query["groups"]
        by = [pandas.Grouper(freq=f"{bin_size}us", origin="epoch"), *groups]
        grouped = rows.groupby(by)
        parts = {
            each["name"]: grouped.size()
            if each["function"] == "count"
            else grouped[each["column"]].sum()
            for each in query["aggregates"]
        }
        if not groups:
            return pandas.DataFrame(parts)
        span = (rows.index[-1] - rows.index[0]).value // 1000 // bin_size + 1
        if span * rows[groups[0]].nunique() > _CELLS:
            raise MemoryError("rolling needs a column a group, and there are too many groups")
        return pandas.DataFrame(parts).unstack(groups[0], fill_value=0)

    def _long(self, ends: Any, starts: Any, query: dict[str, Any]) -> Any:
        """A row per window and group, where there is a row."""
        frame = ends.set_axis(self._pandas.Index(starts, name="window_start"))
        if query["groups"]:
            frame = frame.stack(level=1, future_stack=True)
        frame = frame[frame["n"] > 0.5].reset_index()
        frame["n"] = frame["n"].round().astype("int64")
        return frame

    def tables(self, found: list[Any]) -> Iterator[tuple[str, pa.Table]]:
        """The answers by name."""
        for query, frame in zip(self._job["queries"], found, strict=True):
            yield query["name"], pa.Table.from_pandas(frame, preserve_index=False)


def _condition(rows: Any, where: str) -> Any:
    """A conjunction of columns and comparisons, as pandas writes it."""
    text = f"({where.replace(' AND ', ') & (').replace('NOT ', '~')})"
    return rows.eval(text)
