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
from muntin_bench.measure import Timing, measure
from muntin_bench.operators.constants import constants
from muntin_bench.operators.lengths import FULL as SECONDS
from muntin_bench.operators.lengths import QUERIES, by_length
from muntin_bench.operators.lengths import QUICK as FEW_SECONDS
from muntin_bench.operators.streams import FULL, QUICK, Streams
from muntin_bench.progress import step
from muntin_bench.report import Check, Report, Section
from muntin_bench.streaming.checkpoints import spark

_ROWS, _FEWER_ROWS = 2_000_000, 200_000
_REPEATS, _FEWER = 5, 3
_SEEDS = (1, 2)
# Those that are compared with Spark's own operators, and windows by their lengths.
_COMPARED = ("join", "joins", "absence", "distinct")
PARTS = ("bounded", "constants", *_COMPARED, *(f"long_{name}" for name in QUERIES))


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


def bounded(quick: bool) -> list[Timing]:
    """Compare the answers of both sides over whole streams, then time them."""
    rows = _FEWER_ROWS if quick else _ROWS
    repeats = _FEWER if quick else _REPEATS
    timings: list[Timing] = []
    for work in WORKLOADS:
        tables = streams(rows, work)
        window = int(5 * rows * work.share)
        step(f"comparing answers, {work.name}")
        check_same(ours(tables, window), theirs(tables, window))
        sides: dict[str, Callable[[], Any]] = {
            f"duckdb, {work.name}": partial(theirs, tables, window),
            f"muntin, {work.name}": partial(ours, tables, window),
        }
        step(f"timing both sides in turn, {repeats} times, {work.name}")
        timings.extend(measure(sides, repeats=repeats).values())
    return timings


def bounded_checks(timings: list[Timing]) -> list[Check]:
    """What is promised of whole streams beside DuckDB."""
    checks = []
    pairs = zip(WORKLOADS, timings[::2], timings[1::2], strict=True)
    for work, theirs_, ours_ in pairs:
        if work.rows_per_key <= 2:
            promise = f"bounded, {work.name}, DuckDB's time"
            checks.append(Check.of(promise, 2, ours_.over(theirs_)))
        else:
            promise = f"bounded, {work.name}, ahead of DuckDB"
            checks.append(Check.of(promise, 5, theirs_.over(ours_), least=True))
    return checks


def run(quick: bool = False, part: str | None = None) -> Report:
    """All parts, or one of them."""
    parts = [part] if part is not None else [*PARTS]
    timings = bounded(quick) if "bounded" in parts else []
    sections: list[Section] = []
    checks = bounded_checks(timings) if timings else []
    if "constants" in parts:
        found = constants(quick)
        sections += found[0]
        checks += found[1]
    on_spark = [each for each in parts if each not in ("bounded", "constants")]
    with spark(bool(on_spark)) as session:
        own = [each for each in on_spark if each in _COMPARED]
        beside = Streams(session, QUICK if quick else FULL) if own else None
        for each in on_spark:
            if each in _COMPARED:
                found = getattr(beside, each)()
            else:
                found = by_length(each.removeprefix("long_"), FEW_SECONDS if quick else SECONDS)
            sections += found[0]
            checks += found[1]
    rows = _FEWER_ROWS if quick else _ROWS
    return Report(
        "operators",
        f"two streams of {rows:,} rows each",
        tuple(timings),
        tuple(sections),
        tuple(checks),
        seeds=_SEEDS,
        uses=("duckdb", "pyspark"),
    )
