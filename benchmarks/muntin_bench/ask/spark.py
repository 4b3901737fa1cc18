"""A keep beside running queries on Spark, and questions while batches wait."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from muntin.api import run
from muntin.sinks import parquet
from muntin.spark.streaming.driver.handle import Run
from muntin_bench.ask.workload import (
    KEEP,
    PER_SECOND,
    QUERIES,
    Asked,
    asking,
    data_of,
    latency,
    percentile,
    queries,
    warmed,
)
from muntin_bench.measure import Timing
from muntin_bench.progress import step
from muntin_bench.report import Check, Section

SCHEMA = "ts timestamp, symbol string, price double, vol bigint"
_NAP = 0.01


@dataclass(frozen=True)
class SparkScale:
    """How much to measure: batches of so many rows, so many in a turn."""

    batch: int
    warm: int
    turn: int
    repeats: int

    @property
    def batches(self) -> int:
        """All batches of a stream: of the turns with a keep, and of those with questions."""
        return self.warm + self.turn * self.repeats * 3


SPARK_FULL = SparkScale(batch=100_000, warm=11, turn=5, repeats=5)
SPARK_QUICK = SparkScale(batch=5_000, warm=2, turn=2, repeats=1)


class _Side:
    """A run over a folder that gets the same files as the other's."""

    def __init__(self, folder: Path, session: Any, data: pa.Table, batch: int, keep: bool) -> None:
        self._data, self._batch = data, batch
        self._folder = folder / "in"
        self._folder.mkdir(parents=True)
        self.count = 0
        reader = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        self.run: Run = run(
            reader.parquet(str(self._folder)),
            queries(),
            "ts",
            sink=parquet(folder / "out"),
            checkpoint=folder / "checkpoint",
            lateness="1 second",
            partitions=2,
            buckets=16,
            max_ahead=None,
            keeps=KEEP if keep else None,
        )

    def turn(self, batches: int) -> float:
        """Seconds for so many batches that wait from the start."""
        for _ in range(batches):
            self._put()
        begin = time.perf_counter()
        while self.run.progress().batches < self.count:
            if self.run.await_termination(_NAP):
                break
        return time.perf_counter() - begin

    def _put(self) -> None:
        rows = self._data.slice(self.count * self._batch, self._batch)
        hidden = self._folder / f".{self.count:06d}.parquet"
        pq.write_table(rows, hidden, row_group_size=max(rows.num_rows // 4, 1))
        # Spark takes files in the order of their times.
        os.utime(hidden, (1e9 + self.count, 1e9 + self.count))
        hidden.rename(self._folder / hidden.name[1:])
        self.count += 1


@contextmanager
def _sides(session: Any, data: pa.Table, scale: SparkScale) -> Iterator[tuple[_Side, _Side]]:
    with tempfile.TemporaryDirectory(prefix="muntin-bench-") as name:
        sides = [
            _Side(Path(name) / str(keep), session, data, scale.batch, keep)
            for keep in (False, True)
        ]
        try:
            yield sides[0], sides[1]
        finally:
            for side in sides:
                side.run.stop()


def spark_sections(session: Any, scale: SparkScale) -> tuple[list[Section], list[Check]]:
    """All that is measured on Spark: turns of two streams, then turns with questions."""
    data = data_of(scale.batch * scale.batches)
    symbols = data["symbol"].unique().to_pylist()
    with _sides(session, data, scale) as (plain, keeping):
        step("Spark: the first batches")
        for side in (plain, keeping):
            side.turn(scale.warm)
        times: dict[bool, list[float]] = {False: [], True: []}
        for number in range(scale.repeats):
            step(f"Spark: a keep beside {QUERIES} queries, {number + 1} of {scale.repeats}")
            for keeps in (False, True) if number % 2 else (True, False):
                times[keeps].append((keeping if keeps else plain).turn(scale.turn))
        asked, found = _questions(keeping, symbols, scale)
        entries = keeping.run.explain_keeps().rpartition("\n")[2].strip()
    without = Timing("without a keep", tuple(times[False]))
    within = Timing("with a keep", tuple(times[True]))
    alone = Timing("no questions", tuple(asked[False]))
    beside = Timing(f"{PER_SECOND} questions per second", tuple(asked[True]))
    kept_ratio, asked_ratio = within.over(without), beside.over(alone)
    rows = [(each.side, each.milliseconds) for each in (without, within)]
    rows += [("ratio (range)", str(kept_ratio)), ("kept at the end", entries)]
    title = f"Spark: {scale.turn} batches of {scale.batch:,} rows, {QUERIES} queries"
    shown = [(each.side, each.milliseconds) for each in (alone, beside)]
    shown += [("ratio (range)", str(asked_ratio)), *latency("beside batches", found)]
    sections = [
        Section(title, ("side", "ms (range)"), tuple(rows), ((without, within),)),
        Section("Spark: questions while batches wait", ("what", "ms"), tuple(shown)),
    ]
    checks = [
        Check.of("a keep slows a Spark stream", 1.25, kept_ratio),
        Check.of(f"{PER_SECOND} questions per second slow a Spark stream", 1.05, asked_ratio),
        Check("p99 of all questions beside a Spark stream", 50, percentile(found.all, 99), " ms"),
    ]
    return sections, checks


def _questions(
    side: _Side, symbols: Sequence[str], scale: SparkScale
) -> tuple[dict[bool, list[float]], Asked]:
    found = Asked()
    times: dict[bool, list[float]] = {False: [], True: []}
    warmed(side.run.ask, symbols)
    for number in range(scale.repeats):
        step(f"Spark: {PER_SECOND} questions per second, {number + 1} of {scale.repeats}")
        for asks in (False, True) if number % 2 else (True, False):
            if not asks:
                times[False].append(side.turn(scale.turn))
                continue
            with asking(side.run.ask, symbols) as asked:
                times[True].append(side.turn(scale.turn))
            found += asked
    return times, found
