"""Counts and sums over a join of two streams, at window ends: no pairs, against engines with them.

Other engines are given the join as their users write it, one statement for each window end and
query; beside them stands what an expert writes by hand for DuckDB: each side grouped by the key
first. They answer some of the window ends and queries, full windows all of them, and are told per
window end and query. Muntin answers all, and its time is divided alike, with reading and planning
in it. Seconds are those of the clock: Spark's processor is another process's.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa

import muntin
from muntin_bench.joins.added import added
from muntin_bench.progress import step
from muntin_bench.report import Check, Report, Section

SEEDS = (1, 2)
_SPAN = 1_000_000
_SHARE = 4  # windows hold a quarter of the rows
_ENDS = 24

Answer = tuple[int, int, float]
Side = Callable[[int, int], Answer]


@dataclass(frozen=True)
class Scale:
    """How much to measure.

    Attributes:
        rows: Rows of each stream.
        per_key: How many rows a key has in a window, on each side.
        queries: How many queries run together, beside one.
        asked: How many window ends the others answer, and of how many queries.
        repeats: How often Muntin's one query is timed.
        spark: Whether Spark is among the others.
        batch: Rows per stream and batch where one more join is added to many.
    """

    rows: int
    per_key: tuple[int, ...]
    queries: int
    asked: int
    repeats: int
    spark: bool
    batch: int = 5_000


FULL = Scale(200_000, (10, 100, 1000), 256, 2, 5, spark=True)
QUICK = Scale(20_000, (10, 100), 16, 2, 1, spark=False, batch=2_000)


def streams(rows: int, per_key: int) -> dict[str, pa.Table]:
    """Two streams in order of time, with so many rows per key in a window."""
    found = {}
    for name, seed in zip("ab", SEEDS, strict=True):
        chance = np.random.default_rng(seed)
        found[name] = pa.table(
            {
                "ts": np.sort(chance.integers(0, _SPAN, rows)),
                "k": chance.integers(0, max(rows // _SHARE // per_key, 1), rows),
                "v": chance.integers(0, 1000, rows),
                "x": np.round(chance.normal(100, 20, rows), 2),
            }
        )
    return found


def least(query: int) -> int:
    """The condition of one query: rows of either side with at least such a value."""
    return query % 500


def ours(tables: dict[str, pa.Table], queries: int) -> Any:
    """All queries at all window ends."""
    window = f"[RANGE {_SPAN // _SHARE} SLIDE {_SPAN // _ENDS}]"
    texts = [
        f"CREATE QUERY q{number} AS SELECT count(*) AS n, sum(a.v) AS s, sum(b.x) AS t "
        f"FROM a {window} JOIN b {window} ON a.k = b.k "
        f"WHERE a.v >= {least(number)} AND b.v >= {least(number)}"
        for number in range(queries)
    ]
    return muntin.aggregate(tables, texts, time="ts")


def _rows_of(name: str, end: int, query: int) -> str:
    start = end - _SPAN // _SHARE
    return f"(SELECT * FROM {name} WHERE ts >= {start} AND ts < {end} AND v >= {least(query)})"


def join_sql(end: int, query: int) -> str:
    """The join at one window end, as a user writes it."""
    first, second = _rows_of("a", end, query), _rows_of("b", end, query)
    return (
        f"SELECT count(*) AS n, sum(a.v) AS s, sum(b.x) AS t FROM {first} a "
        f"JOIN {second} b ON a.k = b.k"
    )


def grouped_sql(end: int, query: int) -> str:
    """The same with each side grouped first, as an expert writes it."""
    first, second = _rows_of("a", end, query), _rows_of("b", end, query)
    return (
        "SELECT sum(a.n * b.n)::BIGINT, sum(a.s * b.n)::BIGINT, sum(b.t * a.n) FROM "
        f"(SELECT k, count(*) AS n, sum(v) AS s FROM {first} GROUP BY k) a JOIN "
        f"(SELECT k, count(*) AS n, sum(x) AS t FROM {second} GROUP BY k) b ON a.k = b.k"
    )


@contextmanager
def peers(tables: dict[str, pa.Table], spark: bool) -> Iterator[dict[str, Side]]:
    """What answers one query at one window end, by name."""
    with ExitStack() as stack:
        connection = stack.enter_context(duckdb.connect())
        for name, table in tables.items():
            connection.register(f"{name}_given", table)
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_given")
        frames = {name: pl.DataFrame(pl.from_arrow(table)) for name, table in tables.items()}

        def by(sql: Callable[[int, int], str]) -> Side:
            return lambda end, query: connection.sql(sql(end, query)).fetchall()[0]

        sides = {
            "DuckDB": by(join_sql),
            "polars": lambda end, query: _polars(frames, end, query),
            "DuckDB, grouped by hand": by(grouped_sql),
        }
        if spark:
            sides["Spark"] = stack.enter_context(_spark(tables))
        yield sides


def _polars(frames: dict[str, pl.DataFrame], end: int, query: int) -> Answer:
    start = end - _SPAN // _SHARE
    held = [
        frame.lazy().filter(
            (pl.col("ts") >= start) & (pl.col("ts") < end) & (pl.col("v") >= least(query))
        )
        for frame in frames.values()
    ]
    sums = pl.len(), pl.col("v").sum(), pl.col("x_right").sum()
    return held[0].join(held[1], on="k").select(sums).collect().row(0)


@contextmanager
def _spark(tables: dict[str, pa.Table]) -> Iterator[Side]:
    from muntin.spark.session import session  # noqa: PLC0415 - it starts Java

    with session() as spark:
        for name, table in tables.items():
            frame = spark.createDataFrame(table.to_pandas())
            frame.cache().count()
            frame.createOrReplaceTempView(name)
        yield lambda end, query: tuple(spark.sql(join_sql(end, query)).collect()[0])


def run(quick: bool = False) -> Report:
    """All parts."""
    return run_at(QUICK if quick else FULL)


def run_at(scale: Scale) -> Report:
    """Measure as much as the scale says."""
    rows: list[tuple[str, ...]] = []
    mine: dict[tuple[int, int], float] = {}
    theirs: dict[tuple[int, str], float] = {}
    for per_key in scale.per_key:
        tables = streams(scale.rows, per_key)
        step(f"Muntin, {per_key} rows per key")
        ends = ours(tables, 1).table("q0").num_rows
        taken = [_timed(tables, 1)[0] for _ in range(scale.repeats)]
        mine[per_key, 1] = sorted(taken)[len(taken) // 2] / ends
        seconds, results = _timed(tables, scale.queries)
        mine[per_key, scale.queries] = seconds / ends / scale.queries
        with peers(tables, scale.spark) as sides:
            for name, side in sides.items():
                step(f"{name}, {per_key} rows per key")
                theirs[per_key, name] = _compared(results, side, scale.asked)
        rows += _rows(per_key, scale.queries, mine, theirs)
    columns = ("rows per key, engine", "ms per window end and query", "times Muntin's one query")
    data = (
        f"two streams of {scale.rows:,} rows, windows of a quarter of them, {_ENDS} window ends in "
        f"that time; the others answer {scale.asked} of them for {scale.asked} queries"
    )
    title = "count and two sums over a join, with a condition per side"
    section = Section(title, columns, tuple(rows))
    one_more, more = added(scale.batch, scale.repeats)
    checks = (*_checks(scale, mine, theirs), *more)
    shown = (section, one_more)
    return Report("joins", data, sections=shown, checks=checks, seeds=SEEDS, uses=("duckdb",))


def _timed(tables: dict[str, pa.Table], queries: int) -> tuple[float, Any]:
    begin = time.perf_counter()
    results = ours(tables, queries)
    return time.perf_counter() - begin, results


def _compared(results: Any, side: Side, asked: int) -> float:
    """Seconds of another engine per window end and query, whose answers are the same."""
    slide = _SPAN // _ENDS
    ends = [slide * (_ENDS // 2 + number) for number in range(asked)]
    queries = [number * (len(results) - 1) // max(asked - 1, 1) for number in range(asked)]
    side(ends[0], queries[0])
    taken = []
    for query in queries:
        table = results.table(f"q{query}")
        held = {row["window_end"]: row for row in table.to_pylist()}
        for end in ends:
            begin = time.perf_counter()
            found = side(end, query)
            taken.append(time.perf_counter() - begin)
            row = held[end]
            assert (row["n"], row["s"]) == tuple(found[:2]), (row, found)
            assert math.isclose(row["t"], found[2], rel_tol=1e-9), (row, found)
    return sum(taken) / len(taken)


def _rows(
    per_key: int,
    queries: int,
    mine: dict[tuple[int, int], float],
    theirs: dict[tuple[int, str], float],
) -> Iterator[tuple[str, ...]]:
    base = mine[per_key, 1]
    listed = {"Muntin, one query": base, f"Muntin, {queries} queries": mine[per_key, queries]}
    listed |= {name: taken for (own, name), taken in theirs.items() if own == per_key}
    for name, taken in listed.items():
        yield f"{per_key:,}, {name}", f"{taken * 1e3:,.3f}", f"{taken / base:,.2f}×"


def _checks(
    scale: Scale, mine: dict[tuple[int, int], float], theirs: dict[tuple[int, str], float]
) -> Iterator[Check]:
    few, most = scale.per_key[0], scale.per_key[-1]
    hand = "DuckDB, grouped by hand"
    best = min(taken for (own, name), taken in theirs.items() if own == most and name != hand)
    if most >= 1000:
        promise = f"the best of those that make pairs, {most:,} rows per key"
        yield Check(promise, 100, best / mine[most, 1], least=True)
    for queries in (1, scale.queries):
        promise = f"{most:,} rows per key against {few}, {queries} queries"
        yield Check(promise, 1.2, mine[most, queries] / mine[few, queries])
    for per_key in scale.per_key:
        grouped = theirs[per_key, hand]
        one, many = mine[per_key, 1] / grouped, grouped / mine[per_key, scale.queries]
        yield Check(f"one query against DuckDB grouped by hand, {per_key:,} rows per key", 3, one)
        promise = f"DuckDB grouped by hand against {scale.queries} queries"
        yield Check(f"{promise}, {per_key:,} rows per key", 1, many, least=True)
