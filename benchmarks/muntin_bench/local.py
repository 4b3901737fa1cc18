"""Ten mixed queries over trades: one shared call against ten ``group_by_dynamic`` calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa

import muntin
from muntin.testing import assert_same_rows
from muntin_bench.data import load_trades, real_trades
from muntin_bench.measure import measure
from muntin_bench.progress import step
from muntin_bench.report import Report


@dataclass(frozen=True)
class Mixed:
    """One query: its SQL after the name, and the same for polars."""

    name: str
    select: str
    window: tuple[str, str]
    aggregates: tuple[pl.Expr, ...]
    groups: tuple[str, ...] = ()
    where: tuple[str, pl.Expr] | None = None

    @property
    def sql(self) -> str:
        """The query in Muntin's SQL, with windows that start on the slide as polars has them."""
        size, slide = self.window
        by = ", ".join((f"window(ts, '{size}', '{slide}')", *self.groups))
        where = f" WHERE {self.where[0]}" if self.where else ""
        return f"CREATE QUERY {self.name} AS SELECT {self.select} FROM trades{where} GROUP BY {by}"

    def polars(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The query's answer by polars."""
        size, slide = self.window
        if self.where:
            frame = frame.filter(self.where[1])
        grouped = frame.lazy().group_by_dynamic(
            "ts", every=slide, period=size, group_by=list(self.groups) or None
        )
        return grouped.agg(*self.aggregates).collect()


def _value() -> pl.Expr:
    return (pl.col("price") * pl.col("vol")).sum()


MIXED = (
    Mixed("value", "sum(price * vol) AS a", ("12m", "5m"), (_value().alias("a"),)),
    Mixed(
        "large",
        "sum(price * vol) AS a, count(*) AS b",
        ("10m", "1m"),
        (_value().alias("a"), pl.len().alias("b")),
        where=("vol > 5000", pl.col("vol") > 5000),
    ),
    Mixed(
        "volume",
        "sum(vol) AS a, count(*) AS b",
        ("5m", "1m"),
        (pl.col("vol").sum().alias("a"), pl.len().alias("b")),
        ("symbol",),
    ),
    Mixed(
        "vwap",
        "sum(price * vol) / sum(vol) AS a",
        ("15m", "5m"),
        ((_value() / pl.col("vol").sum()).alias("a"),),
        ("symbol",),
    ),
    Mixed(
        "extremes",
        "min(price) AS a, max(price) AS b",
        ("30m", "10m"),
        (pl.col("price").min().alias("a"), pl.col("price").max().alias("b")),
        where=("vol >= 100 AND price < 100", (pl.col("vol") >= 100) & (pl.col("price") < 100)),
    ),
    Mixed(
        "spread",
        "avg(price) AS a, stddev_samp(price) AS b",
        ("1m", "10s"),
        (pl.col("price").mean().alias("a"), pl.col("price").std().alias("b")),
    ),
    Mixed(
        "venues",
        "count(*) AS a, avg(price) AS b",
        ("1h", "15m"),
        (pl.len().alias("a"), pl.col("price").mean().alias("b")),
        ("exchange",),
    ),
    Mixed(
        "ranges",
        "max(price) AS a, min(price) AS b",
        ("2m", "30s"),
        (pl.col("price").max().alias("a"), pl.col("price").min().alias("b")),
        ("symbol",),
        ("vol > 100", pl.col("vol") > 100),
    ),
    Mixed("ticks", "count(*) AS a", ("10s", "10s"), (pl.len().alias("a"),)),
    Mixed(
        "pairs",
        "sum(vol) AS a",
        ("1h", "30m"),
        (pl.col("vol").sum().alias("a"),),
        ("symbol", "exchange"),
    ),
)


_REPEATS, _FEWER = 9, 3


def run(quick: bool = False) -> Report:
    """Compare the answers of both sides, then time them; all rows even if quick."""
    about, table = load_trades()
    step(f"comparing answers, {about}")
    frame = pl.DataFrame(pl.from_arrow(table)).set_sorted("ts")
    sql = ";\n".join(query.sql for query in MIXED)
    results = muntin.aggregate(table, sql, time="ts")
    for query in MIXED:
        check_same(results[query.name], query.polars(frame), query)

    sides: dict[str, Callable[[], Any]] = {
        "muntin, ten queries in one call": lambda: muntin.aggregate(table, sql, time="ts"),
        "polars, ten group_by_dynamic calls": lambda: [query.polars(frame) for query in MIXED],
    }
    repeats = _FEWER if quick else _REPEATS
    step(f"timing both sides in turn, {repeats} times")
    timings = measure(sides, repeats=repeats)
    data = f"{about}, {table.num_rows:,} rows"
    seeds = (0,) if real_trades() is None else ()
    return Report("local", data, tuple(timings.values()), seeds=seeds)


def check_same(ours: pa.Table, theirs: pl.DataFrame, query: Mixed) -> None:
    """Refuse to time different answers; polars rounds every float addition.

    polars leaves out the windows that start before a group's first row, so they are left out of
    the comparison.
    """
    keys = ["ts", *query.groups]
    frame = pl.DataFrame(pl.from_arrow(ours)).rename({"window_start": "ts"}).drop("window_end")
    extra = frame.join(theirs, on=keys, how="anti")
    first = (
        theirs.group_by(query.groups).agg(first=pl.col("ts").min())
        if query.groups
        else (theirs.select(first=pl.col("ts").min()))
    )
    late = (
        extra.join(first, on=list(query.groups), how="left")
        if query.groups
        else extra.join(first, how="cross")
    ).filter(pl.col("ts") >= pl.col("first"))
    assert late.is_empty(), late
    shared = frame.join(theirs, on=keys, how="semi").to_arrow()
    other = theirs.select(frame.columns).to_arrow().cast(shared.schema)
    assert_same_rows(shared, other, close=dict.fromkeys(["a", "b"], 1e-9))
