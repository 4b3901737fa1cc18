"""Row queries over Spark streams by the length of their windows: a batch costs its news.

Every second brings as many rows, and every row as many results whatever the window: keys come once,
and half of them get a partner within two seconds. So a longer window only means more rows kept.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from muntin import sinks
from muntin.api import files, run
from muntin.spark.streaming.driver.handle import Run
from muntin_bench.measure import Ratio
from muntin_bench.progress import step
from muntin_bench.report import Check, Section
from muntin_bench.streaming.checkpoints import Written, worker_cache

SCHEMA = "ts timestamp, k bigint, v bigint"
_START = 1_700_000_000_000_000
_SECOND = 1_000_000
_NAP = 0.005

QUERIES = {
    "join": "SELECT a.k, a.v, b.v AS w FROM a [RANGE '{0} s'] JOIN b [RANGE '{0} s'] ON a.k = b.k",
    "absence": "SELECT a.k, a.v FROM a [RANGE '{0} s'] "
    "WHERE NOT EXISTS (SELECT 1 FROM b [RANGE '{0} s'] WHERE b.k = a.k)",
    "distinct": "SELECT DISTINCT k FROM a [RANGE '{0} s']",
    "except": "SELECT k FROM a [RANGE '{0} s'] EXCEPT SELECT k FROM b [RANGE '{0} s']",
}


@dataclass(frozen=True)
class Lengths:
    """How much to measure: rows per stream and second, two windows in seconds, and batches.

    After as many as ``warm`` what the first batch brought is written where it stays.
    """

    rows: int = 20_000
    windows: tuple[int, int] = (8, 80)
    batches: int = 24
    warm: int = 8


FULL = Lengths()
QUICK = Lengths(1000, (4, 16), 8, 2)


class Feed:
    """Two folders that get a file each for every batch."""

    def __init__(self, folder: Path, rows: int) -> None:
        self.folder, self._rows = folder, rows
        self.count = self._second = 0
        for name in "ab":
            (folder / name).mkdir(parents=True)

    def put(self, seconds: int = 1) -> None:
        """Add some seconds of rows to both."""
        chance = np.random.default_rng(self.count)
        size = seconds * self._rows
        first = self._second * self._rows
        # Payments for half of the rows of the second before; keys of the others are nobody's.
        partners = first - self._rows + np.arange(size)
        keys = {"a": first + np.arange(size), "b": np.where(partners % 2, partners, -partners - 1)}
        for name, each in keys.items():
            ticks = _START + _SECOND * self._second + np.arange(size) * _SECOND // self._rows
            order = np.argsort(ticks // _SECOND + chance.random(size), kind="stable")
            values = chance.integers(0, 1000, size)
            columns = {"ts": pa.array(ticks).cast(pa.timestamp("us", "UTC")), "k": each[order]}
            self._write(name, pa.table({**columns, "v": values}))
        self._second += seconds
        self.count += 1

    def _write(self, name: str, table: pa.Table) -> None:
        hidden = self.folder / name / f".{self.count:06d}.parquet"
        pq.write_table(table, hidden, row_group_size=max(table.num_rows // 4, 1))
        # Spark takes files in the order of their times.
        os.utime(hidden, (1e9 + self.count, 1e9 + self.count))
        hidden.rename(hidden.with_name(hidden.name[1:]))


@dataclass
class Stream:
    """A run over a feed, and what is written under its checkpoint."""

    feed: Feed
    started: Run
    written: Written

    def batch(self, seconds: int = 1) -> float:
        """Seconds from the arrival of files to the end of their batch."""
        self.feed.put(seconds)
        begin = time.perf_counter()
        while self.started.progress().batches < self.feed.count:
            if self.started.await_termination(_NAP):
                break
        taken = time.perf_counter() - begin
        self.written.look()
        return taken


@contextmanager
def _streaming(rows: int, sql: str, streams: str) -> Iterator[Stream]:
    folder = Path(tempfile.mkdtemp(prefix="muntin-bench-"))
    feed = Feed(folder / "in", rows)
    frames = {name: files(feed.folder / name, schema=SCHEMA) for name in streams}
    started = run(
        frames,
        f"CREATE QUERY q AS {sql}",
        "ts",
        sink=sinks.parquet(folder / "out"),
        checkpoint=folder / "checkpoint",
        partitions=2,
        buckets=2,
    )
    try:
        yield Stream(feed, started, Written(folder / "checkpoint" / "state"))
    finally:
        started.stop()
        shutil.rmtree(folder, ignore_errors=True)


def by_length(what: str, scale: Lengths) -> tuple[list[Section], list[Check]]:
    """A query with a short and with a long window, with the cache of workers and without."""
    rows, checks = [], []
    for cached in (True, False):
        about = "cache on" if cached else "cache off"
        step(f"{what}, windows of {scale.windows[0]} and {scale.windows[1]} s, {about}")
        with worker_cache(cached):
            found = [_measured(what, scale, window) for window in scale.windows]
        for window, (seconds, written, results) in zip(scale.windows, found, strict=True):
            mean, most = np.mean(seconds) * 1e3, max(seconds) * 1e3
            size = written / len(seconds) / 1e3
            shown = f"{mean:,.0f}", f"{most:,.0f}", f"{size:,.0f}", f"{results:,}"
            rows.append((f"{window} s, {about}", *shown))
        (short, few, one), (long, many, other) = found
        # A row more or less is due at the edge of a batch, as keys are dealt out at random.
        assert abs(one - other) <= scale.batches, (one, other)
        name = f"{what}, a window of {scale.windows[1]} s against {scale.windows[0]} s, {about}"
        checks.append(Check(f"{name}: bytes of state written", 1.3, many / few))
        checks.append(Check.of(f"{name}: time of a batch", 1.3, _ratio(long, short)))
    title = f"{what}: {scale.rows:,} rows per second and stream, {scale.batches} batches"
    columns = ("window", "batch: mean, ms", "slowest, ms", "kB written a batch", "results")
    return [Section(title, columns, tuple(rows))], checks


def _measured(what: str, scale: Lengths, window: int) -> tuple[list[float], int, int]:
    streams = "a" if what == "distinct" else "ab"
    with _streaming(scale.rows, QUERIES[what].format(window), streams) as stream:
        # The first batch fills the window.
        stream.batch(window)
        for _ in range(scale.warm):
            stream.batch()
        before, shown = stream.written.look(), _results(stream)
        seconds = [stream.batch() for _ in range(scale.batches)]
        return seconds, stream.written.look() - before, _results(stream) - shown


def _results(stream: Stream) -> int:
    return sum(stream.started.progress().results.values())


def _ratio(over: list[float], under: list[float]) -> Ratio:
    """The ratio of the means; its range is that of the turns, in the order they were taken."""
    turns = [a / b for a, b in zip(over, under, strict=True)]
    return Ratio(sum(over) / sum(under), min(turns), max(turns))
