"""Exact aggregates over all values of windows: many queries in one pass, against DuckDB's.

DuckDB copies a row for every window that holds it, which is what its users do, and groups. Where
there are many queries it answers some of them, and its time is scaled up to all: the report says
how many. Seconds are of processor time, on both sides of all threads.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import muntin
from muntin.errors import MuntinError
from muntin_bench.progress import step
from muntin_bench.report import Check, Report, Section

SEED = 20
# Milliseconds of a trading day.
DAY = int(6.5 * 3_600_000)
MINUTE = 60_000


@dataclass(frozen=True)
class Scale:
    """How much to measure: rows, queries, and how many of these DuckDB answers."""

    rows: int
    queries: int
    asked: int
    repeats: int


FULL = Scale(rows=2_000_000, queries=256, asked=8, repeats=3)
QUICK = Scale(rows=100_000, queries=32, asked=4, repeats=1)


@dataclass(frozen=True)
class Question:
    """An aggregate in both languages; DuckDB's `source` is grouped by window and value, or not."""

    name: str
    ours: str
    theirs: str
    windows: float
    predicates: float
    top: bool = False


QUESTIONS = (
    Question("count(DISTINCT)", "count(DISTINCT v)", "count(DISTINCT v)", 20, 10),
    Question(
        "exact p50, p95, p99",
        "percentile(p, array(0.5, 0.95, 0.99))",
        "quantile_cont(p, [0.5, 0.95, 0.99])",
        10,
        3,
    ),
    Question("top_k(10)", "top_k(v, 10)", "", 10, 3, top=True),
)


@dataclass(frozen=True)
class Window:
    """One query's window and the least volume it takes."""

    range: int
    slide: int
    least: int


def windows(count: int, *, predicates: bool) -> list[Window]:
    """Different windows of 5 minutes to an hour, each some ten times as long as its slide."""
    rng = np.random.default_rng(SEED)
    sizes = 5 + np.arange(count) * 55 // count
    extra = rng.permutation(count) % 7
    least = rng.permutation(count) * 1000 // count if predicates else np.zeros(count, np.int64)
    return [
        Window(int(size) * MINUTE, max(int(size) // 10, 1) * MINUTE + int(add) * 10_000, int(floor))
        for size, add, floor in zip(sizes, extra, least, strict=True)
    ]


def rows(count: int) -> pa.Table:
    """Trades of a day: 100,000 values by Zipf's law, prices with some 33,000 different ones."""
    rng = np.random.default_rng(SEED)
    return pa.table(
        {
            "ts": np.sort(rng.integers(0, DAY, count)),
            "v": rng.zipf(1.1, count) % 100_000,
            "p": rng.normal(100, 5, count).round(3),
            "vol": rng.integers(0, 1000, count),
        }
    )


def run(quick: bool = False) -> Report:
    """All parts."""
    return run_at(QUICK if quick else FULL)


def run_at(scale: Scale) -> Report:
    """Measure as much as the scale says."""
    table = rows(scale.rows)
    found: list[tuple[str, ...]] = []
    checks: list[Check] = []
    for predicates in (False, True):
        listed = windows(scale.queries, predicates=predicates)
        what = f"{scale.queries} windows{' and predicates' if predicates else ''}"
        for question in QUESTIONS:
            step(f"{question.name}, {what}")
            ours, theirs = compared(table, question, listed, scale)
            found.append(_row(f"{question.name}, {what}", ours, theirs))
            limit = question.predicates if predicates else question.windows
            promise = f"{question.name} over {what}, against DuckDB"
            checks.append(Check(promise, limit, theirs / ours, least=True))
    for question in QUESTIONS:
        step(f"{question.name}, one query")
        one = Scale(scale.rows, 1, 1, scale.repeats)
        ours, theirs = compared(table, question, [Window(10 * MINUTE, MINUTE, 0)], one)
        found.append(_row(f"{question.name}, one query", ours, theirs))
        checks.append(Check(f"{question.name}, one query, against DuckDB", 3, ours / theirs))
    columns = ("aggregate", "Muntin, s", "DuckDB, s", "DuckDB / Muntin")
    data = (
        f"{scale.rows:,} seeded rows over 6.5 hours; DuckDB answers {scale.asked} of the queries, "
        "scaled up to all; seconds of processor time"
    )
    section = Section("exact aggregates over all values of windows", columns, tuple(found))
    return Report("holistic", data, sections=(section,), checks=tuple(checks), uses=("duckdb",))


def _row(name: str, ours: float, theirs: float) -> tuple[str, ...]:
    return name, f"{ours:.2f}", f"{theirs:.2f}", f"{theirs / ours:.1f}×"


def compared(
    table: pa.Table, question: Question, listed: Sequence[Window], scale: Scale
) -> tuple[float, float]:
    """Processor seconds of both sides for all queries, whose answers are the same."""
    connection = _connect(table)
    text = ";\n".join(_ours(question, number, each) for number, each in enumerate(listed))
    places = range(0, len(listed), max(len(listed) // scale.asked, 1))
    asked = {place: _theirs(question, listed[place]) for place in places}
    answers = muntin.aggregate(table, text, time="ts")
    for place, sql in asked.items():
        mine = answers.table(f"q{place}").select(["window_end", "a"]).to_pylist()
        check(question, mine, connection.sql(sql).fetchall())
    ours = _seconds(lambda: muntin.aggregate(table, text, time="ts"), scale.repeats)
    theirs = _seconds(
        lambda: [connection.sql(sql).fetchall() for sql in asked.values()], scale.repeats
    )
    return ours, theirs * len(listed) / len(asked)


def _seconds(work: Callable[[], Any], repeats: int) -> float:
    taken = []
    for _ in range(repeats):
        begin = time.process_time()
        work()
        taken.append(time.process_time() - begin)
    return sorted(taken)[len(taken) // 2]


def _connect(table: pa.Table) -> Any:
    try:
        import duckdb  # noqa: PLC0415
    except ImportError:
        raise MuntinError(
            "the holistic benchmark needs DuckDB", hint="pip install duckdb, or make setup"
        ) from None
    connection = duckdb.connect()
    connection.register("arrow", table)
    connection.execute("CREATE TABLE t AS SELECT * FROM arrow")
    return connection


def _ours(question: Question, number: int, window: Window) -> str:
    return (
        f"CREATE QUERY q{number} AS SELECT {question.ours} AS a "
        f"FROM t [RANGE {window.range} SLIDE {window.slide}] WHERE vol >= {window.least}"
    )


def _theirs(question: Question, window: Window) -> str:
    slide = window.slide
    ends = f"generate_series((ts // {slide} + 1) * {slide}, ts + {window.range}, {slide})"
    copies = f"SELECT unnest({ends}) AS w, v, p FROM t WHERE vol >= {window.least}"
    if not question.top:
        return f"SELECT w, {question.theirs} FROM ({copies}) GROUP BY w ORDER BY w"
    counts = f"SELECT w, v, count(*) AS n FROM ({copies}) GROUP BY w, v"
    ranks = "row_number() OVER (PARTITION BY w ORDER BY n DESC, v)"
    best = f"SELECT * FROM ({counts}) QUALIFY {ranks} <= 10"
    return f"SELECT w, list((v, n) ORDER BY n DESC, v) FROM ({best}) GROUP BY w ORDER BY w"


def check(
    question: Question, mine: Sequence[dict[str, Any]], theirs: Sequence[tuple[Any, ...]]
) -> None:
    """Refuse to measure sides whose answers differ; DuckDB rounds percentiles otherwise."""
    assert len(mine) == len(theirs), (question.name, len(mine), len(theirs))
    for own, (end, answer) in zip(mine, theirs, strict=True):
        given = own["a"]
        if question.top:
            same = [(item["value"], item["count"]) for item in given] == [tuple(x) for x in answer]
        elif isinstance(given, list):
            same = all(map(lambda a, b: math.isclose(a, b, rel_tol=1e-12), given, answer))
        else:
            same = given == answer
        assert own["window_end"] == end, (question.name, own, end)
        assert same, (question.name, end, given, answer)
