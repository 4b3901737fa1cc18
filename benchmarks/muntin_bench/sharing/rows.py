"""What the rows themselves say: who satisfies which predicate, fragments, and windows' sums.

Computed straight from the trades with numpy, so that the engine's answers and the operations it
counts can be held against them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin_bench.sharing.data import Market
from muntin_bench.sharing.workloads import SECOND, SharedQuery, Workload

Columns = Mapping[str, npt.NDArray[Any]]


def columns_of(market: Market) -> dict[str, npt.NDArray[Any]]:
    """Times in microseconds, symbols as numbers, indexes and quantities of every trade."""
    codes = market.codes()
    price, vol = (market.trades.column(name).to_numpy() for name in ("price", "vol"))
    close = market.close.column("cp").to_numpy()[codes]
    indexes = {
        name: market.index.column(name).to_numpy()[codes] for name in ("r3000", "r2000", "r1000")
    }
    return {
        "ts": market.trades.column("ts").cast(pa.int64()).to_numpy(),
        "symbol": codes,
        "vol": vol,
        "value": price * vol,
        "change": np.abs(price - close) / close,
        **indexes,
    }


def satisfied(workload: Workload, columns: Columns) -> int:
    """How often a row satisfies a query: the partial aggregations of queries that share nothing."""
    counts: dict[Any, int] = {None: len(columns["ts"])}
    for query in workload.queries:
        if query.predicate is not None and query.predicate not in counts:
            counts[query.predicate] = int(query.predicate.holds(columns).sum())
    return sum(counts[query.predicate] for query in workload.queries)


def fragments(workload: Workload, columns: Columns, seconds: int = 600) -> tuple[list[int], int]:
    """How many different signatures the rows of each period have, and all rows together.

    Rows that satisfy no predicate are left out, as the paper's Fragment Manager never sees them.
    """
    # A signature is told by the sum of random numbers drawn for its predicates.
    random = np.random.default_rng(0)
    predicates = dict.fromkeys(query.predicate for query in workload.queries)
    signatures = np.zeros(len(columns["ts"]), np.uint64)
    for predicate in predicates:
        number = random.integers(1, 1 << 64, dtype=np.uint64)
        if predicate is not None:
            signatures += predicate.holds(columns) * number
    kept = signatures != 0
    periods = columns["ts"][kept] // (seconds * SECOND)
    signatures = signatures[kept]
    found = [np.unique(signatures[periods == period]).size for period in np.unique(periods)]
    return found, np.unique(signatures).size


def sums(query: SharedQuery, columns: Columns) -> tuple[list[int], list[float]]:
    """The start of each window that holds a row, and the exact sum of its values, rounded once."""
    held = slice(None) if query.predicate is None else query.predicate.holds(columns)
    ts, value = columns["ts"][held], columns["value"][held]
    if not ts.size:
        return [], []
    size, slide = query.range * SECOND, query.slide * SECOND
    ends = np.arange(ts[0] // slide + 1, (ts[-1] + size) // slide + 1) * slide
    begins = np.searchsorted(ts, ends - size)
    stops = np.searchsorted(ts, ends)
    filled = stops > begins
    values = value.tolist()
    spans = zip(begins[filled].tolist(), stops[filled].tolist(), strict=True)
    starts = (ends[filled] - size).tolist()
    return starts, [math.fsum(values[begin:stop]) for begin, stop in spans]
