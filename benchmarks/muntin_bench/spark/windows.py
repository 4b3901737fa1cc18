"""The queries of a workload as Spark's own ``window()`` queries, one after another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from muntin_bench.sharing.data import Market
from muntin_bench.sharing.workloads import SharedQuery

SCAN = (
    "SELECT sum(unix_seconds(ts)) AS ts, sum(length(symbol)) AS symbol, sum(price) AS price, "
    "sum(vol) AS vol FROM {trades}"
)


def register(session: Any, market: Market) -> None:
    """Make the static tables known to Spark's SQL."""
    for name, table in market.tables.items():
        session.createDataFrame(table).createOrReplaceTempView(f"bench_{name}")


def scan_and_sum(session: Any, path: str) -> dict[str, Any]:
    """Read all columns and sum each up."""
    found: dict[str, Any] = session.sql(SCAN, trades=session.read.parquet(path)).first().asDict()
    return found


def bare_trip(session: Any, path: str) -> int:
    """Send all rows to Python workers, which count them and do nothing else."""
    sent = session.read.parquet(path).mapInArrow(_count, "n bigint").collect()
    return sum(row.n for row in sent)


def _count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"n": [sum(batch.num_rows for batch in batches)]})


def answer(session: Any, path: str, query: SharedQuery) -> pa.Table:
    """The windows of one query and their sums."""
    # Ranges and slides are those of windows that end on the slide; Spark's start on it.
    offset = -query.range % query.slide
    window = f"window(ts, '{query.range} seconds', '{query.slide} seconds', '{offset} seconds')"
    where = f"WHERE {query.predicate.sql}" if query.predicate else ""
    return session.sql(
        f"""
        SELECT window.start AS window_start, sum(price * vol) AS value
        FROM {{trades}} AS trades
        JOIN bench_close AS close ON trades.symbol = close.symbol
        JOIN bench_index AS index ON trades.symbol = index.symbol
        {where} GROUP BY {window}""",
        trades=session.read.parquet(path),
    ).toArrow()


def check_same(ours: pa.Table, theirs: pa.Table, name: str) -> None:
    """The same windows, and sums as near as Spark's rounding allows."""
    ours, theirs = (table.sort_by("window_start") for table in (ours, theirs))
    starts = [table.column("window_start").cast(pa.int64()).to_numpy() for table in (ours, theirs)]
    assert np.array_equal(*starts), f"{name}: windows differ"
    mine, other = (table.column("value").to_numpy() for table in (ours, theirs))
    assert np.allclose(mine, other, rtol=1e-9, atol=0), f"{name}: sums differ"
