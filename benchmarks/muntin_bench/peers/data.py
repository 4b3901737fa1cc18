"""Seeded rows for the comparison with peers: trades, rows of many keys, and bids of auctions.

All times are whole milliseconds, the finest that every peer has, and in order, so that no peer
drops a row as late. What predicates compare and what sums add up are stored columns: no side
computes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin_bench.sharing.data import hour

START = 1_700_000_040_000_000  # a whole minute, and no whole hour
_MILLISECOND = 1_000
# NEXMark's proportions: of 50 events 46 are bids, 3 open an auction, and one adds a person.
_EVENTS, _BIDS, _AUCTIONS = 50, 46, 3
_IN_FLIGHT = 100
_CHANNELS = ("Apple", "Baidu", "Facebook", "Google", *(f"channel-{number}" for number in range(60)))
_HOT_EVERY = 100


@dataclass(frozen=True)
class Data:
    """Rows by name: what they are, how many, and how they are made."""

    name: str
    rows: int
    make: Callable[[], pa.Table]

    @property
    def about(self) -> str:
        """A few words about the rows."""
        return f"{self.rows:,} rows of {self.name}, seed 0"


def trades(rows: int, symbols: int = 8_000) -> Data:
    """The synthetic hour of trades with their closing prices and indexes joined already."""
    return Data("trades", rows, partial(_trades, rows, symbols))


def keyed(rows: int, keys: int) -> Data:
    """Ten minutes of rows with so many different keys, all equally likely."""
    return Data(f"keyed_{keys}", rows, partial(_keyed, rows, keys))


def bids(rows: int, seconds: int) -> Data:
    """Bids of auctions, half of them for the hottest auction of the moment."""
    return Data("bids", rows, partial(_bids, rows, seconds))


@cache
def _trades(rows: int, symbols: int) -> pa.Table:
    """The trades of the sharing benchmark, a row for each with the columns of its tables."""
    market = hour(rows, symbols)
    codes = pa.array(market.codes())
    price, vol = (market.trades.column(name).to_numpy() for name in ("price", "vol"))
    close = market.close.column("cp").combine_chunks().take(codes).to_numpy()
    columns = {
        "ts": market.trades.column("ts"),
        "symbol": market.trades.column("symbol"),
        "vol": market.trades.column("vol"),
        "amount": pa.array(vol * price),
        "moved": pa.array(np.abs(price - close) / close),
        **{
            name: market.index.column(name).combine_chunks().take(codes)
            for name in ("r3000", "r2000", "r1000")
        },
    }
    return pa.table(columns).combine_chunks()


def _keyed(rows: int, keys: int) -> pa.Table:
    random = np.random.default_rng([0, keys])
    return pa.table(
        {
            "ts": _times(np.sort(random.integers(0, 600_000, rows))),
            "key": random.integers(0, keys, rows),
            "amount": np.round(random.uniform(0, 1000, rows), 2),
        }
    )


def _bids(rows: int, seconds: int) -> pa.Table:
    random = np.random.default_rng(0)
    opened = np.arange(rows) * _EVENTS // _BIDS // _EVENTS * _AUCTIONS + 1
    hot = opened // _HOT_EVERY * _HOT_EVERY
    cold = opened - random.integers(0, np.minimum(opened, _IN_FLIGHT) + 1)
    return pa.table(
        {
            "ts": _times(np.arange(rows) * (seconds * 1000) // rows),
            "auction": np.where(random.random(rows) < 0.5, hot, cold),
            "bidder": random.integers(0, np.maximum(opened // _AUCTIONS, 1) + 1),
            "price": np.round(10 ** random.uniform(0, 6, rows)).astype(np.int64),
            "channel": np.array(_CHANNELS)[random.integers(0, len(_CHANNELS), rows)],
        }
    )


def _times(milliseconds: Ints) -> pa.Array:
    return pa.array(START + milliseconds * _MILLISECOND, pa.timestamp("us", "UTC"))
