"""Aggregates over all values on Spark: a run into every sink, and bounded frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
