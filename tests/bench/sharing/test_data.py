"""The made-up market has the size, the order and the skew that the paper reports."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from muntin_bench.sharing import data as sharing_data
from muntin_bench.sharing.data import NOON, Market, hour, week


@pytest.fixture(scope="module")
def market() -> Market:
    """Ten minutes' worth of the paper's trades, over an hour."""
    return hour(200_000)


def test_volumes_are_skewed_as_the_paper_says(market: Market) -> None:
    volumes, counts = np.unique(market.trades.column("vol").to_numpy(), return_counts=True)
    common = np.sort(counts)[::-1] / market.trades.num_rows
    assert volumes[np.argmax(counts)] == 100
    assert common[0] == pytest.approx(0.5, abs=0.02)
    assert 0.9 < common[:15].sum() < 0.95
    assert 1000 < volumes.size < 2000
    assert volumes.min() == 10
    assert 200_000 < volumes.max() <= 1_600_000


def test_times_are_in_order_within_the_hour_and_come_in_bursts(market: Market) -> None:
    times = market.trades.column("ts").cast(pa.int64()).to_numpy()
    assert np.all(np.diff(times) >= 0)
    assert NOON <= times[0] < times[-1] < NOON + 3600 * 1_000_000
    per_second = np.bincount((times - NOON) // 1_000_000)
    # Independent arrivals would have a variance about as large as the mean.
    assert per_second.var() > 5 * per_second.mean()


def test_prices_are_cents_that_walk_by_one(market: Market) -> None:
    price = market.trades.column("price").to_numpy()
    cents = np.round(price * 100).astype(np.int64)
    assert np.array_equal(cents / 100, price)
    popular = cents[market.codes() == 0]
    assert popular.size > 1000
    assert np.abs(np.diff(popular)).max() == 1
    assert np.ptp(popular) > 5


def test_few_symbols_make_most_of_the_trades(market: Market) -> None:
    counts = np.sort(np.bincount(market.codes(), minlength=8000))[::-1]
    assert counts[:100].sum() > 0.3 * counts.sum()
    assert counts[0] < 0.05 * counts.sum()
    assert counts[4000:].sum() < 0.1 * counts.sum()


def test_every_symbol_has_one_closing_price_and_indexes(market: Market) -> None:
    for table in market.tables.values():
        assert pc.count_distinct(table.column("symbol")).as_py() == table.num_rows == 8000
    r3000, r2000, r1000 = (
        market.index.column(name).to_numpy() for name in market.index.schema.names[1:]
    )
    assert [column.sum() for column in (r3000, r2000, r1000)] == [3000, 2000, 1000]
    assert np.array_equal(r3000, r2000 ^ r1000)
    assert market.close.column("cp").to_numpy().min() > 0


def test_the_same_seed_gives_the_same_trades() -> None:
    first = hour(500, symbols=9, seed=3)
    hour.cache_clear()
    assert hour(500, symbols=9, seed=3).trades.equals(first.trades)
    assert not hour(500, symbols=9, seed=4).trades.equals(first.trades)


def test_other_trades_get_closing_prices_near_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    some = hour(2000, symbols=4).trades
    monkeypatch.setattr(sharing_data, "load_trades", lambda: ("some", some))
    found = week.__wrapped__()
    assert found.trades.schema.names == ["ts", "symbol", "price", "vol"]
    price = found.trades.column("price").to_numpy()
    near = found.close.column("cp").to_numpy()[found.codes()]
    assert np.abs(price / near - 1).max() < 0.3
    # The most popular symbol leads, and the four are not all in the same indexes.
    assert found.close.column("symbol")[0].as_py() == "S0000"
    assert found.index.column("r3000").to_pylist().count(True) == 2
