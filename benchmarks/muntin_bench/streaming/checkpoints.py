"""Streams on Spark whose windows keep much: bytes written under the checkpoint, and batch times."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from muntin.api import run
from muntin.sinks import parquet
from muntin.spark import session, stop
from muntin.spark.streaming.driver.handle import Run
from muntin.spark.streaming.tasks.job import CACHE
from muntin_bench.measure import Ratio
from muntin_bench.progress import step
from muntin_bench.report import Check, Section

SCHEMA = "ts timestamp, k bigint, v double"
_START = 1_700_000_000_000_000
_SECOND = 1_000_000
_NAP = 0.002


@dataclass(frozen=True)
class Kept:
    """How much is kept: groups, two ranges in seconds, and numbers of groups in state.

    ``few`` and ``many`` groups are in the state of windows that are not due in any of the batches
    of ``rows`` rows.
    """

    groups: int
    ranges: tuple[int, int]
    batches: int
    few: int
    many: int
    rows: int
    turns: int
    # Batches after the first that are not measured.
    warm: int = 3


KEPT_FULL = Kept(2_000, (10, 3_600), 100, 10_000, 1_000_000, 100_000, 10)
KEPT_QUICK = Kept(200, (10, 120), 8, 1_000, 20_000, 5_000, 3)


@contextmanager
def spark(wanted: bool) -> Iterator[Any]:
    """A session of its own, or None where none is wanted."""
    if not wanted:
        yield None
        return
    step("starting Spark")
    running = session("muntin-bench", master="local[2]", config={"spark.driver.memory": "3g"})
    try:
        yield running
    finally:
        stop(running)


class Feed:
    """A folder that gets a file for each batch, with a row for each of some groups and second."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.count, self._second = folder, 0, 0
        folder.mkdir()

    def put(self, groups: int, seconds: int = 1, rows: int | None = None) -> None:
        """Add a row for each group and second, or ``rows`` of drawn groups in one second."""
        random = np.random.default_rng(self.count)
        if rows is None:
            ticks = np.repeat(np.arange(self._second, self._second + seconds), groups)
            keys = np.tile(np.arange(groups), seconds)
        else:
            ticks, keys = np.full(rows, self._second), random.integers(0, groups, rows)
        self._second += seconds
        times = pa.array(_START + ticks * _SECOND).cast(pa.timestamp("us", "UTC"))
        table = pa.table({"ts": times, "k": keys, "v": random.random(keys.size) * 1000})
        hidden = self.folder / f".{self.count:06d}.parquet"
        pq.write_table(table, hidden, row_group_size=max(keys.size // 4, 1))
        # Spark takes files in the order of their times.
        os.utime(hidden, (1e9 + self.count, 1e9 + self.count))
        hidden.rename(self.folder / hidden.name[1:])
        self.count += 1


class Written:
    """All bytes that files of a folder have had: each name and time of change counts once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: set[tuple[str, int]] = set()
        self.bytes = 0

    def look(self) -> int:
        """Look for files that were written since, and the bytes of all so far."""
        waiting = [os.fspath(self._folder)]
        while waiting:
            try:
                entries = list(os.scandir(waiting.pop()))
            except FileNotFoundError:
                continue
            for entry in entries:
                try:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                        continue
                    found = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                key = entry.path, found.st_mtime_ns
                if key not in self._seen:
                    self._seen.add(key)
                    self.bytes += found.st_size
        return self.bytes


@dataclass
class Stream:
    """A run over a feed, and what is written under its checkpoint."""

    feed: Feed
    started: Run
    written: Written

    def batch(self, *given: int, **how: int) -> float:
        """Seconds from a file's arrival to the end of its batch."""
        self.feed.put(*given, **how)
        begin = time.perf_counter()
        while self.started.progress().batches < self.feed.count:
            if self.started.await_termination(_NAP):
                break
        taken = time.perf_counter() - begin
        self.written.look()
        return taken


@contextmanager
def _streaming(running: Any, window: str) -> Iterator[Stream]:
    text = f"CREATE QUERY kept AS SELECT k, sum(v) AS total FROM s {window} GROUP BY k"
    with tempfile.TemporaryDirectory(prefix="muntin-bench-") as name:
        folder = Path(name)
        feed = Feed(folder / "in")
        reader = running.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        started = run(
            reader.parquet(str(feed.folder)),
            text,
            "ts",
            sink=parquet(folder / "out"),
            checkpoint=folder / "checkpoint",
            partitions=2,
            buckets=16,
        )
        try:
            yield Stream(feed, started, Written(folder / "checkpoint"))
        finally:
            started.stop()


def by_range(running: Any, scale: Kept, cached: bool) -> tuple[list[Section], list[Check]]:
    """Batches of one second, one slide each, with a short and with a long window."""
    about = "worker cache on" if cached else "worker cache off"
    step(f"{scale.groups:,} groups, ranges of {scale.ranges[0]} and {scale.ranges[1]} s, {about}")
    with worker_cache(cached):
        found = [_slides(running, scale, size) for size in scale.ranges]
    rows = [
        (
            f"{size:,} s",
            f"{sum(seconds) / len(seconds) * 1e3:,.0f}",
            f"{float(np.quantile(seconds, 0.99)) * 1e3:,.0f}",
            f"{written / len(seconds) / 1e3:,.0f}",
        )
        for size, (seconds, written) in zip(scale.ranges, found, strict=True)
    ]
    (short, few), (long, many) = found
    name = f"Spark, a window of {scale.ranges[1]:,} s against {scale.ranges[0]} s, {about}"
    checks = [
        Check(f"{name}: bytes written under the checkpoint", 1.3, many / few),
        Check.of(f"{name}: time of a batch", 1.5 if cached else 2.0, _means(long, short)),
    ]
    columns = ("range", "batch: mean, ms", "p99, ms", "kB written a batch")
    title = (
        f"Spark: {scale.groups:,} groups, slide 1 s, {scale.batches} batches of one second, {about}"
    )
    return [Section(title, columns, tuple(rows))], checks


def _slides(running: Any, scale: Kept, size: int) -> tuple[list[float], int]:
    with _streaming(running, f"[RANGE '{size} seconds' SLIDE '1 second']") as stream:
        # The first batch fills the window.
        stream.batch(scale.groups, size)
        for _ in range(scale.warm):
            stream.batch(scale.groups)
        before = stream.written.look()
        seconds = [stream.batch(scale.groups) for _ in range(scale.batches)]
        return seconds, stream.written.look() - before


@contextmanager
def worker_cache(cached: bool) -> Iterator[None]:
    """Leave the cache of workers as it is, or have them keep nothing between batches."""
    before = os.environ.get(CACHE)
    if not cached:
        os.environ[CACHE] = "0"
    try:
        yield
    finally:
        if before is not None:
            os.environ[CACHE] = before
        else:
            os.environ.pop(CACHE, None)


def by_groups(running: Any, scale: Kept) -> tuple[list[Section], list[Check]]:
    """Batches in which no window is due, with few and with many groups in state."""
    window = "[RANGE '1 day' SLIDE '1 day']"
    found: dict[int, list[float]] = {scale.few: [], scale.many: []}
    step(f"{scale.few:,} and {scale.many:,} groups in state")
    with _streaming(running, window) as few, _streaming(running, window) as many:
        sides = {scale.few: few, scale.many: many}
        for groups, stream in sides.items():
            stream.batch(groups)
            for _ in range(scale.warm):
                stream.batch(groups, rows=scale.rows)
        for turn in range(scale.turns):
            for groups in list(sides) if turn % 2 == 0 else list(sides)[::-1]:
                found[groups].append(sides[groups].batch(groups, rows=scale.rows))
        written = {groups: stream.written.look() for groups, stream in sides.items()}
    rows = tuple(
        (
            f"{groups:,}",
            f"{sum(seconds) / len(seconds) * 1e3:,.0f}",
            f"{max(seconds) * 1e3:,.0f}",
            f"{written[groups] / 1e6:,.1f}",
        )
        for groups, seconds in found.items()
    )
    title = f"Spark: batches of {scale.rows:,} rows in which no window is due"
    columns = ("groups in state", "batch: mean, ms", "slowest, ms", "MB written in all")
    promise = f"Spark, {scale.many:,} groups in state against {scale.few:,}: time of a batch"
    check = Check.of(promise, 2.0, _means(found[scale.many], found[scale.few]))
    return [Section(title, columns, rows)], [check]


def _means(over: list[float], under: list[float]) -> Ratio:
    """The ratio of the means; its range is that of the turns, in the order they were taken."""
    turns = [a / b for a, b in zip(over, under, strict=True)]
    return Ratio(sum(over) / sum(under), min(turns), max(turns))
