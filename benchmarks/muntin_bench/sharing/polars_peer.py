"""The queries of the sharing benchmark answered by polars, in the ways its users would try."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl
import pyarrow as pa

from muntin_bench.sharing.data import Market
from muntin_bench.sharing.workloads import SECOND, Predicate, SharedQuery

Way = Callable[[pl.LazyFrame, SharedQuery], pl.LazyFrame]


class PolarsPeer:
    """Polars over the trades of a market, with as many threads as it takes by itself.

    Arrow data are taken over before any time is measured. The join with the static tables and
    the quantities that predicates compare are computed once for many queries, and as a part of
    the lazy query for a single one.
    """

    name = "polars"

    def __init__(self, market: Market) -> None:
        self.trades = pl.DataFrame(pl.from_arrow(market.trades)).set_sorted("ts")
        close, index = (pl.DataFrame(pl.from_arrow(table)) for table in market.tables.values())
        # Symbols are few: one join of the trades is cheaper than two.
        self.symbols = close.join(index, on="symbol")

    @property
    def threads(self) -> int:
        """How many threads polars uses."""
        return pl.thread_pool_size()

    @property
    def ways(self) -> dict[str, tuple[Way, bool]]:
        """How to answer: the form of a query, and whether all are collected together."""
        return {
            "group_by_dynamic, one by one": (_dynamic, False),
            "group_by_dynamic, collect_all": (_dynamic, True),
            "paired slices, one by one": (_sliced, False),
            "paired slices, collect_all": (_sliced, True),
        }

    def answer(self, queries: Sequence[SharedQuery], way: str) -> list[pa.Table]:
        """The answers: `window_start` in microseconds since the epoch, and `value`."""
        form, together = self.ways[way]
        rows = self._enriched(in_order=form is _dynamic)
        if len(queries) > 1:
            rows = rows.collect().lazy()
        if form is _dynamic:
            rows = rows.set_sorted("ts")
        frames = [form(rows, query) for query in queries]
        if together:
            return [frame.to_arrow() for frame in pl.collect_all(frames)]
        return [frame.collect().to_arrow() for frame in frames]

    def _enriched(self, *, in_order: bool) -> pl.LazyFrame:
        joined = self.trades.lazy().join(
            self.symbols.lazy(), on="symbol", maintain_order="left" if in_order else None
        )
        price, vol, close = pl.col("price"), pl.col("vol"), pl.col("cp")
        return joined.select(
            pl.col("ts").cast(pl.Int64),
            "vol",
            "r3000",
            "r2000",
            "r1000",
            value=price * vol,
            change=(price - close).abs() / close,
        )


def _dynamic(rows: pl.LazyFrame, query: SharedQuery) -> pl.LazyFrame:
    # Windows that *end* on the slide start a range before it.
    grouped = _filtered(rows, query).group_by_dynamic(
        "ts",
        every=f"{query.slide * SECOND}i",
        period=f"{query.range * SECOND}i",
        offset=f"-{query.range * SECOND}i",
    )
    return grouped.agg(pl.col("value").sum()).select(window_start="ts", value="value")


def _sliced(rows: pl.LazyFrame, query: SharedQuery) -> pl.LazyFrame:
    """Sum up paired slices, then the slices of each window; the order of rows does not matter."""
    size, slide = query.range * SECOND, query.slide * SECOND
    whole, rest = divmod(size, slide)
    ts = pl.col("ts")
    number = 2 * (ts // slide) + (ts % slide >= slide - rest).cast(pl.Int64)
    slices = (
        _filtered(rows, query).group_by(slice=number).agg(pl.col("value").sum())
    )  # window n holds the slices from 2(n - whole) - 1 to 2n - 1
    first, last = pl.col("slice") // 2 + 1, (pl.col("slice") + 1) // 2 + whole
    copies = slices.select("value", window=pl.int_ranges(first, last + 1)).explode("window")
    return (
        copies.group_by("window")
        .agg(pl.col("value").sum())
        .sort("window")
        .select(window_start=pl.col("window") * slide - size, value="value")
    )


def _filtered(rows: pl.LazyFrame, query: SharedQuery) -> pl.LazyFrame:
    return rows if query.predicate is None else rows.filter(_condition(query.predicate))


def _condition(predicate: Predicate) -> pl.Expr:
    member, quantity = pl.col(predicate.index), pl.col(predicate.quantity)
    constant = predicate.constant
    value = quantity > constant if predicate.greater else quantity < constant
    return (member if predicate.member else ~member) & value
