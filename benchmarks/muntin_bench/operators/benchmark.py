"""Row queries: whole streams beside DuckDB, and Spark streams beside Spark's own operators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import muntin
from muntin.spark import session as started
from muntin.spark import stop
from muntin_bench.measure import Timing, measure
from muntin_bench.operators.streams import FULL, QUICK, stream_sections
from muntin_bench.progress import step
from muntin_bench.report import Report

_ROWS, _FEWER_ROWS = 2_000_000, 200_000
_REPEATS, _FEWER = 5, 3
_SEEDS = (1, 2)


@dataclass(frozen=True)
class Workload:
    """A join of two streams: how many rows a key has on each side, and what a window spans.

    ``share`` is the length of the window as a share of the whole time.
    """

    name: str
    rows_per_key: int
    share: float


WORKLOADS = (
    Workload("two rows per key", 2, 0.5),
    Workload("200 rows per key, a window of a hundredth", 200, 0.01),
)


def streams(rows: int, work: Workload) -> dict[str, pa.Table]:
    """Two streams in order of time, with keys and values at random."""
    found = {}
    for name, seed in zip("ab", _SEEDS, strict=True):
        chance = np.random.default_rng(seed)
        columns = {
            "ts": np.sort(chance.integers(0, 5 * rows, rows)),
            "k": chance.integers(0, rows // work.rows_per_key, rows),
            "v": chance.integers(0, 1000, rows),
        }
        found[name] = pa.table(columns)
    return found


def ours(tables: dict[str, pa.Table], window: int) -> pa.Table:
    """The join by Muntin."""
    sql = (
        "CREATE QUERY q AS SELECT a.ts AS ats, a.k AS ak, a.v AS av, b.ts AS bts, b.v AS bv "
        f"FROM a [RANGE {window}] JOIN b [RANGE {window}] ON a.k = b.k"
    )
    return muntin.aggregate(tables, sql, time="ts")["q"]


def theirs(tables: dict[str, pa.Table], window: int) -> pa.Table:
    """The join by DuckDB: equal keys, and times that are less than a window apart."""
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        return connection.sql(
            f"SELECT greatest(a.ts, b.ts) valid_from, least(a.ts, b.ts) + {window} valid_to, "
            "a.ts ats, a.k ak, a.v av, b.ts bts, b.v bv FROM a JOIN b ON a.k = b.k "
            f"AND a.ts - b.ts < {window} AND b.ts - a.ts < {window}"
        ).to_arrow_table()


def check_same(one: pa.Table, other: pa.Table) -> None:
    """Refuse to time different answers."""
    assert one.num_rows == other.num_rows, (one.num_rows, other.num_rows)
    names = other.column_names
    order = [(name, "ascending") for name in names]
    sides = [table.select(names).sort_by(order).combine_chunks() for table in (one, other)]
    assert sides[0].cast(sides[1].schema).equals(sides[1])


def run(quick: bool = False) -> Report:
    """Compare the answers of both sides, then time them."""
    rows = _FEWER_ROWS if quick else _ROWS
    repeats = _FEWER if quick else _REPEATS
    timings: list[Timing] = []
    for work in WORKLOADS:
        tables = streams(rows, work)
        window = int(5 * rows * work.share)
        step(f"comparing answers, {work.name}")
        check_same(ours(tables, window), theirs(tables, window))
        sides: dict[str, Callable[[], Any]] = {
            f"muntin, {work.name}": partial(ours, tables, window),
            f"duckdb, {work.name}": partial(theirs, tables, window),
        }
        step(f"timing both sides in turn, {repeats} times, {work.name}")
        timings.extend(measure(sides, repeats=repeats).values())
    step("starting Spark")
    session = started("muntin-bench", master="local[2]", config={"spark.driver.memory": "3g"})
    try:
        sections, checks = stream_sections(session, QUICK if quick else FULL)
    finally:
        stop(session)
    data = f"two streams of {rows:,} rows each"
    return Report(
        "operators",
        data,
        tuple(timings),
        tuple(sections),
        tuple(checks),
        seeds=_SEEDS,
        uses=("duckdb", "pyspark"),
    )
