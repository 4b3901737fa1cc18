"""Every example runs, prints what its page in docs/examples shows, and is right."""

from __future__ import annotations

import importlib.util
import math
import os
import subprocess
import sys
from bisect import bisect_left
from datetime import timedelta
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl
import pytest

import muntin
from code_blocks import ROOT, blocks
from quick_jvm import quick_jvm

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PAGES = sorted((ROOT / "docs" / "examples").glob("*.md"))


@cache
def output_of(name: str, *arguments: str) -> str:
    """What an example prints, run as the page says."""
    command = [sys.executable, str(ROOT / "examples" / name), *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=300, env=quick_jvm()
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def example(name: str) -> ModuleType:
    """An example as a module, to call its functions."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example(path: Path) -> None:
    assert output_of(path.name)


def stripped(text: str) -> str:
    """Lines without their indentation, between line breaks: what a page shows of a function."""
    return "\n".join(["", *(line.strip() for line in text.strip().splitlines()), ""])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_shows_the_example(page: Path) -> None:
    """Its code is the example's code, and its outputs are what the example prints."""
    path = ROOT / "examples" / page.with_suffix(".py").name.replace("-", "_")
    shown = blocks([page])
    assert f".venv/bin/python examples/{path.name}\n" in [block.code for block in shown]
    for language, source in (("python", path), ("sql", path.with_suffix(".sql"))):
        for block in shown:
            if block.language == language:
                assert stripped(block.code) in stripped(source.read_text()), block
    outputs = [block.output for block in shown if block.output is not None]
    assert outputs
    printed = output_of(path.name)
    assert [output for output in outputs if output not in printed] == []


def burn_rates(data: pl.DataFrame, slo: ModuleType) -> pl.DataFrame:
    """The rates that the example computes, from running totals of each service's minutes."""
    frames = []
    minutes = (slo.DAYS + 3) * 1440
    since = (data["ts"] - slo.MONDAY).dt.total_minutes().to_numpy()
    for service in sorted(slo.TRAFFIC):
        mine = (data["service"] == service).to_numpy()
        failed = mine & (data["status"] >= 500).to_numpy()
        requests, errors = (
            np.concatenate([[0], np.cumsum(np.bincount(since[each], minlength=minutes))])
            for each in (mine, failed)
        )
        ends = np.arange(1, minutes + 1)
        columns: dict[str, Any] = {
            "service": [service] * minutes,
            "window_end": slo.MONDAY + pl.Series(ends * 60_000_000).cast(pl.Duration("us")),
        }
        for name, length in LENGTHS.items():
            starts = np.maximum(ends - length, 0)
            seen, failures = requests[ends] - requests[starts], errors[ends] - errors[starts]
            columns[name] = failures / np.maximum(seen, 1) / slo.BUDGET
            held = seen > 0
        frames.append(pl.DataFrame(columns).filter(held))
    return pl.concat(frames)


LENGTHS = {"5m": 5, "30m": 30, "1h": 60, "6h": 360, "1d": 1440, "3d": 4320}  # the longest last


def test_burn_rates() -> None:
    """Every rate of every minute, also where there are minutes without a request."""
    slo = example("slo_burn_rates")
    assert tuple(LENGTHS) == slo.WINDOWS
    data = slo.requests(rows=20_000)
    rates = slo.side_by_side(muntin.aggregate(data, slo.queries(), time="ts"))
    expected = burn_rates(data, slo)
    assert expected["5m"].eq(0).any()
    assert rates.select(expected.columns).equals(expected)
    assert rates.height > 4 * slo.DAYS * 1440 * 0.9

    some = rates.filter(pl.col("5m") > 0).head(3)
    slo.check(data, some)
    with pytest.raises(AssertionError):
        slo.check(data, some.with_columns(pl.col("1h") * 1.000001))


def test_alerts_fire_and_clear() -> None:
    """Only while both windows exceed the threshold, each service on its own."""
    slo = example("slo_burn_rates")
    long = {"a": [0, 15, 15, 15, 15, 0], "b": [15, 15, 0, 15, 15, 15]}
    short = {"a": [20, 20, 0, 20, 20, 20], "b": [20, 20, 20, 14.4, 20, 20]}
    rates = pl.DataFrame(
        [
            {"service": service, "window_end": minute, **dict.fromkeys(slo.WINDOWS, 0.0)}
            | {"1h": float(long[service][minute]), "5m": float(short[service][minute])}
            for service in ("a", "b")
            for minute in range(6)
        ]
    )
    fired = slo.alerts(rates).sort("service", "fires")
    assert fired.select("alert", "service", "fires", "clears").rows() == [
        ("page, fast burn", "a", 1, 2),
        ("page, fast burn", "a", 3, 5),
        ("page, fast burn", "b", 0, 2),
        ("page, fast burn", "b", 4, None),
    ]


def test_features_are_those_known_at_the_time() -> None:
    """Of every payment: only what came before it, and had been there to be looked up."""
    cards = example("card_features")
    data = cards.payments(rows=2_000)
    training = cards.training_set(data, cards.from_history(data))
    assert training.select(data.columns).equals(data)
    windows = {"10m": (600, 60), "1h": (3600, 300), "1d": (86_400, 3600)}  # range, slide
    spent = {
        str(card): [(ts.timestamp(), amount) for ts, amount in mine.select("ts", "amount").rows()]
        for (card,), mine in data.group_by("card")
    }
    for row in training.iter_rows(named=True):
        for name, (length, slide) in windows.items():
            end = (row["ts"] - cards.DELAY).timestamp() // slide * slide
            amounts = [amount for ts, amount in spent[row["card"]] if end - length <= ts < end]
            total = math.fsum(amounts)
            assert row[f"n_{name}"] == len(amounts)
            assert row[f"sum_{name}"] == total
            assert row[f"mean_{name}"] == (total / len(amounts) if amounts else None)
            assert row[f"max_{name}"] == max(amounts, default=None)


def test_plain_floats_are_close_and_not_the_same() -> None:
    """Both ways of adding up are right but for their last bits: the comparison is a fair one."""
    cards = example("card_features")
    data = cards.payments(rows=2_000)
    days = cards.from_history(data)["last_1d"]
    for sums in (cards.sums_from_scratch(data, days), cards.sums_moved_on(data, days)):
        assert (sums - days["sum_1d"]).abs().max() < 1e-9
        assert (sums != days["sum_1d"]).any()


def test_trades_again_from_scratch() -> None:
    """Every column of every window, where some symbols are silent for minutes."""
    desk = example("trades")
    data = desk.synthetic_day(rows=1_500)
    results = muntin.aggregate(data, desk.QUERIES, time="ts")
    minute = timedelta(minutes=1)
    lengths = {"last_1m": 1, "last_5m": 5, "last_15m": 15, "last_1h": 60, "blocks": 15}
    expected: dict[str, list[dict[str, object]]] = {name: [] for name in lengths}
    ends = [desk.OPENING + minute * (1 + number) for number in range(6 * 60 + 30 + 60)]
    for symbol in sorted(set(data["symbol"])):
        mine = data.filter(pl.col("symbol") == symbol).select("ts", "price", "vol").sort("ts")
        rows, times = mine.rows(), mine["ts"].to_list()
        for name, length in lengths.items():
            unit = "1h" if length == 60 else f"{length}m"
            for end in ends:
                inside = rows[bisect_left(times, end - minute * length) : bisect_left(times, end)]
                if name == "blocks":
                    inside = [row for row in inside if row[2] >= 10_000]
                if inside:
                    found = {"symbol": symbol, "window_end": end}
                    expected[name].append(found | bar(inside, unit))
    for name, table in results.items():
        columns = table.drop("window_start").columns
        wanted = pl.DataFrame(expected[name]).select(columns).sort("window_end", "symbol")
        assert table.select(columns).equals(wanted), name

    some = results["last_15m"].head(3)
    desk.check(data, some)
    with pytest.raises(AssertionError):
        desk.check(data, some.with_columns(pl.col("vwap_15m") * 1.000001))


def bar(inside: list[tuple[object, float, int]], unit: str) -> dict[str, object]:
    """What can be said of some trades (their times, prices and volumes)."""
    prices, volume = [price for _, price, _ in inside], sum(vol for *_, vol in inside)
    return {
        f"vwap_{unit}": math.fsum(price * vol for _, price, vol in inside) / volume,
        f"high_{unit}": max(prices),
        f"low_{unit}": min(prices),
        f"average_{unit}": math.fsum(prices) / len(prices),
        f"volume_{unit}": volume,
        f"blocks_{unit}": len(inside),
    }


def test_spikes_and_crossings() -> None:
    desk = example("trades")
    start = desk.OPENING + timedelta(hours=1)
    keys: dict[str, list[Any]] = {
        "window_start": [start] * 6,
        "window_end": [start + timedelta(minutes=number) for number in (0, 1, 2)] * 2,
        "symbol": ["A"] * 3 + ["B"] * 3,
    }
    results = {
        "last_1m": pl.DataFrame(keys | {"volume_1m": [299, 300, 599, 600, 1000, 0]}),
        "last_15m": pl.DataFrame(keys | {"average_15m": [1.0, 3.0, 2.0, 3.0, 1.0, 3.0]}),
        "last_1h": pl.DataFrame(keys | {"volume_1h": [6000] * 6, "average_1h": [2.0] * 6}),
    }
    found = desk.spikes(results)
    assert found.select("symbol", "volume_1m", "level").rows() == [
        ("B", 600, 6),
        ("A", 300, 3),
        ("B", 1000, 10),
        ("A", 599, 3),
    ]
    turns = desk.crossings(results).select("symbol", "window_end", "turns").rows()
    first, second, third = keys["window_end"][:3]
    assert first not in {end for _, end, _ in turns}
    assert turns == [
        ("A", second, "up"),
        ("A", third, "down"),
        ("B", second, "down"),
        ("B", third, "up"),
    ]


def test_real_trades() -> None:
    path = Path(os.environ.get("MUNTIN_DATA", ""), "us_trades_2013.parquet")
    if not path.is_file():
        pytest.skip("MUNTIN_DATA names no folder with real trades")
    printed = output_of("trades.py", str(path))
    assert "| SPY " in printed
    assert printed.endswith("50 windows computed again from the trades: all equal\n")
