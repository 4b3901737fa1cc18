"""Fraud features per payment card, the same to the last bit in training and in serving.

Run it with `.venv/bin/python examples/card_features.py`, and with `--spark` to compute the
features on Spark as well, which needs Java and `pip install muntin[spark]`. What it shows is told
in docs/examples/card-features.md.
"""

import os
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl

import muntin
from muntin.testing import assert_same_rows

FEATURES = Path(__file__).with_suffix(".sql")
SLIDES = {
    "last_10m": timedelta(minutes=1),
    "last_1h": timedelta(minutes=5),
    "last_1d": timedelta(hours=1),
}
LATENESS = timedelta(minutes=1)  # no payment takes longer to arrive
STEP = timedelta(minutes=4)  # the stream takes in what has arrived, every so often
DELAY = LATENESS + STEP  # how long after its end a window can surely be looked up

MONDAY = datetime(2025, 3, 3, tzinfo=UTC)
DAYS = 2
CARDS = 50
STOLEN = 12
COLUMNS = ["ts", "card", "amount"]


def payments(rows: int = 3_000, seed: int = 7) -> pl.DataFrame:
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
    """Offline: the features of all payments at once."""
    return dict(muntin.aggregate(data, FEATURES, time="ts"))


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


class Server:
    """Online: a stream keeps a store of features up to date, and payments look them up."""

    def __init__(self, columns: pl.DataFrame) -> None:
        self.columns = columns
        self.stream = muntin.stream(FEATURES, columns, time="ts", lateness=LATENESS)
        self.store = {}
        self.answers = {name: [] for name in SLIDES}

    def take_in(self, arrived: pl.DataFrame, now: datetime) -> None:
        self.keep(self.stream.feed(arrived.select(COLUMNS)))
        self.keep(self.stream.advance(now - LATENESS))  # whatever is older has arrived

    def keep(self, results: muntin.Results) -> None:
        for name, table in results.items():
            self.answers[name].append(table)
            for _, end, card, *values in table.iter_rows():
                self.store[name, card, end] = values

    def look_up(self, card: str, now: datetime) -> tuple[float | None, ...]:
        found, known = [], now - DELAY
        for name, slide in SLIDES.items():
            end = known - (known - MONDAY) % slide
            found += self.store.get((name, card, end), [0, 0.0, None, None])
        return tuple(found)

    def restart(self) -> None:
        snapshot = self.stream.snapshot()
        self.stream = muntin.stream(FEATURES, self.columns, time="ts", snapshot=snapshot)


def serve(data: pl.DataFrame) -> tuple[dict[str, pl.DataFrame], list[tuple[float | None, ...]]]:
    """All answers of the stream, and the features that were looked up for each payment."""
    server, served = Server(data.select(COLUMNS).clear()), []
    steps = DAYS * timedelta(days=1) // STEP
    for number in range(steps + 1):
        now = MONDAY + number * STEP
        server.take_in(data.filter(pl.col("arrived").is_between(now - STEP, now, "left")), now)
        made = data.filter(pl.col("ts").is_between(now, now + STEP, "left"))
        served += map(server.look_up, made["card"], made["ts"])
        if number == steps // 2:
            server.restart()
    server.keep(server.stream.close())
    return {name: pl.concat(tables) for name, tables in server.answers.items()}, served


def on_spark(data: pl.DataFrame, folder: Path) -> dict[str, pl.DataFrame]:
    """The features of a stream on Spark, with a restart halfway."""
    incoming = folder / "incoming"
    incoming.mkdir()
    arrivals = data.sort("arrived").select(COLUMNS)
    quarter = -(-arrivals.height // 4)
    for start in (0, 2):
        for number in (start, start + 1):
            path = incoming / f"{number}.parquet"
            arrivals.slice(number * quarter, quarter).write_parquet(path)
            os.utime(path, (number, number))  # Spark takes the oldest file first
        schema = "ts TIMESTAMP, card STRING, amount DOUBLE"
        run = muntin.run(
            muntin.files(incoming, schema=schema, maxFilesPerTrigger=1),
            FEATURES,
            time="ts",
            lateness=LATENESS,
            trigger="available_now",
            sink=muntin.sinks.parquet(folder / "features"),
            checkpoint=folder / "checkpoint",
        )
        run.await_termination()
        run.stop(flush=start == 2)
    results = muntin.read(folder / "features")
    return {name: pl.from_arrow(results[name]) for name in results}


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


def compare(online: dict[str, pl.DataFrame], offline: dict[str, pl.DataFrame], where: str) -> None:
    for name, table in offline.items():
        assert_same_rows(online[name].to_arrow(), table.to_arrow())
        print(f"{name}: {table.height:,} rows from history and {where}, all equal")


if __name__ == "__main__":
    data = payments()
    offline = from_history(data)
    online, served = serve(data)
    compare(online, offline, "from the stream")
    if "--spark" in sys.argv:
        from muntin.spark import session, stop

        spark = session("card features", master="local[2]")
        with tempfile.TemporaryDirectory() as folder:
            compare(on_spark(data, Path(folder)), offline, "from Spark")
        stop(spark)

    training = training_set(data, offline)
    columns = training.columns[len(data.columns) :]
    assert training.select(columns).rows() == served
    print(f"{len(served):,} payments were served the very features they are trained with")

    days = offline["last_1d"]
    differing = (sums_from_scratch(data, days) != sums_moved_on(data, days)).sum()
    print(f"with plain floats, {differing:,} of {days.height:,} daily sums would differ\n")

    columns = ["ts", "amount", "n_10m", "sum_10m", "n_1h", "max_1h", "n_1d", "mean_1d", "fraud"]
    theft = training.filter(pl.col("card") == "card 01").select(columns)
    last = theft["fraud"].arg_true().max()
    show(theft.slice(last - 9, 11))
    averages = training.group_by("fraud").agg(pl.len().alias("payments"), pl.mean(columns[1:-1]))
    show(averages.sort("fraud"))
