"""What a trading desk watches: VWAPs, highs and lows, volume spikes and crossing averages.

Run it with `.venv/bin/python examples/trades.py`, over synthetic trades, or with the path of a
Parquet file of real ones (`ts`, `symbol`, `price`, `vol`; of 7 October 2013). What it shows is
told in docs/examples/trades.md.
"""

import math
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import reduce
from pathlib import Path

import polars as pl

import muntin
from muntin.testing import trades

QUERIES = Path(__file__).with_suffix(".sql")
OPENING = datetime(2013, 10, 7, 13, 30, tzinfo=UTC)
CLOSING = OPENING + timedelta(hours=6, minutes=30)
NOON = OPENING + timedelta(hours=2, minutes=30)  # in New York
LEVELS = (3, 6, 10)  # a minute's volume, as a multiple of the average minute of the last hour
KEYS = ["symbol", "window_end"]

Frames = Mapping[str, pl.DataFrame]


def synthetic_day(rows: int = 100_000) -> pl.DataFrame:
    """A day of trades in four symbols, with a rush into one of them at 17:10."""
    day = trades(rows, seconds=(CLOSING - OPENING).total_seconds())
    starts = OPENING + timedelta(hours=3, minutes=40)
    rush = trades(
        rows // 20, seed=1, symbols=1, seconds=180, start=int(starts.timestamp() * 1_000_000)
    )
    return pl.concat([pl.from_arrow(day), pl.from_arrow(rush)])


def in_session(table: pl.DataFrame) -> pl.DataFrame:
    """From an hour after the opening, when all windows are full of the day's trades."""
    return table.filter(
        pl.col("window_end").is_between(OPENING + timedelta(hours=1), CLOSING)
    ).sort(KEYS)


def board(results: Frames, at: datetime) -> pl.DataFrame:
    """All symbols that have traded within 15 minutes, at one minute."""
    names = ("last_15m", "last_5m", "last_1m", "blocks")
    now = pl.col("window_end") == at
    lines = [results[name].filter(now).drop("window_start") for name in names]
    joined = reduce(lambda wide, line: wide.join(line, on=KEYS, how="left"), lines)
    vwaps = ("vwap_1m", "vwap_5m", "vwap_15m")
    return joined.select(
        "symbol", *vwaps, "high_15m", "low_15m", "volume_1m", pl.col("blocks_15m").fill_null(0)
    )


def spikes(results: Frames) -> pl.DataFrame:
    """Minutes whose volume is a multiple of the last hour's average, with the level reached."""
    times = pl.col("volume_1m") * 60 / pl.col("volume_1h")
    reached = [pl.when(pl.col("times") >= level).then(level) for level in LEVELS]
    return (
        in_session(results["last_1m"])
        .join(results["last_1h"], on=KEYS)
        .select("window_end", "symbol", "volume_1m", "volume_1h", times=times)
        .with_columns(level=pl.max_horizontal(reached))
        .drop_nulls("level")
        .sort("window_end", "symbol")
    )


def crossings(results: Frames) -> pl.DataFrame:
    """Minutes at which the average of 15 minutes crosses that of an hour."""
    above = pl.col("average_15m") > pl.col("average_1h")
    return (
        in_session(results["last_15m"])
        .join(results["last_1h"], on=KEYS)
        .select("window_end", "symbol", "average_15m", "average_1h", above=above)
        .filter(pl.col("above") != pl.col("above").shift().over("symbol"))
        .with_columns(turns=pl.when("above").then(pl.lit("up")).otherwise(pl.lit("down")))
        .drop("above")
    )


def check(data: pl.DataFrame, minutes: pl.DataFrame) -> None:
    """Compute windows of 15 minutes again, from the trades themselves."""
    for row in minutes.iter_rows(named=True):
        inside = (pl.col("ts") >= row["window_start"]) & (pl.col("ts") < row["window_end"])
        mine = data.filter((pl.col("symbol") == row["symbol"]) & inside)
        value = math.fsum((mine["price"] * mine["vol"]).to_list())
        assert row["vwap_15m"] == value / mine["vol"].sum(), row
        assert row["average_15m"] == math.fsum(mine["price"].to_list()) / mine.height, row
        assert row["high_15m"] == mine["price"].max(), row
        assert row["low_15m"] == mine["price"].min(), row


def show(table: pl.DataFrame) -> None:
    times = pl.selectors.temporal().dt.strftime("%H:%M")
    with pl.Config(
        tbl_formatting="ASCII_MARKDOWN",
        tbl_hide_column_data_types=True,
        tbl_hide_dataframe_shape=True,
        tbl_cols=-1,
        tbl_rows=-1,
        tbl_width_chars=120,
        float_precision=3,
    ):
        print(table.with_columns(times), end="\n\n")


if __name__ == "__main__":
    data = pl.read_parquet(sys.argv[1]) if len(sys.argv) > 1 else synthetic_day()
    results = muntin.aggregate(data, QUERIES, time="ts")
    print(results.plan, end="\n\n")
    show(board(results, NOON))
    show(spikes(results))
    show(crossings(results).filter(pl.col("symbol") == data["symbol"].min()))
    some = in_session(results["last_15m"]).sample(50, seed=7)
    check(data, some)
    print(f"{some.height} windows computed again from the trades: all equal")
