"""Hundreds of queries on Spark: one shared job against one ``window()`` query after another."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from muntin.bench.report import Report
from muntin.bench.sharing import QUICK_VARIABLE
from muntin.bench.sharing_data import SYMBOLS, hour
from muntin.bench.sharing_workloads import NAMES
from muntin.bench.spark_bounded import Input, measure_workload, promises, steps, table
from muntin.bench.spark_streaming import (
    STREAM_FULL,
    STREAM_SMALL,
    StreamScale,
    streaming_sections,
)
from muntin.spark import session, stop


@dataclass(frozen=True)
class Scale:
    """How much to measure: rows, numbers of queries, and of Spark's own queries."""

    rows: int = 5_000_000
    symbols: int = SYMBOLS
    sizes: tuple[int, ...] = (1, 16, 64, 256)
    workloads: tuple[str, ...] = NAMES
    separately: int = 16
    repeats: int = 3
    row_group: int = 250_000
    stream: StreamScale = STREAM_FULL


FULL = Scale()
SMALL = Scale(20_000, 50, (1, 4), ("C low sharing",), 2, 1, 4_000, STREAM_SMALL)


def run(scale: Scale | None = None) -> Report:
    """Compare all answers, then time both ways, Spark's own queries, a plain scan, and streams."""
    if scale is None:
        scale = SMALL if os.environ.get(QUICK_VARIABLE) else FULL
    market = hour(scale.rows, scale.symbols)
    running = session("muntin-bench", master="local[2]", config={"spark.driver.memory": "3g"})
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "trades.parquet")
            pq.write_table(market.trades, path, row_group_size=scale.row_group)
            given = Input(running, path, market)
            found = [
                measure_workload(given, name, scale.sizes, scale.separately, scale.repeats)
                for name in scale.workloads
            ]
        streaming, kept = streaming_sections(running, scale.stream)
    finally:
        stop(running)
    return Report(
        "spark",
        f"{market.about}, Parquet, on local[2]; warm, plans made before",
        sections=(
            *(table(each, scale.sizes) for each in found),
            steps(found[-1], max(scale.sizes)),
            *streaming,
        ),
        checks=(*promises(found, scale.sizes), *kept),
    )
