"""Fraud features per payment card, the same to the last bit from history and from a stream.

Run it with `.venv/bin/python examples/card_features.py`. It needs Java and
`pip install muntin[spark]`. What it shows is told in docs/examples/card-features.md.
"""

import os
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl

import muntin
from muntin.spark import session, stop
from muntin.testing import assert_same_rows

FEATURES = Path(__file__).with_suffix(".sql")
SLIDES = {"last_10m": "1m", "last_1h": "5m", "last_1d": "1h"}
LATENESS = timedelta(minutes=1)  # no payment takes longer to arrive
DELAY = timedelta(minutes=2)  # so long after its end a window can be looked up

MONDAY = datetime(2025, 3, 3, tzinfo=UTC)
DAYS = 3
CARDS = 60
STOLEN = 12
COLUMNS = "ts TIMESTAMP, card STRING, amount DOUBLE"


def payments(rows: int = 5_000, seed: int = 7) -> pl.DataFrame:
    """Payments in time order, when each one arrived, and whether it was fraud.

    A thief tries a stolen card with one unit, then uses it several times within minutes.
    """
    random = np.random.default_rng(seed)
    seconds = random.integers(0, DAYS * 86_400, rows)
    card = random.integers(0, CARDS, rows)
    cents = np.round(random.lognormal(8, 1, rows))
    for stolen in range(STOLEN):
        uses = random.integers(5, 10)
        first = random.integers(86_400, DAYS * 86_400 - 3600)
        seconds = np.append(seconds, first + np.cumsum(random.integers(30, 240, uses)))
        card = np.append(card, np.full(uses, stolen))
        cents = np.append(cents, [100, *np.round(random.lognormal(10, 0.5, uses - 1))])
    ts = MONDAY + pl.Series(seconds * 1_000_000).cast(pl.Duration("us"))
    delays = random.integers(0, LATENESS // timedelta(microseconds=1), len(seconds))
    return pl.DataFrame(
        {
            "ts": ts,
            "arrived": ts + pl.Series(delays).cast(pl.Duration("us")),
            "card": [f"card {number:02}" for number in card],
            "amount": cents / 100,
            "fraud": np.arange(len(seconds)) >= rows,
        }
    ).sort("ts", "arrived")


def from_history(data: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Offline, for training: all payments at once."""
    return dict(muntin.aggregate(data, FEATURES, time="ts"))


def from_stream(data: pl.DataFrame, folder: Path) -> dict[str, pl.DataFrame]:
    """Online, for serving: payments in the order they arrive, with a restart halfway."""
    spark = session("card features", master="local[2]")
    incoming = folder / "incoming"
    incoming.mkdir()
    arrivals = data.sort("arrived").select("ts", "card", "amount")
    quarter = -(-arrivals.height // 4)
    for start in (0, 2):
        for number in (start, start + 1):
            path = incoming / f"{number}.parquet"
            arrivals.slice(number * quarter, quarter).write_parquet(path)
            os.utime(path, (number, number))  # Spark takes the oldest file first
        run = muntin.run(
            muntin.files(incoming, schema=COLUMNS, maxFilesPerTrigger=1),
            FEATURES,
            time="ts",
            lateness=LATENESS,
            trigger="available_now",
            sink=muntin.sinks.parquet(folder / "features"),
            checkpoint=folder / "checkpoint",
        )
        run.await_termination()
        run.stop(flush=start == 2)
    stop(spark)
    results = muntin.read(folder / "features")
    return {name: pl.from_arrow(results[name]) for name in results}


def training_set(data: pl.DataFrame, features: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """Each payment with the features that could be looked up when it was made."""
    known = pl.col("ts") - DELAY
    for name, slide in SLIDES.items():
        data = (
            data.with_columns(window_end=known.dt.truncate(slide))
            .join(features[name].drop("window_start"), on=["card", "window_end"], how="left")
            .drop("window_end")
        )
    return data.with_columns(pl.col("^(n|sum)_.*$").fill_null(0)).sort("ts", "arrived")


def sums_from_scratch(data: pl.DataFrame, windows: pl.DataFrame) -> pl.Series:
    """What a batch job with plain floats gives: the payments of each window, one after another."""
    inside = (pl.col("ts") >= pl.col("window_start")) & (pl.col("ts") < pl.col("window_end"))
    added = pl.col("amount").cum_sum().last()
    keys = ["window_end", "card"]
    return (
        windows.join(data, on="card")
        .filter(inside)
        .sort(*keys, "ts")
        .group_by(keys, maintain_order=True)
        .agg(added)["amount"]
    )


def sums_moved_on(data: pl.DataFrame, windows: pl.DataFrame) -> pl.Series:
    """What a stream with plain floats gives: add what comes, subtract what leaves the window."""
    totals = data.select("card", "ts", total=pl.col("amount").cum_sum().over("card"))
    came, left = (
        windows.join_asof(
            totals,
            left_on=bound,
            right_on="ts",
            by="card",
            allow_exact_matches=False,
            check_sortedness=False,
        )["total"].fill_null(0)
        for bound in ("window_end", "window_start")
    )
    return came - left


def show(table: pl.DataFrame) -> None:
    times = pl.selectors.temporal().dt.strftime("%a %H:%M:%S")
    with pl.Config(
        tbl_formatting="ASCII_MARKDOWN",
        tbl_hide_column_data_types=True,
        tbl_hide_dataframe_shape=True,
        tbl_cols=-1,
        tbl_rows=-1,
        tbl_width_chars=120,
        float_precision=2,
    ):
        print(table.with_columns(times), end="\n\n")


if __name__ == "__main__":
    data = payments()
    offline = from_history(data)
    with tempfile.TemporaryDirectory() as folder:
        online = from_stream(data, Path(folder))

    for name, table in offline.items():
        assert_same_rows(online[name].to_arrow(), table.to_arrow())
        print(f"{name}: {table.height:,} rows from history and from the stream, all equal")
    training = training_set(data, offline)
    assert training.equals(training_set(data, online))

    days = offline["last_1d"]
    differing = (sums_from_scratch(data, days) != sums_moved_on(data, days)).sum()
    print(f"with plain floats, {differing:,} of {days.height:,} daily sums would differ\n")

    columns = ["ts", "amount", "n_10m", "sum_10m", "n_1h", "max_1h", "n_1d", "mean_1d", "fraud"]
    theft = training.filter(pl.col("card") == "card 03").select(columns)
    last = theft["fraud"].arg_true().max()
    show(theft.slice(last - 9, 11))
    averages = training.group_by("fraud").agg(pl.len().alias("payments"), pl.mean(columns[1:-1]))
    show(averages.sort("fraud"))
