"""Burn rates of four services over six windows, and the alerts that follow from them.

Run it with `.venv/bin/python examples/slo_burn_rates.py`. What it shows is told in
docs/examples/slo-burn-rates.md.
"""

from datetime import UTC, datetime, timedelta
from functools import reduce

import numpy as np
import polars as pl

import muntin

BUDGET = 0.001  # the share of requests that may fail: the objective is 99.9%
WINDOWS = ("5m", "30m", "1h", "6h", "1d", "3d")
# An alert fires while the burn rates of both its windows exceed the threshold.
ALERTS = (
    ("page, fast burn", "1h", "5m", 14.4),
    ("page, slow burn", "6h", "30m", 6.0),
    ("ticket", "3d", "6h", 1.0),
)

MONDAY = datetime(2025, 3, 3, tzinfo=UTC)
DAYS = 7
TRAFFIC = {"search": 0.5, "catalog": 0.3, "checkout": 0.12, "login": 0.08}
HEALTHY = 0.0002
# The service, when it starts, how long it lasts, and the share of requests that fail.
INCIDENTS = (
    ("checkout", timedelta(days=3, hours=10), timedelta(minutes=25), 0.3),
    ("login", timedelta(days=3, hours=13), timedelta(minutes=2), 0.15),
    ("search", timedelta(days=4, hours=9), timedelta(hours=7), 0.01),
    ("catalog", timedelta(days=5, hours=6), timedelta(days=2), 0.0025),
)


def requests(rows: int = 2_000_000, seed: int = 7) -> pl.DataFrame:
    """A week of requests and their status codes, in time order; fewer at night."""
    random = np.random.default_rng(seed)
    second = np.arange(DAYS * 86_400)
    density = 1 - 0.6 * np.cos(2 * np.pi * second / 86_400)
    seconds = np.repeat(second, random.multinomial(rows, density / density.sum()))
    service = random.choice(len(TRAFFIC), rows, p=list(TRAFFIC.values()))
    failing = np.full(rows, HEALTHY)
    for name, starts, lasts, share in INCIDENTS:
        since = seconds - starts.total_seconds()
        affected = (since >= 0) & (since < lasts.total_seconds())
        failing[affected & (service == list(TRAFFIC).index(name))] = share
    return pl.DataFrame(
        {
            "ts": MONDAY + pl.Series(seconds * 1_000_000).cast(pl.Duration("us")),
            "service": pl.Series(service).replace_strict(dict(enumerate(TRAFFIC))),
            "status": np.where(random.random(rows) < failing, 503, 200),
        }
    )


def queries() -> list[muntin.Query]:
    return [
        muntin.query(f"burn_{window}")
        .window(window, "1 minute")
        .group_by("service")
        .agg(rate=f"count_if(status >= 500) / count(*) / {BUDGET}")
        for window in WINDOWS
    ]


def side_by_side(results: muntin.Results) -> pl.DataFrame:
    """One row per service and minute, one column per window."""
    columns = [
        results[f"burn_{window}"].select("service", "window_end", pl.col("rate").alias(window))
        for window in reversed(WINDOWS)
    ]
    # The longest window leads. A shorter one that saw no request has no row, and burned nothing.
    keys = ["service", "window_end"]
    joined = reduce(lambda wide, column: wide.join(column, on=keys, how="left"), columns)
    return joined.fill_null(0.0).sort(keys)


def alerts(rates: pl.DataFrame) -> pl.DataFrame:
    """When each alert fires and when it clears, with the burn rates at the minute it fires."""
    found = []
    for name, long, short, threshold in ALERTS:
        firing = (pl.col(long) > threshold) & (pl.col(short) > threshold)
        before = pl.col("firing").shift(fill_value=False).over("service")
        changes = rates.with_columns(firing=firing).filter(pl.col("firing") != before)
        next_change = pl.col("window_end").shift(-1).over("service")
        fired = changes.with_columns(alert=pl.lit(name), clears=next_change).filter("firing")
        found.append(fired.rename({"window_end": "fires"}))
    return pl.concat(found).select("alert", "service", "fires", "clears", *WINDOWS).sort("fires")


def check(data: pl.DataFrame, rates: pl.DataFrame) -> None:
    """Count every window of these rates again, from the requests themselves."""
    services = data.partition_by("service", as_dict=True)
    for row in rates.iter_rows(named=True):
        mine, end = services[row["service"],], pl.lit(row["window_end"])
        for window in WINDOWS:
            inside = (pl.col("ts") >= end.dt.offset_by(f"-{window}")) & (pl.col("ts") < end)
            status = mine.filter(inside)["status"]
            expected = (status >= 500).sum() / len(status) / BUDGET if len(status) else 0.0
            assert row[window] == expected, (row, window, expected)


def show(table: pl.DataFrame) -> None:
    times = pl.selectors.temporal().dt.strftime("%a %H:%M")
    with pl.Config(
        tbl_formatting="ASCII_MARKDOWN",
        tbl_hide_column_data_types=True,
        tbl_hide_dataframe_shape=True,
        tbl_cols=-1,
        tbl_width_chars=120,
        float_precision=1,
    ):
        print(table.with_columns(times).fill_null("still firing"), end="\n\n")


if __name__ == "__main__":
    data = requests()
    results = muntin.aggregate(data, queries(), time="ts")
    print(results.plan, end="\n\n")
    rates = side_by_side(results)
    # The longest window is full on Thursday, and the requests end with Sunday.
    judged = rates.filter(
        pl.col("window_end").is_between(MONDAY + timedelta(days=3), MONDAY + timedelta(days=DAYS))
    )
    fired = alerts(judged)
    show(fired)
    show(judged.group_by("service").agg(pl.max(*WINDOWS)).sort("service"))
    crucial = judged.join(
        fired, left_on=["service", "window_end"], right_on=["service", "fires"], how="semi"
    )
    checked = pl.concat([crucial, judged.sample(50, seed=7)])
    check(data, checked)
    print(f"{checked.height * len(WINDOWS)} burn rates counted again from the requests: all equal")
