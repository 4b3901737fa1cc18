"""End to end on a stream: the highest rate that is held, and how soon answers come at 80% of it.

Files arrive in a folder, one a second, with the rows of that second. A rate is held if answers
do not come later and later. The latency is the time from a file's arrival to the end of the
batch that read it, when the answers of the windows that it closed are in the sink.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from muntin.spark import session, stop
from muntin_bench.peers.compare import check_same
from muntin_bench.peers.questions import SECOND, Spec
from muntin_bench.peers.stream_sides import OurStream, SparkStream, Stream
from muntin_bench.progress import step
from muntin_bench.report import Section

_NAP = 0.01
_SHARE = 0.8
_UP, _DOWN = 1.5, 0.7
_COMPARED = 6


@dataclass(frozen=True)
class StreamScale:
    """How many queries, how large the waiting files are, and how long a rate is tried."""

    queries: int = 16
    backlog: int = 5
    rows: int = 200_000
    seconds: int = 20
    tries: int = 4


FULL_STREAM = StreamScale()
QUICK_STREAM = StreamScale(2, 2, 10_000, 6, 1)


@dataclass(frozen=True)
class Held:
    """A rate that was tried: rows per second, and the latency of every file."""

    rate: int
    latencies: tuple[float, ...]

    @property
    def is_held(self) -> bool:
        """Whether the last quarter of the files waited little longer than the second quarter."""
        quarter = max(len(self.latencies) // 4, 1)
        before = statistics.median(self.latencies[quarter : 2 * quarter])
        return statistics.median(self.latencies[-quarter:]) <= 1.5 * before + 0.5


def queries_of(count: int) -> tuple[Spec, ...]:
    """Queries with different windows: ranges of 4 seconds and more, slides of 2 and more."""
    return tuple(
        Spec(f"q{number:04d}", (2 + number % 4) * slide * SECOND, slide * SECOND)
        for number, slide in enumerate(2 + index // 4 for index in range(count))
    )


def stream_section(scale: StreamScale) -> Section:
    """Both sides, answers compared first."""
    queries = queries_of(scale.queries)
    running = session(
        "muntin-peers",
        master="local[2]",
        config={"spark.driver.memory": "3g", "spark.sql.shuffle.partitions": 2},
    )
    sides: dict[str, Callable[[Path], Stream]] = {
        "Muntin on Spark": lambda folder: OurStream(folder, queries),
        "Spark window(), a query each": lambda folder: SparkStream(running, folder, queries),
    }
    try:
        _compare(sides, queries)
        rows = tuple(_line(name, start, scale) for name, start in sides.items())
    finally:
        stop(running)
    columns = ("side", "waiting files, rows/s", "held, rows/s", "at 80%, p50", "p99", "tried")
    title = f"a stream of files, {scale.queries} queries with different windows, sink Parquet"
    return Section(title, columns, rows)


def _compare(sides: dict[str, Callable[[Path], Stream]], queries: tuple[Spec, ...]) -> None:
    """Feed the same rows to all, and compare the windows that all have answered."""
    step("stream: comparing answers")
    found = {}
    for name, start in sides.items():
        with tempfile.TemporaryDirectory(prefix="muntin-peers-") as folder:
            stream = start(Path(folder))
            try:
                for _ in range(_COMPARED):
                    stream.feed.put(500, 4)
                    _wait(stream)
                found[name] = stream.answers()
            finally:
                stream.stop()
    first, *others = found
    for query in queries:
        last = min(max(each[query.name]["window_start"].to_pylist()) for each in found.values())
        for name in others:
            ours, theirs = (
                {query.name: found[side][query.name].filter(pc.field("window_start") <= last)}
                for side in (first, name)
            )
            check_same(name, theirs, ours, [query])


def _line(name: str, start: Callable[[Path], Stream], scale: StreamScale) -> tuple[str, ...]:
    with tempfile.TemporaryDirectory(prefix="muntin-peers-") as folder:
        stream = start(Path(folder))
        try:
            step(f"stream: {name}, files that wait")
            drained = _drain(stream, scale)
            best, tried = _highest(stream, drained, scale, name)
            at = _hold(stream, round((best or drained) * _SHARE), scale.seconds)
        finally:
            stream.stop()
    p50, p99 = np.percentile(at.latencies, [50, 99])
    held = f"{best:,}" if best else f"less than {tried[-1].rate:,}"
    about = ", ".join(f"{each.rate:,}{'' if each.is_held else ' (lag grew)'}" for each in tried)
    return name, f"{drained:,}", held, f"{p50:.2f} s", f"{p99:.2f} s", about


def _highest(
    stream: Stream, rate: int, scale: StreamScale, name: str
) -> tuple[int | None, list[Held]]:
    """The highest rate that is held, and all that were tried: up while they are, down until."""
    best: int | None = None
    tried: list[Held] = []
    while len(tried) < scale.tries:
        step(f"stream: {name}, {rate:,} rows per second")
        tried.append(_hold(stream, rate, scale.seconds))
        if tried[-1].is_held:
            best = rate
        # The first that is held after one that is not is the highest, and the other way round.
        if len({each.is_held for each in tried}) == 2:
            break
        rate = round(rate * (_UP if best else _DOWN))
    return best, tried


def _drain(stream: Stream, scale: StreamScale) -> int:
    """Rows a second over files that wait, after a first one."""
    stream.feed.put(scale.rows, 4)
    _wait(stream)
    for _ in range(scale.backlog):
        stream.feed.put(scale.rows, 4)
    begin = time.perf_counter()
    _wait(stream)
    return round(scale.backlog * scale.rows / (time.perf_counter() - begin))


def _hold(stream: Stream, rate: int, seconds: int) -> Held:
    """Put a file a second; how long each took until its batch had ended."""
    begin = time.perf_counter()
    arrived: list[tuple[int, float]] = []
    ended: list[float] = []
    while len(ended) < seconds:
        now = time.perf_counter()
        if len(arrived) < seconds and now >= begin + len(arrived):
            # The clock starts when the file was due, not when the machine got round to it.
            due = begin + len(arrived)
            stream.feed.put(rate, 1)
            arrived.append((stream.feed.rows, due))
        done = stream.done()
        while len(ended) < len(arrived) and done >= arrived[len(ended)][0]:
            ended.append(time.perf_counter() - arrived[len(ended)][1])
        time.sleep(_NAP)
    return Held(rate, tuple(ended))


def _wait(stream: Stream) -> None:
    while stream.done() < stream.feed.rows:
        time.sleep(_NAP)
