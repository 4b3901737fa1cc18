"""A keep beside running queries in this process, and questions while the stream runs.

A keep of an hour by a second stands beside grouped queries; the stream is fed with and without it
in turns. Then questions of several shapes come at a steady rate while the stream is fed, and the
same questions go to DuckDB over the raw rows of the last hour. Answers of both are compared.
"""

from __future__ import annotations

import random
import statistics
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

import muntin
from muntin.streams import Stream
from muntin.testing import trades
from muntin_bench.progress import step
from muntin_bench.report import Check, Report, Section

SEED = 21
QUERIES = 64
PER_SECOND = 100
KEEP = (
    "CREATE KEEP recent AS SELECT symbol, max(price), sum(vol), count(*)"
    " FROM trades [RANGE '1 hour' SLIDE '1 second'] GROUP BY symbol"
)
POINT = (
    "SELECT max(price) AS high, sum(vol) AS vol, count(*) AS n"
    " FROM trades [RANGE '{} minutes' ALIGNED] WHERE symbol = '{}'"
)
WIDE = (
    "SELECT symbol, max(price) AS high, sum(vol) AS vol, count(*) AS n"
    " FROM trades [RANGE '{} minutes' ALIGNED] GROUP BY symbol"
)


@dataclass(frozen=True)
class Scale:
    """How much to measure."""

    rows: int
    batch: int
    repeats: int


FULL = Scale(rows=1_000_000, batch=20_000, repeats=5)
QUICK = Scale(rows=60_000, batch=10_000, repeats=1)


@dataclass
class Asked:
    """How long questions took, in milliseconds; one in ten is of all groups."""

    point: list[float] = field(default_factory=list)
    wide: list[float] = field(default_factory=list)


def queries() -> str:
    """Grouped queries over different windows."""
    rnd = random.Random(SEED)
    return "\n".join(
        f"CREATE QUERY q{number} AS SELECT symbol, sum(vol) AS v, max(price) AS m, count(*) AS c"
        f" FROM trades [RANGE '{rnd.randint(5, 30)} minutes' SLIDE '{rnd.randint(1, 5)} minutes']"
        " GROUP BY symbol;"
        for number in range(QUERIES)
    )


def opened(data: pa.Table, *, keeps: bool) -> Stream:
    """A stream of all queries, with the keep or without."""
    return muntin.stream(
        queries(),
        data.schema,
        lateness="1 second",
        max_ahead=None,
        keeps=KEEP if keeps else None,
    )


def fed(stream: Stream, data: pa.Table, batch: int) -> float:
    """Processor seconds to feed all rows."""
    begin = time.process_time()
    for low in range(0, data.num_rows, batch):
        stream.feed(data.slice(low, batch))
    return time.process_time() - begin


def question(number: int, symbols: Sequence[str]) -> tuple[str, bool]:
    """The question of a number, and whether it is of all groups."""
    if number % 10 == 9:
        return WIDE.format(1 + number % 6), True
    return POINT.format(1 + number % 50, symbols[number * 7 % len(symbols)]), False


def ask_steadily(stream: Stream, symbols: Sequence[str], done: threading.Event) -> Asked:
    """Ask at a steady rate until the stream is over."""
    found, number, begin = Asked(), 0, time.perf_counter()
    while not done.is_set():
        sql, is_wide = question(number, symbols)
        asked = time.perf_counter()
        stream.ask(sql)
        taken = 1000 * (time.perf_counter() - asked)
        (found.wide if is_wide else found.point).append(taken)
        number += 1
        time.sleep(max(begin + number / PER_SECOND - time.perf_counter(), 0.0))
    return found


def disturbed(data: pa.Table, scale: Scale, symbols: Sequence[str]) -> tuple[float, Asked]:
    """Processor seconds of feeding and asking together, and how long questions took."""
    stream, done = opened(data, keeps=True), threading.Event()
    stream.feed(data.slice(0, scale.batch))
    found: list[Asked] = []
    thread = threading.Thread(target=lambda: found.append(ask_steadily(stream, symbols, done)))
    thread.start()
    try:
        seconds = fed(stream, data.slice(scale.batch), scale.batch)
    finally:
        done.set()
        thread.join()
    return seconds, found[0]


def beside_duckdb(data: pa.Table, scale: Scale, symbols: Sequence[str]) -> tuple[float, float]:
    """Milliseconds of one question, of Muntin and of DuckDB over the rows; answers are compared."""
    stream = opened(data, keeps=True)
    fed(stream, data, scale.batch)
    ours, theirs = [], []
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("given", data)
        connection.execute("CREATE TABLE trades AS FROM given")
        for number in range(40):
            sql, _ = question(number, symbols)
            begin = time.perf_counter()
            answer = stream.ask(sql)
            ours.append(1000 * (time.perf_counter() - begin))
            assert answer.covers is not None
            text = _of_duckdb(sql, answer.covers)
            begin = time.perf_counter()
            wanted = connection.sql(text).to_arrow_table()
            theirs.append(1000 * (time.perf_counter() - begin))
            assert _sorted(answer.table) == _sorted(wanted), sql
    return statistics.median(ours), statistics.median(theirs)


def _of_duckdb(sql: str, covers: muntin.synopses.Covers) -> str:
    """The question over the rows of the window that it covers."""
    head, _, tail = sql.partition(" [RANGE")
    condition = f"ts >= '{covers.start}' AND ts < '{covers.end}'"
    rest = tail.partition("]")[2]
    if " WHERE " in rest:
        return f"{head} {rest} AND {condition}"
    return f"{head} WHERE {condition}{rest}"


def _sorted(table: pa.Table) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in table.to_pylist())


def run(quick: bool = False) -> Report:
    """All parts."""
    return run_at(QUICK if quick else FULL)


def run_at(scale: Scale) -> Report:
    """Measure as much as the scale says."""
    data = trades(scale.rows, symbols=300, seconds=3600)
    symbols = data["symbol"].unique().to_pylist()
    without: list[float] = []
    kept: list[float] = []
    for number in range(scale.repeats + 1):
        step(f"a keep beside {QUERIES} queries, {number} of {scale.repeats}")
        sides = [(without, False), (kept, True)]
        for seconds, keeps in sides if number % 2 else sides[::-1]:
            taken = fed(opened(data, keeps=keeps), data, scale.batch)
            if number:
                seconds.append(taken)
    step(f"{PER_SECOND} questions per second")
    asked = [disturbed(data, scale, symbols) for _ in range(scale.repeats)]
    point = sorted(each for _, found in asked for each in found.point)
    wide = sorted(each for _, found in asked for each in found.wide)
    both = sorted([*point, *wide])
    step("the same questions to DuckDB")
    ours, theirs = beside_duckdb(data, scale, symbols)
    slower = statistics.median(kept) / statistics.median(without)
    load = statistics.median(seconds for seconds, _ in asked) / statistics.median(kept)
    rows = (
        ("without a keep", f"{statistics.median(without):.2f} s"),
        ("with a keep", f"{statistics.median(kept):.2f} s"),
        (f"with {PER_SECOND} questions per second", f"{load:.2f} times as much"),
        ("a question of one symbol, median and p99", f"{_at(point, 50)}, {_at(point, 99)} ms"),
        ("a question of all symbols, median and p99", f"{_at(wide, 50)}, {_at(wide, 99)} ms"),
        ("the same to DuckDB over the rows, median", f"{theirs:.2f} ms, Muntin {ours:.2f} ms"),
    )
    checks = (
        Check("a keep slows the local engine", 1.5, slower),
        Check(f"{PER_SECOND} questions per second slow it", 1.05, load),
        Check("p99 of all questions, ms, every core in use", 50, both[len(both) * 99 // 100]),
    )
    text = f"{scale.rows:,} seeded trades of 300 symbols in an hour, batches of {scale.batch:,}"
    section = Section("keeping and asking in this process", ("what", "processor time"), rows)
    return Report("ask", text, sections=(section,), checks=checks, uses=("duckdb",))


def _at(values: Sequence[float], percent: int) -> str:
    return f"{values[min(len(values) * percent // 100, len(values) - 1)]:.2f}" if values else "-"
