"""A keep beside running queries in this process, and questions while the stream is fed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from statistics import median

import duckdb
import pyarrow as pa

import muntin
from muntin.streams import Stream
from muntin_bench.ask.workload import (
    KEEP,
    PER_SECOND,
    QUERIES,
    Asked,
    asking,
    data_of,
    latency,
    of_duckdb,
    percentile,
    queries,
    questions,
    warmed,
)
from muntin_bench.measure import Timing
from muntin_bench.progress import step
from muntin_bench.report import Check, Section


@dataclass(frozen=True)
class LocalScale:
    """How much to measure: rows with and without a keep, and rows during which is asked."""

    rows: int
    asked_rows: int
    batch: int
    repeats: int


LOCAL_FULL = LocalScale(rows=1_000_000, asked_rows=4_000_000, batch=20_000, repeats=5)
LOCAL_QUICK = LocalScale(rows=100_000, asked_rows=200_000, batch=10_000, repeats=1)


def opened(data: pa.Table, *, keeps: bool) -> Stream:
    """A stream of all queries, with the keep or without."""
    stream: Stream = muntin.stream(
        queries(),
        data.schema,
        lateness="1 second",
        max_ahead=None,
        keeps=KEEP if keeps else None,
    )
    return stream


def fed(stream: Stream, data: pa.Table, batch: int) -> float:
    """Seconds to feed all rows."""
    begin = time.perf_counter()
    for low in range(0, data.num_rows, batch):
        stream.feed(data.slice(low, batch))
    return time.perf_counter() - begin


def local_sections(scale: LocalScale) -> tuple[list[Section], list[Check]]:
    """All that is measured without Spark."""
    data = data_of(max(scale.rows, scale.asked_rows))
    symbols = data["symbol"].unique().to_pylist()
    kept, slower = _kept(data.slice(0, scale.rows), scale)
    sections, checks = [kept], [slower]
    for about, alone, limit in (
        ("a stream with a core to spare", False, 20),
        ("a stream that fills its only core", True, 50),
    ):
        with _one_core(alone):
            asked = data.slice(0, scale.asked_rows)
            section, promised = _asked(asked, symbols, scale, about, limit)
        sections.append(section)
        checks += promised
    sections.append(_beside_duckdb(data.slice(0, scale.rows), scale, symbols))
    return sections, checks


def _kept(data: pa.Table, scale: LocalScale) -> tuple[Section, Check]:
    sides: dict[bool, list[float]] = {False: [], True: []}
    for number in range(scale.repeats + 1):
        step(f"a keep beside {QUERIES} queries, {number} of {scale.repeats}")
        for keeps in (False, True) if number % 2 else (True, False):
            seconds = fed(opened(data, keeps=keeps), data, scale.batch)
            if number:
                sides[keeps].append(seconds)
    without = Timing("without a keep", tuple(sides[False]))
    within = Timing("with a keep", tuple(sides[True]))
    timed = (without, within)
    rows = tuple((each.side, each.milliseconds, str(each.over(without))) for each in timed)
    title = (
        f"in this process: {data.num_rows:,} rows, {QUERIES} queries, batches of {scale.batch:,}"
    )
    section = Section(title, ("side", "ms (range)", "ratio (range)"), rows, (timed,))
    return section, Check.of("a keep slows the local engine", 1.5, within.over(without))


@contextmanager
def _one_core(alone: bool) -> Iterator[None]:
    """Let a stream use one core; its questions go to another, unless it is ``alone``.

    Batches of this size are one piece of work: more cores than one would stay idle. Where a system
    cannot tie threads to a core, all of them stay free.
    """
    before, threads = _affinity(), pa.cpu_count()
    pa.set_cpu_count(1)
    if alone and before:
        os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        pa.set_cpu_count(threads)
        if before:
            os.sched_setaffinity(0, before)


def _affinity() -> set[int]:
    """The cores that this thread may run on; those that it starts inherit them."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


def _asked(
    data: pa.Table, symbols: Sequence[str], scale: LocalScale, about: str, limit: float
) -> tuple[Section, list[Check]]:
    """A stream at full speed, with questions and without, in turns."""
    found = Asked()
    sides: dict[bool, list[float]] = {False: [], True: []}
    first = scale.asked_rows // 4
    for number in range(scale.repeats):
        for asks in (False, True) if number % 2 else (True, False):
            step(f"{about}, {'with' if asks else 'without'} questions, {number + 1}")
            stream = opened(data, keeps=True)
            fed(stream, data.slice(0, first), scale.batch)
            warmed(stream.ask, symbols)
            rest = data.slice(first)
            if not asks:
                sides[False].append(fed(stream, rest, scale.batch))
                continue
            with asking(stream.ask, symbols) as asked:
                sides[True].append(fed(stream, rest, scale.batch))
            found += asked
    alone = Timing("no questions", tuple(sides[False]))
    beside = Timing(f"{PER_SECOND} questions per second", tuple(sides[True]))
    ratio = beside.over(alone)
    rows = [(each.side, each.milliseconds) for each in (alone, beside)]
    rows += [("ratio (range)", str(ratio)), *latency(about, found)]
    p99 = percentile(found.all, 99)
    checks = [
        Check.of(f"{PER_SECOND} questions per second slow down {about}", 1.05, ratio),
        Check(f"p99 of all questions beside {about}", limit, p99, " ms"),
    ]
    return Section(f"questions beside {about}", ("what", "ms"), tuple(rows)), checks


def _beside_duckdb(data: pa.Table, scale: LocalScale, symbols: Sequence[str]) -> Section:
    """Milliseconds of one question, of Muntin and of DuckDB over the rows; answers are compared."""
    step("the same questions to DuckDB")
    stream = opened(data, keeps=True)
    fed(stream, data, scale.batch)
    warmed(stream.ask, symbols)
    times: dict[tuple[bool, bool], list[float]] = {}
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("given", data)
        connection.execute("CREATE TABLE trades AS FROM given")
        for sql, is_wide in islice(questions(symbols), 200):
            begin = time.perf_counter()
            answer = stream.ask(sql)
            times.setdefault((is_wide, True), []).append(time.perf_counter() - begin)
            assert answer.covers is not None
            text = of_duckdb(sql, answer.covers)
            begin = time.perf_counter()
            wanted = connection.sql(text).to_arrow_table()
            times.setdefault((is_wide, False), []).append(time.perf_counter() - begin)
            got = answer.table.select(wanted.column_names)
            if "LIMIT" in sql:
                # Ties may come out in any order.
                got, wanted = got.select(["n"]), wanted.select(["n"])
            assert _sorted(got) == _sorted(wanted), sql
    rows = tuple(
        (name, *(f"{1000 * median(times[wide, ours]):.2f}" for ours in (True, False)))
        for name, wide in (("of one symbol", False), ("of all symbols", True))
    )
    title = f"one question at a time, median ms; DuckDB over {data.num_rows:,} raw rows"
    return Section(title, ("question", "Muntin", "DuckDB"), rows)


def _sorted(table: pa.Table) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in table.to_pylist())
