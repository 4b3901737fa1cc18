"""Queries that all differ in window and predicate, over bounded trades, beside polars and DuckDB.

Predicates are of a category and a threshold, or of three quantities. Polars and DuckDB get the
product that predicates compare as a column, and polars categories as its ``Enum``, before any time
is measured.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from muntin.engine import SAMPLE_ROWS, LocalEngine
from muntin.plan import SharedPlan
from muntin.planner import build_plan
from muntin.queries import queries
from muntin.testing import trades
from muntin_bench.data import load_trades
from muntin_bench.measure import Timing, measure
from muntin_bench.progress import step
from muntin_bench.report import Check, Section
from muntin_bench.sharing.workloads import SECOND, windows

_CLOSE = 1e-9


@dataclass(frozen=True)
class Asked:
    """How many queries, few and many, over how many rows; all trades of a week if None."""

    few: int
    many: int
    rows: int | None = None
    repeats: int = 3


ASKED_FULL = Asked(16, 256)
ASKED_QUICK = Asked(16, 64, rows=300_000, repeats=1)


@dataclass(frozen=True)
class Question:
    """The sum of a window's trades that satisfy a condition; window bounds are in seconds."""

    name: str
    range: int
    slide: int
    where: str

    @property
    def sql(self) -> str:
        """The query in Muntin's SQL."""
        window = f"[RANGE '{self.range} seconds' SLIDE '{self.slide} seconds']"
        return (
            f"CREATE QUERY {self.name} AS SELECT sum(price * vol) AS value FROM trades {window}"
            f" WHERE {self.where}"
        )


@dataclass(frozen=True)
class Workload:
    """Questions by their number, how much faster than polars, and than more of them, they are."""

    name: str
    draw: Callable[[random.Random, Sequence[str], Sequence[str]], str]
    ahead: float
    growth: float | None

    def questions(self, count: int, rows: pa.Table) -> tuple[Question, ...]:
        """Questions of which no two have the same window; those of fewer begin those of more."""
        chance = random.Random(1)
        symbols, exchanges = (rows.column(name).unique() for name in ("symbol", "exchange"))
        known = sorted(symbols.to_pylist()), sorted(exchanges.to_pylist())
        return tuple(
            Question(f"q{number:04d}", *window, self.draw(chance, *known))
            for number, window in enumerate(islice(windows(0), count))
        )


def _category(chance: random.Random, symbols: Sequence[str], _: Sequence[str]) -> str:
    """A category and a threshold."""
    symbol = f"symbol {chance.choice(('=', '<>'))} '{chance.choice(symbols)}'"
    if chance.random() < 0.5:
        return f"{symbol} AND vol {chance.choice('<>')} {_drawn(chance, 100, 30_000)}"
    return f"{symbol} AND price * vol {chance.choice('<>')} {_drawn(chance, 2_000, 600_000)}"


def _three(chance: random.Random, _: Sequence[str], exchanges: Sequence[str]) -> str:
    """A category, a range and a threshold."""
    low = _drawn(chance, 100, 3_000)
    high = round(low * chance.uniform(1.5, 11.5))
    price = round(chance.uniform(10, 190), 2)
    exchange = chance.choice(exchanges)
    return f"vol BETWEEN {low} AND {high} AND price < {price} AND exchange = '{exchange}'"


def _drawn(chance: random.Random, low: float, high: float) -> int:
    """A number between two, evenly by its logarithm."""
    return round(low * math.pow(high / low, chance.random()))


WORKLOADS = (
    Workload("a category and a threshold", _category, 7.0, 4.0),
    Workload("three quantities", _three, 1.5, None),
)


def load(asked: Asked) -> tuple[str, pa.Table]:
    """What the trades are, and the trades."""
    if asked.rows is None:
        about, found = load_trades()
        columns = ["ts", "symbol", "price", "vol", "exchange"]
        return about, found.select(columns).combine_chunks()
    return "synthetic trades, seed 0", trades(asked.rows, seconds=4 * 86_400).combine_chunks()


def predicates_section(
    about: str, rows: pa.Table, asked: Asked
) -> tuple[list[Section], list[Check]]:
    """Both workloads by every side, answers compared first; planning is not counted."""
    lines: list[tuple[str, ...]] = []
    checks: list[Check] = []
    timed: list[tuple[Timing, ...]] = []
    peers: list[Polars | DuckDB] = [Polars(rows), DuckDB(rows)]
    for workload in WORKLOADS:
        step(f"{asked.many} queries of {workload.name}")
        plans = {
            size: _planned(workload.questions(size, rows), rows) for size in (asked.few, asked.many)
        }
        questions = workload.questions(asked.many, rows)
        ours = _answers(plans[asked.many], rows)
        for peer in peers:
            check_close(peer.answer(questions), questions, ours, f"{peer.name}, {workload.name}")
        few, many = (f"Muntin, {size} queries" for size in (asked.few, asked.many))
        sides: dict[str, Callable[[], Any]] = {
            many: partial(_answers, plans[asked.many], rows),
            few: partial(_answers, plans[asked.few], rows),
            **{
                f"{peer.name}, {asked.many} queries": partial(peer.answer, questions)
                for peer in peers
            },
        }
        timings = measure(sides, repeats=asked.repeats)
        base = timings[many]
        lines += [
            (f"{workload.name}: {side}", timing.milliseconds, str(timing.over(base)))
            for side, timing in timings.items()
        ]
        which = f"{asked.many} queries of {workload.name}"
        if workload.growth is not None:
            grown = base.over(timings[few])
            checks.append(Check.of(f"{which} against {asked.few}", workload.growth, grown))
        polars = timings[f"polars, {asked.many} queries"].over(base)
        checks.append(Check.of(f"{which}, polars against ours", workload.ahead, polars, least=True))
        timed.append(
            tuple(replace(each, side=f"{workload.name}: {name}") for name, each in timings.items())
        )
    title = (
        f"bounded, {about}, {rows.num_rows:,} rows: queries that all differ in window and"
        " predicate, plans made before"
    )
    columns = ("queries", "ms (range)", "ratio (range)")
    return [Section(title, columns, tuple(lines), tuple(timed))], checks


def _planned(questions: Sequence[Question], rows: pa.Table) -> SharedPlan:
    text = ";".join(question.sql for question in questions)
    return build_plan(queries(text), rows.schema, "ts", sample=rows.slice(0, SAMPLE_ROWS))


def _answers(plan: SharedPlan, rows: pa.Table) -> dict[str, pa.Table]:
    engine = LocalEngine(plan, threads=pa.cpu_count())
    engine.feed(rows)
    return engine.close()


class Polars:
    """``group_by_dynamic`` for each question, collected together, on all threads."""

    name = "polars"

    def __init__(self, rows: pa.Table) -> None:
        frame = pl.DataFrame(pl.from_arrow(rows))
        categories = {name: pl.Enum(frame[name].unique().sort()) for name in ("symbol", "exchange")}
        self._rows = frame.select(
            pl.col("ts").cast(pl.Int64),
            *(pl.col(name).cast(kind) for name, kind in categories.items()),
            "price",
            "vol",
            value=pl.col("price") * pl.col("vol"),
        )

    def answer(self, questions: Sequence[Question]) -> list[pa.Table]:
        """The answers: `window_start` in microseconds since the epoch, and `value`."""
        rows = self._rows.lazy().set_sorted("ts")
        return [each.to_arrow() for each in pl.collect_all([_dynamic(rows, q) for q in questions])]


def _dynamic(rows: pl.LazyFrame, question: Question) -> pl.LazyFrame:
    # Windows that *end* on the slide start a range before it.
    size, slide = question.range * SECOND, question.slide * SECOND
    where = pl.sql_expr(question.where.replace("price * vol", "value"))
    grouped = rows.filter(where).group_by_dynamic(
        "ts", every=f"{slide}i", period=f"{size}i", offset=f"-{size}i"
    )
    return grouped.agg(pl.col("value").sum()).select(window_start="ts", value="value")


class DuckDB:
    """Paired slices summed up for each question, and then windows, on all threads."""

    name = "DuckDB"

    def __init__(self, rows: pa.Table) -> None:
        import duckdb  # noqa: PLC0415  it comes with an extra

        self._connection: Any = duckdb.connect()
        self._connection.register("arrow_rows", rows)
        self._connection.execute(
            "CREATE TABLE trades AS SELECT epoch_us(ts) AS ts, symbol, exchange, price, vol,"
            " price * vol AS value FROM arrow_rows"
        ).fetchall()

    def answer(self, questions: Sequence[Question]) -> list[pa.Table]:
        """The answers: `window_start` in microseconds since the epoch, and `value`."""
        return [self._connection.sql(_paired(each)).to_arrow_table() for each in questions]


def _paired(question: Question) -> str:
    size, slide = question.range * SECOND, question.slide * SECOND
    whole, rest = divmod(size, slide)
    where = question.where.replace("price * vol", "value")
    slices = f"""
        SELECT 2 * (ts // {slide}) + (ts % {slide} >= {slide - rest})::BIGINT AS slice,
               sum(value) AS value
        FROM trades WHERE {where} GROUP BY ALL"""
    copies = f"""
        SELECT unnest(range(slice // 2 + 1, (slice + 1) // 2 + {whole + 1})) AS number, value
        FROM ({slices})"""
    return f"""
        SELECT number * {slide} - {size} AS window_start, sum(value) AS value
        FROM ({copies}) GROUP BY number ORDER BY number"""


def check_close(
    found: Sequence[pa.Table],
    questions: Sequence[Question],
    answers: Mapping[str, pa.Table],
    about: str,
) -> None:
    """Refuse to time different answers: the same windows, and sums that differ by rounding only."""
    for question, theirs in zip(questions, found, strict=True):
        ours = answers[question.name]
        starts = (
            table.column("window_start").cast(pa.int64()).to_numpy() for table in (ours, theirs)
        )
        assert np.array_equal(*starts), f"{about}: {question.name} has other windows"
        wanted, got = (table.column("value").to_numpy() for table in (ours, theirs))
        same = np.allclose(got, wanted, rtol=_CLOSE, atol=0)
        assert same, f"{about}: {question.name} has other sums"
