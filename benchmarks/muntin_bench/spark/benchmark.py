"""Hundreds of queries on Spark: one shared job against one ``window()`` query after another."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from muntin.spark import session, stop
from muntin_bench.conditions import JAVA
from muntin_bench.progress import step
from muntin_bench.report import Report
from muntin_bench.sharing.data import SYMBOLS, hour
from muntin_bench.sharing.workloads import NAMES
from muntin_bench.spark.bounded import Input, measure_workload, promises, steps, table
from muntin_bench.spark.streaming import (
    STREAM_FULL,
    STREAM_QUICK,
    StreamScale,
    streaming_sections,
)


@dataclass(frozen=True)
class Scale:
    """How much to measure: rows, numbers of queries, and of Spark's own queries."""

    rows: int = 5_000_000
    symbols: int = SYMBOLS
    sizes: tuple[int, ...] = (1, 16, 64, 256)
    workloads: tuple[str, ...] = NAMES
    separately: int = 16
    repeats: int = 5
    row_group: int = 250_000
    stream: StreamScale = STREAM_FULL


FULL = Scale()
QUICK = Scale(
    rows=1_000_000,
    sizes=(1, 256),
    workloads=("C regular", "C low sharing"),
    separately=4,
    row_group=100_000,
    stream=STREAM_QUICK,
)


def run(quick: bool = False) -> Report:
    """Compare all answers, then time both ways, Spark's own queries, a plain scan, and streams."""
    return run_at(QUICK if quick else FULL)


def run_at(scale: Scale) -> Report:
    """Measure as much as the scale says."""
    step("starting Spark")
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
        seeds=(0,),
        uses=("pyspark", JAVA),
    )
