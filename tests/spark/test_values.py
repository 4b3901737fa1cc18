"""Aggregates over all values on Spark: a run into every sink, and bounded frames."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import muntin
from muntin import sinks
from muntin.api import run
from muntin.testing import assert_same_rows, trades
from spark.folder_stream import FolderStream, expected, parts

CALLS = """count(DISTINCT symbol) AS kinds, sum(DISTINCT vol) AS once, median(price) AS mid,
  percentile(price, array(0.1, 0.9)) AS ends, mode(symbol) AS common, top_k(symbol, 2) AS top,
  frequent(exchange, 0.2) AS often, collect_set(exchange) AS places, max(price, 2) AS best,
  max_by(symbol, price, 2) AS who, approx_percentile(price, 0.9) AS high,
  approx_count_distinct(vol) AS about, approx_top_k(symbol, 2, 3) AS likely"""
QUERIES = f"""CREATE QUERY everything WITH (bounds = true) AS SELECT {CALLS}
  FROM trades [RANGE '15 minutes' SLIDE '5 minutes'] WHERE vol > 500;
CREATE QUERY groups WITH (cap_values = 40, on_cap = 'approximate') AS
  SELECT exchange, count(DISTINCT vol) AS n, median(price) AS mid
  FROM trades [RANGE '10 minutes' SLIDE '5 minutes'] GROUP BY exchange;"""


def test_a_run_answers_what_the_local_engine_does(spark: Any, tmp_path: Path) -> None:
    stream = FolderStream(tmp_path / "in")
    batches = parts(trades(1500, seed=20, seconds=3000), 3)
    for batch in batches:
        stream.put(batch)
    path = str(tmp_path / "results.duckdb")
    started = run(
        stream.frame(spark),
        QUERIES,
        lateness="1 minute",
        trigger="available_now",
        checkpoint=tmp_path / "ck",
        sink=sinks.duckdb(path),
        partitions=2,
        buckets=4,
    )
    assert started.await_termination(120)
    answers = expected(batches, [QUERIES] * 3, lateness=60_000_000)
    import duckdb

    with duckdb.connect(path) as connection:
        for name in ("everything", "groups"):
            found = connection.sql(f"SELECT * FROM {name}").arrow()
            table = found if isinstance(found, pa.Table) else found.read_all()
            wanted = answers[name]
            assert wanted.num_rows
            own = table.select(wanted.column_names).cast(wanted.schema)
            assert_same_rows(own, wanted)


def test_bounded_frames_and_files_of_results(spark: Any, tmp_path: Path) -> None:
    table = trades(1200, seed=21, seconds=3000)
    wanted = muntin.aggregate(table, QUERIES, time="ts")
    path = str(tmp_path / "rows.parquet")
    import pyarrow.parquet as pq

    pq.write_table(table, path)
    found = muntin.aggregate(spark.read.parquet(path), QUERIES, time="ts")
    for name in ("everything", "groups"):
        own = found[name].toArrow()
        assert_same_rows(own.cast(wanted.table(name).schema), wanted.table(name))
    (row,) = found["everything"].limit(1).collect()
    assert set(row["likely"][0].asDict()) == {"value", "low", "high", "certain"}


def drawn(seed: int, rows: int = 900) -> pa.Table:
    """Values of many types, skewed, with ties, NULL, NaN and zeros of both signs."""
    rng = np.random.default_rng(seed)
    missing = rng.random((8, rows)) < 0.1
    numbers = rng.zipf(1.4, rows) % 60 - 20
    doubles = rng.normal(0, 4, rows).round(1)
    doubles[rng.random(rows) < 0.05] = np.nan
    doubles[rng.random(rows) < 0.1] = -0.0
    days = rng.integers(0, 9, rows).astype("datetime64[D]")
    columns = {
        "n": pa.array(numbers, pa.int64(), mask=missing[0]),
        "m": pa.array(numbers * 3 + rng.integers(0, 40, rows), pa.int32(), mask=missing[1]),
        "x": pa.array(doubles, mask=missing[2]),
        "s": pa.array([f"k{n % 17}" for n in numbers.tolist()], mask=missing[3]),
        "b": pa.array(rng.random(rows) < 0.9, mask=missing[4]),
        "d": pa.array(days, pa.date32(), mask=missing[5]),
        "w": pa.array(days.astype("datetime64[us]"), pa.timestamp("us", "UTC"), mask=missing[6]),
        "c": pa.array([Decimal(int(n)) / 8 for n in numbers], pa.decimal128(9, 3), mask=missing[7]),
    }
    ticks = np.sort(rng.integers(0, 3_600_000_000, rows))
    return pa.table({"ts": pa.array(ticks, pa.timestamp("us", "UTC")), **columns})


# What Spark writes otherwise stands behind; sums of doubles it rounds as they come.
EXACT = (
    *((f"count(DISTINCT {name})", None) for name in "nmxsbdwc"),
    *((f"{call}(DISTINCT {name})", None) for call in ("sum", "avg") for name in "nmc"),
    ("count(DISTINCT n) FILTER (WHERE b)", None),
    *((f"median({name})", None) for name in "nmx"),
    ("percentile(n, array(0.0, 0.1, 0.77, 1.0))", None),
    ("percentile(x, 0.3)", None),
    *(
        (f"percentile_{kind}(0.35) WITHIN GROUP (ORDER BY {name}{way})", None)
        for kind in ("cont", "disc")
        for name in "nx"
        for way in ("", " DESC")
    ),
    *((f"mode({name})", f"mode({name}, true)") for name in "nsdw"),
    *((f"collect_set({name})", f"sort_array(collect_set({name}))") for name in "nsdw"),
    *((f"bit_{call}(n)", None) for call in ("and", "or", "xor")),
    ("every(b)", None),
    ("some(b)", None),
)
MOMENTS = (
    *(f"{call}(n, m)" for call in ("corr", "covar_pop", "covar_samp")),
    *(f"regr_{call}(n, m)" for call in ("slope", "intercept", "r2")),
    "skewness(m)",
    "kurtosis(m)",
)


def test_exact_forms_equal_those_of_spark(spark: Any) -> None:
    table = drawn(20)
    calls = [*EXACT, *((call, None) for call in MOMENTS)]
    ours = ", ".join(f"{call} AS a{number}" for number, (call, _) in enumerate(calls))
    theirs = ", ".join(
        f"{other or call} AS a{number}" for number, (call, other) in enumerate(calls)
    )
    by = "FROM t GROUP BY window(ts, '12 minutes', '5 minutes')"
    found = muntin.aggregate(table, f"SELECT {ours} {by}", time="ts").table("q1")
    spark.createDataFrame(table).createOrReplaceTempView("t")
    frame = spark.sql(f"SELECT window.start, {theirs} {by} ORDER BY start")
    wanted = frame.toArrow().to_pylist()
    rows = found.to_pylist()
    assert len(rows) == len(wanted) > 10
    for own, other in zip(rows, wanted, strict=True):
        assert own["window_start"] == other["start"]
        for number, (call, _) in enumerate(calls):
            pair = own[f"a{number}"], other[f"a{number}"]
            near = 1e-9 if call in MOMENTS else 1e-15
            assert is_same(*pair, near), (call, *pair)


def is_same(own: Any, other: Any, near: float) -> bool:
    """Whether two values are equal, NaN to itself; doubles but for their last bit."""
    if isinstance(own, list):
        return len(own) == len(other) and all(map(is_same, own, other, [near] * len(own)))
    if isinstance(own, float) and isinstance(other, float):
        return own == other or repr(own) == repr(other) or math.isclose(own, other, rel_tol=near)
    return bool(own == other)


def test_partitions_leave_no_trace(spark: Any) -> None:
    """Rows in few partitions and in many, and in any order: the same bits."""
    table = trades(2400, seed=22, seconds=3000)
    wanted = muntin.aggregate(table, QUERIES, time="ts")
    frame = spark.createDataFrame(table)
    for given in (frame.coalesce(1), frame.repartition(5), frame.orderBy("symbol", "price")):
        found = muntin.aggregate(given, QUERIES, time="ts")
        for name in ("everything", "groups"):
            own = found[name].toArrow().cast(wanted.table(name).schema)
            assert_same_rows(own, wanted.table(name))
