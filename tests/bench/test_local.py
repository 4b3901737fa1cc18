"""The benchmark's two sides answer alike; what it times is checked here on little data."""

from __future__ import annotations

import polars as pl

import muntin
from muntin.testing import trades
from muntin_bench import local


def test_both_sides_give_the_same_answers() -> None:
    table = trades(20_000, seed=5, seconds=20_000)
    frame = pl.DataFrame(pl.from_arrow(table)).set_sorted("ts")
    results = muntin.aggregate(table, ";".join(q.sql for q in local.MIXED), time="ts")
    for query in local.MIXED:
        local.check_same(results[query.name], query.polars(frame), query)
