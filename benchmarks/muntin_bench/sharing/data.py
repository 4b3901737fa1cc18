"""Trades with their closing prices and indexes: a synthetic hour of a whole market, or real ones.

The synthetic hour has the size and the skew that "On-the-Fly Sharing for Streamed Aggregation"
reports: half of all volumes are 100, fifteen volumes make nine tenths, and some 200,000 trades in
ten minutes hold fewer than 2,000 different ones between 10 and 1.6 million.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin._typing import Floats, Ints
from muntin_bench.data import load_trades

ROWS = 1_138_636
SYMBOLS = 8_000
NOON = 1_101_902_400_000_000  # 2004-12-01 12:00 UTC
_SECONDS = 3600
_COMMON = (200, 500, 300, 1000, 400, 600, 800, 700, 2000, 900, 1500, 5000, 1200, 3000)
_LARGEST = 1_600_000


@dataclass(frozen=True)
class Market:
    """A stream of trades, and the static tables its queries join, each in one chunk."""

    about: str
    trades: pa.Table
    close: pa.Table
    index: pa.Table

    @property
    def tables(self) -> dict[str, pa.Table]:
        """The static tables by name."""
        return {"close": self.close, "index": self.index}

    @property
    def schemas(self) -> dict[str, pa.Schema]:
        """The schemas of the static tables by name."""
        return {name: table.schema for name, table in self.tables.items()}

    def codes(self) -> Ints:
        """Which row of the static tables belongs to each trade; every symbol has one."""
        symbols = self.close.column("symbol").combine_chunks()
        found = self.trades.column("symbol").combine_chunks()
        return np.asarray(pc.index_in(found, symbols)).astype(np.int64)


@cache
def hour(rows: int = ROWS, symbols: int = SYMBOLS, seed: int = 0) -> Market:
    """An hour of synthetic trades from noon on, in time order, kept for the next call.

    >>> market = hour(1000, symbols=10)
    >>> market.trades.column_names, market.index.column_names
    (['ts', 'symbol', 'price', 'vol'], ['symbol', 'r3000', 'r2000', 'r1000'])
    """
    random = np.random.default_rng(seed)
    chosen = random.choice(symbols, rows, p=_popularity(symbols))
    opening = np.round(100 * np.exp(random.normal(3.2, 0.8, symbols))).astype(np.int64) + 100
    cents = _walks(random, chosen, opening)
    names = pa.array([f"S{number:04d}" for number in range(symbols)])
    trades = pa.table(
        {
            "ts": pa.array(NOON + _times(random, rows), pa.timestamp("us", "UTC")),
            "symbol": names.take(pa.array(chosen)),
            "price": pa.array(cents / 100),
            "vol": pa.array(_volumes(random, rows)),
        }
    )
    about = f"a synthetic hour of {rows:,} trades of {symbols:,} symbols, seed {seed}"
    return Market(about, trades, _close(random, names, opening / 100), _index(random, names))


@cache
def week(seed: int = 0) -> Market:
    """The trades of :func:`~muntin_bench.data.load_trades`, with synthetic static tables."""
    about, found = load_trades()
    trades = found.select(["ts", "symbol", "price", "vol"])
    trades = trades.set_column(1, "symbol", trades.column("symbol").cast(pa.string()))
    counts = pc.value_counts(trades.column("symbol").combine_chunks())
    order = pc.sort_indices(counts.field("counts"), sort_keys=[("", "descending")])
    names = counts.field("values").take(order)
    prices = trades.group_by("symbol").aggregate([("price", "mean")])
    means = prices.column("price_mean").combine_chunks()
    means = means.take(pc.index_in(names, prices.column("symbol").combine_chunks()))
    random = np.random.default_rng(seed)
    close = _close(random, names, np.asarray(means))
    about = f"{about}, {trades.num_rows:,} rows"
    return Market(about, trades.combine_chunks(), close, _index(random, names))


def _popularity(symbols: int) -> Floats:
    """Shares of all trades, as Zipf and Mandelbrot have it: the most popular are alike."""
    weights = 1 / (np.arange(symbols) + 20.0) ** 1.3
    shares: Floats = weights / weights.sum()
    return shares


def _times(random: np.random.Generator, rows: int) -> Ints:
    """Microseconds since noon, in order: bursts of a few seconds on a busier and a calmer tide."""
    seconds = np.arange(_SECONDS)
    tide = 1 + 0.15 * np.sin(2 * np.pi * seconds / _SECONDS * 1.5 + 0.5)
    noise = random.normal(0, 0.35, _SECONDS + 8)
    bursts = np.exp(np.convolve(noise, np.exp(-np.arange(9) / 3), "valid"))
    rates = tide * bursts
    counts = random.multinomial(rows, rates / rates.sum())
    milliseconds = np.sort(np.repeat(seconds, counts) * 1000 + random.integers(0, 1000, rows))
    return (milliseconds * 1000).astype(np.int64)


def _walks(random: np.random.Generator, chosen: Ints, opening: Ints) -> Ints:
    """A price in cents for each trade: each symbol's goes up or down by a cent now and then."""
    steps = random.choice(np.array([-1, 0, 1]), chosen.size, p=[0.2, 0.6, 0.2])
    order = np.argsort(chosen, kind="stable")
    total = np.cumsum(steps[order])
    counts = np.bincount(chosen, minlength=opening.size)
    before = np.concatenate([[0], total])[np.cumsum(counts) - counts]
    walked = np.empty(chosen.size, np.int64)
    walked[order] = total - np.repeat(before, counts)
    cents: Ints = np.maximum(opening[chosen] + walked, 1)
    return cents


def _volumes(random: np.random.Generator, rows: int) -> Ints:
    """Half are 100, two fifths other common lots, the rest odd lots and large or uneven ones."""
    common = np.array(_COMMON, np.int64)
    weights = 1 / np.arange(1, common.size + 1) ** 0.8
    lots = random.choice(common, rows, p=weights / weights.sum())
    odd = random.integers(10, 100, rows)
    large = 100 * np.ceil(np.exp(random.normal(3.0, 1.6, rows))).astype(np.int64)
    uneven = 100 + np.ceil(np.exp(random.normal(5.5, 0.8, rows))).astype(np.int64)
    kind = np.searchsorted([0.51, 0.913, 0.945, 0.995], random.random(rows), side="right")
    volumes = np.choose(kind, [np.full(rows, 100), lots, odd, large, uneven])
    clipped: Ints = np.clip(volumes, 10, _LARGEST)
    return clipped


def _close(random: np.random.Generator, names: pa.Array, prices: Floats) -> pa.Table:
    """Yesterday's closing prices: a few percent from today's, most of them less."""
    moved = prices * np.exp(0.02 * random.standard_t(4, len(names)).clip(-12, 12))
    cents = np.maximum(np.round(100 * moved), 1)
    return pa.table({"symbol": names, "cp": pa.array(cents / 100)})


def _index(random: np.random.Generator, names: pa.Array) -> pa.Table:
    """An eighth of the symbols, mostly popular ones, are in r1000, another quarter in r2000.

    Both are parts of r3000, and a symbol is in one of them at most.
    """
    size = len(names)
    standing = np.arange(size) + random.normal(0, size / 20, size)
    place = np.argsort(np.argsort(standing))
    first, all_three = -(-size // 8), -(-3 * size // 8)
    columns = {
        "symbol": names,
        "r3000": pa.array(place < all_three),
        "r2000": pa.array((place >= first) & (place < all_three)),
        "r1000": pa.array(place < first),
    }
    return pa.table(columns)
