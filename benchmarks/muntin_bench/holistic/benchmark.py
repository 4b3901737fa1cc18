"""Aggregates over all values of windows: many queries in one pass, against DuckDB and polars.

DuckDB copies a row for every window that holds it, which is what its users do, and groups; polars
and Spark have windows of their own. Where there are many queries they answer some of them, and
their time is scaled up to all: the report says how many. Seconds are of processor time, on all
sides of all threads. Spark has no `top_k`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

import muntin
from muntin._compiled import compilations
from muntin.errors import MuntinError
from muntin_bench.conditions import JAVA
from muntin_bench.holistic import extremes
from muntin_bench.holistic.spark import SparkSide, spark_side
from muntin_bench.progress import step
from muntin_bench.report import Check, Report, Section

SEED = 20
SIDES = ("Muntin", "DuckDB", "polars", "Spark")
# Milliseconds of a trading day.
DAY = int(6.5 * 3_600_000)
MINUTE = 60_000


@dataclass(frozen=True)
class Scale:
    """How much to measure: rows, queries, and how many of these the others answer.

    ``groups`` have one value each, and one group has so many ``values``. ``spark`` says whether
    Spark answers as well: one query, for it takes a minute.
    """

    rows: int
    queries: int
    asked: int
    repeats: int
    groups: int = 1_000_000
    values: int = 10_000_000
    spark: bool = False


FULL = Scale(rows=2_000_000, queries=256, asked=4, repeats=1, spark=True)
QUICK = Scale(
    rows=100_000, queries=32, asked=4, repeats=1, groups=100_000, values=2_000_000, spark=True
)


@dataclass(frozen=True)
class Question:
    """An aggregate in all languages, and how far ahead it has to be.

    Attributes:
        part: The part of the benchmark that it belongs to.
        theirs: What DuckDB computes for a window; empty where values are counted first.
        polars: What polars computes, as an expression of its own language.
        spark: What Spark computes for a window; empty where it has no such aggregate.
        windows: How many times the best of the others 256 windows are to be, and predicates.
        error: By how much answers may differ, relative to themselves.
        column: The column that it reads, for an exact sum to compare with.
        asked: At most so many queries the others answer: some take them minutes.
    """

    name: str
    part: str
    ours: str
    theirs: str
    polars: str
    windows: float
    predicates: float
    error: float = 0.0
    column: str = "v"
    asked: int = 4
    spark: str = ""

    @property
    def top(self) -> bool:
        """Whether values are counted first."""
        return not self.theirs


_P = "[pl.col('p').quantile(q, 'linear').alias(f'q{q}') for q in (0.5, 0.95, 0.99)]"
QUESTIONS = (
    Question(
        "count(DISTINCT)", "distinct", "count(DISTINCT v)", "count(DISTINCT v)",
        "[pl.col('v').n_unique()]", 20, 10, spark="count(DISTINCT v)",
    ),
    Question(
        "exact p50, p95, p99", "percentiles", "percentile(p, array(0.5, 0.95, 0.99))",
        "quantile_cont(p, [0.5, 0.95, 0.99])", _P, 10, 3, 1e-12, "p", 2,
        "percentile(p, array(0.5, 0.95, 0.99))",
    ),
    Question(
        "top_k(10)", "frequent", "top_k(v, 10)", "",
        "[pl.col('v').value_counts(sort=True).head(10)]", 10, 3,
    ),
    Question(
        "approx_percentile", "approximate", "approx_percentile(p, array(0.5, 0.95, 0.99))",
        "approx_quantile(p, [0.5, 0.95, 0.99])", _P, 10, 10, 0.1, "p", 2,
        "percentile_approx(p, array(0.5, 0.95, 0.99))",
    ),
    Question(
        "approx_count_distinct", "approximate", "approx_count_distinct(v)",
        "approx_count_distinct(v)", "[pl.col('v').approx_n_unique()]", 10, 10, 0.25,
        spark="approx_count_distinct(v)",
    ),
)  # fmt: skip
PARTS = (*dict.fromkeys(question.part for question in QUESTIONS), "groups")


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


def run(quick: bool = False, parts: Sequence[str] = PARTS) -> Report:
    """All parts, or some."""
    return run_at(QUICK if quick else FULL, parts)


def run_at(scale: Scale, parts: Sequence[str] = PARTS) -> Report:
    """Measure as much as the scale says."""
    table = rows(scale.rows)
    with spark_side(table, wanted=scale.spark and set(parts) != {"groups"}) as spark:
        return _run(table, scale, parts, spark)


def _run(table: pa.Table, scale: Scale, parts: Sequence[str], spark: SparkSide | None) -> Report:
    found: list[tuple[str, ...]] = []
    checks: list[Check] = []
    asked = [question for question in QUESTIONS if question.part in parts]
    for question in asked:
        for predicates in (False, True):
            listed = windows(scale.queries, predicates=predicates)
            what = f"{scale.queries} windows{' and predicates' if predicates else ''}"
            step(f"{question.name}, {what}")
            seconds = compared(table, question, listed, scale, spark)
            found.append(_row(f"{question.name}, {what}", seconds))
            step("; ".join(found[-1]))
            limit = question.predicates if predicates else question.windows
            promise = f"{question.name} over {what}, against the best of the others"
            checks.append(Check(promise, limit, _ahead(seconds), least=True))
            if question.error > 0.01 and not predicates:
                exact = summed(table, question, listed, scale)
                promise = f"{question.name} over {what}, against an exact sum"
                checks.append(Check(promise, 10, seconds["Muntin"] / exact))
        step(f"{question.name}, one query")
        one = replace(scale, queries=1, asked=1, repeats=max(scale.repeats, 3))
        seconds = compared(table, question, [Window(10 * MINUTE, MINUTE, 0)], one, spark)
        found.append(_row(f"{question.name}, one query", seconds))
        step("; ".join(found[-1]))
        promise = f"{question.name}, one query, against the best of the others"
        checks.append(Check(promise, 3, 1 / _ahead(seconds)))
    sections: list[Section] = []
    if "groups" in parts:
        step("a million groups, and one of many values")
        sections.append(extremes.section(scale.groups, scale.values, checks))
    columns = ("aggregate", *(f"{side}, s" for side in SIDES), "best / Muntin")
    data = (
        f"{scale.rows:,} seeded rows over 6.5 hours; the others answer {scale.asked} of the "
        "queries, of percentiles 2, and Spark 1, scaled up to all; seconds of processor time"
    )
    if found:
        title = "aggregates over all values of windows"
        sections.insert(0, Section(title, columns, tuple(found)))
    uses = ("duckdb", "polars", *(("pyspark", JAVA) if spark else ()))
    return Report("holistic", data, sections=tuple(sections), checks=tuple(checks), uses=uses)


def _ahead(seconds: Mapping[str, float]) -> float:
    """How many times Muntin's time the best of the others takes."""
    return min(seconds[side] for side in SIDES[1:] if side in seconds) / seconds["Muntin"]


def _row(name: str, seconds: Mapping[str, float]) -> tuple[str, ...]:
    taken = (f"{seconds[side]:.2f}" if side in seconds else "" for side in SIDES)
    return name, *taken, f"{_ahead(seconds):.1f}×"


def compared(
    table: pa.Table,
    question: Question,
    listed: Sequence[Window],
    scale: Scale,
    spark: SparkSide | None = None,
) -> dict[str, float]:
    """Processor seconds of all sides for all queries, whose answers are the same."""
    connection, frame = _connect(table), _frame(table)
    text = ";\n".join(_ours(question, number, each) for number, each in enumerate(listed))
    places = range(0, len(listed), max(len(listed) // min(scale.asked, question.asked), 1))
    asked = {place: _theirs(question, listed[place]) for place in places}
    # Once over few rows, for what is compiled or loaded on first use.
    muntin.aggregate(table.slice(0, 1000), text, time="ts")
    compiled = compilations()
    ours, answers = _timed(lambda: muntin.aggregate(table, text, time="ts"), scale.repeats)
    if compilations() > compiled:
        # Some kernels only many rows need.
        ours, answers = _timed(lambda: muntin.aggregate(table, text, time="ts"), scale.repeats)
    duck, theirs = _timed(
        lambda: [connection.sql(sql).fetchall() for sql in asked.values()], scale.repeats
    )
    frames, others = _timed(
        lambda: [_polars(frame, question, listed[place]) for place in asked], scale.repeats
    )
    for place, rows_found, frame_found in zip(asked, theirs, others, strict=True):
        mine = _mine(answers, place)
        check(question, mine, rows_found)
        _check_polars(question, mine, frame_found, listed[place])
    share = len(listed) / len(asked)
    found = {"Muntin": ours, "DuckDB": duck * share, "polars": frames * share}
    if spark is not None and question.spark:
        place = places[len(places) // 2]
        taken, rows_found = spark.answer(question.spark, listed[place])
        check(question, _mine(answers, place), rows_found)
        found["Spark"] = taken * len(listed)
    return found


def _mine(answers: Any, place: int) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = answers.table(f"q{place}").select(["window_end", "a"]).to_pylist()
    return shown


def summed(table: pa.Table, question: Question, listed: Sequence[Window], scale: Scale) -> float:
    """Processor seconds of an exact sum over the same windows."""
    plain = replace(question, ours=f"sum({question.column})")
    text = ";\n".join(_ours(plain, number, each) for number, each in enumerate(listed))
    muntin.aggregate(table, text, time="ts")
    return _timed(lambda: muntin.aggregate(table, text, time="ts"), max(scale.repeats, 3))[0]


def _timed(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """The median of processor seconds, and what was found."""
    taken, found = [], None
    for _ in range(repeats):
        begin = time.process_time()
        found = work()
        taken.append(time.process_time() - begin)
    return sorted(taken)[len(taken) // 2], found


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


def _frame(table: pa.Table) -> Any:
    try:
        import polars as pl  # noqa: PLC0415
    except ImportError:
        raise MuntinError(
            "the holistic benchmark needs polars", hint="pip install polars, or make setup"
        ) from None
    return pl.from_arrow(table)


def _polars(frame: Any, question: Question, window: Window) -> Any:
    """The answers of polars; its windows start where ours do."""
    import polars as pl  # noqa: PLC0415

    rows = frame.lazy().filter(pl.col("vol") >= window.least)
    grouped = rows.group_by_dynamic(
        "ts",
        every=f"{window.slide}i",
        period=f"{window.range}i",
        offset=f"{-window.range % window.slide}i",
    )
    # Expressions are written in polars' own language, once for all sizes.
    made = eval(question.polars, {"pl": pl})
    return grouped.agg(made).collect()


def _check_polars(
    question: Question, mine: Sequence[dict[str, Any]], theirs: Any, window: Window
) -> None:
    """Compare with polars where it has the window: it leaves out some at the beginning."""
    own = {row["window_end"]: row["a"] for row in mine}
    compared = 0
    for row in theirs.rows():
        end, answer = row[0] + window.range, row[1:]
        if end not in own:
            continue
        compared += 1
        given = own[end] if isinstance(own[end], list) else [own[end]]
        if question.top:
            counts = [item["count"] for item in given]
            assert counts == [item["count"] for item in answer[0]], (question.name, end)
        else:
            same = all(math.isclose(a, b, rel_tol=max(question.error, 1e-12))
                       for a, b in zip(given, answer, strict=True))  # fmt: skip
            assert same, (question.name, end, given, answer)
    assert compared > len(mine) // 2, (question.name, compared, len(mine))


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
            near = max(question.error, 1e-12)
            same = all(math.isclose(a, b, rel_tol=near) for a, b in zip(given, answer, strict=True))
        else:
            same = math.isclose(given, answer, rel_tol=question.error)
        assert own["window_end"] == end, (question.name, own, end)
        assert same, (question.name, end, given, answer)
