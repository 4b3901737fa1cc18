"""Streams on Spark: rows per second, batch times by groups, queries that join, small batches."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from muntin.api import files, run
from muntin.sinks import parquet
from muntin.spark.streaming.driver.handle import Run
from muntin_bench.measure import Timing
from muntin_bench.progress import step
from muntin_bench.report import Check, Section
from muntin_bench.sharing.workloads import workload
from muntin_bench.spark.state import state_section

SCHEMA = (
    "ts timestamp, symbol bigint, price double, vol bigint, cp double, "
    "r1000 boolean, r2000 boolean, r3000 boolean"
)
BY_SYMBOL = """CREATE QUERY by_symbol AS SELECT symbol, sum(price * vol) AS value
  FROM trades [RANGE '10 minutes' SLIDE '5 minutes'] GROUP BY symbol"""
JOINING = """CREATE QUERY joining_{0} AS SELECT max(vol) AS largest
  FROM trades [RANGE '{0} minutes' SLIDE '1 minute'] WHERE vol > 10"""
_START = 1_700_000_000_000_000
_SECOND = 1_000_000
_WARM = 3
_NAP = 0.002


@dataclass(frozen=True)
class StreamScale:
    """How much to measure."""

    queries: int = 256
    rows: int = 1_000_000
    batches: int = 8
    groups: tuple[int, ...] = (10, 10_000, 1_000_000)
    small: int = 30
    joins: int = 5


STREAM_FULL = StreamScale()
STREAM_QUICK = StreamScale(256, 200_000, 4, (10, 10_000, 100_000), 10, 3)


def streaming_sections(
    session: Any, scale: StreamScale = STREAM_FULL
) -> tuple[list[Section], list[Check]]:
    """All tables of the streaming side, and the promise about small batches."""
    step("stream, batches of one row")
    small, check = _small_batches(session, scale)
    step("stream, batches that wait")
    sustained = _sustained(session, scale)
    step("stream, by number of groups")
    grouped = _by_groups(session, scale)
    step("stream, queries that join")
    joining = _joining(session, scale)
    step("stream, stateful operators alone")
    state = state_section(session, scale.groups, max(scale.batches, 4))
    return [sustained, grouped, joining, small, state], [check]


class Feed:
    """A folder that files of trades are put into, one batch each."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder, 0
        folder.mkdir()

    def put(self, rows: int, groups: int = 100, seconds: int = 20) -> None:
        """Add trades of the next so many seconds."""
        random = np.random.default_rng(self.count)
        first = _START + self.count * seconds * _SECOND
        ticks = np.sort(random.integers(first, first + seconds * _SECOND, rows))
        symbols = random.integers(0, groups, rows)
        table = {
            "ts": pa.array(ticks).cast(pa.timestamp("us", "UTC")),
            "symbol": np.arange(rows) % groups if rows == groups else symbols,
            "price": np.round(random.uniform(10, 500, rows), 2),
            "vol": np.round(10 ** random.uniform(1, 5, rows)).astype(np.int64),
            "cp": np.round(random.uniform(10, 500, rows), 2),
            **{name: random.random(rows) < 0.5 for name in ("r1000", "r2000", "r3000")},
        }
        hidden = self.folder / f".{self.count:06d}.parquet"
        pq.write_table(pa.table(table), hidden, row_group_size=max(rows // 4, 1))
        # Spark takes files in the order of their times.
        os.utime(hidden, (1e9 + self.count, 1e9 + self.count))
        hidden.rename(self.folder / hidden.name[1:])
        self.count += 1

    def frame(self, session: Any) -> Any:
        """The stream, a file per batch."""
        reader = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.folder))


@contextmanager
def _running(stream: Callable[[Feed], Any], text: str) -> Iterator[tuple[Feed, Run]]:
    with tempfile.TemporaryDirectory(prefix="muntin-bench-") as name:
        folder = Path(name)
        feed = Feed(folder / "in")
        feed.put(1)
        started = run(
            stream(feed),
            text,
            "ts",
            sink=parquet(folder / "out"),
            checkpoint=folder / "checkpoint",
            partitions=2,
            buckets=16,
        )
        try:
            yield feed, started
        finally:
            started.stop()


def _wait(started: Run, batches: int) -> None:
    while started.progress().batches < batches:
        if started.await_termination(_NAP):
            return


def _step(feed: Feed, started: Run, rows: int, **how: int) -> float:
    """Seconds from a file's arrival to the end of its batch."""
    feed.put(rows, **how)
    begin = time.perf_counter()
    _wait(started, feed.count)
    return time.perf_counter() - begin


def _sustained(session: Any, scale: StreamScale) -> Section:
    text = workload("C regular", scale.queries).sql(joined=False)
    ways: dict[str, Callable[[Feed], Any]] = {
        "through the JVM": lambda feed: feed.frame(session),
        "muntin.files": lambda feed: files(feed.folder, schema=SCHEMA, maxFilesPerTrigger=1),
    }
    rows = []
    for way, stream in ways.items():
        with _running(stream, text) as (feed, started):
            for _ in range(_WARM):
                _step(feed, started, scale.rows)
            for _ in range(scale.batches):
                feed.put(scale.rows)
            begin = time.perf_counter()
            before = started.progress().rows
            _wait(started, feed.count)
            seconds = time.perf_counter() - begin
            done = started.progress().rows - before
        rows.append((way, f"{done / seconds:,.0f}", f"{seconds / scale.batches:.2f} s"))
    title = f"stream, {scale.queries} queries, batches of {scale.rows:,} rows that wait"
    return Section(title, ("way", "rows per second", "batch"), tuple(rows))


def _by_groups(session: Any, scale: StreamScale) -> Section:
    found = []
    for groups in scale.groups:
        with _running(lambda feed: feed.frame(session), BY_SYMBOL) as (feed, started):
            # Every group has state before the clock starts.
            _step(feed, started, groups, groups=groups)
            _step(feed, started, scale.rows // 10, groups=groups)
            times = [
                _step(feed, started, scale.rows // 10, groups=groups)
                for _ in range(max(scale.batches // 2, 1))
            ]
            size = started.progress().state_bytes
        shown = Timing("batch", tuple(times)).milliseconds
        found.append((f"{groups:,}", shown, f"{size / 1e6:,.1f} MB"))
    title = f"stream, one grouped query, batches of {scale.rows // 10:,} rows"
    return Section(title, ("groups", "batch, ms (range)", "state"), tuple(found))


def _joining(session: Any, scale: StreamScale) -> Section:
    text = workload("A", scale.queries).sql(joined=False)
    times: list[tuple[float, float]] = []
    with _running(lambda feed: feed.frame(session), text) as (feed, started):
        _step(feed, started, 1000)
        for number in range(1, scale.joins + 1):
            begin = time.perf_counter()
            started.add(JOINING.format(number))
            durable = time.perf_counter() - begin
            _step(feed, started, 1000)
            times.append((durable, time.perf_counter() - begin))
    until = ("add returns: the change is durable", "the first batch with it has ended")
    rows = tuple(
        (what, Timing(what, seconds).milliseconds)
        for what, seconds in zip(until, zip(*times, strict=True), strict=True)
    )
    title = f"stream, a query joins {scale.queries} others (median of {scale.joins})"
    return Section(title, ("until", "ms (range)"), rows)


def _small_batches(session: Any, scale: StreamScale) -> tuple[Section, Check]:
    """One-row batches in turn: all queries, and Spark's foreachBatch with a noop sink."""
    text = workload("C regular", scale.queries).sql(joined=False)
    with _running(lambda feed: feed.frame(session), text) as (feed, started):
        other = Feed(feed.folder.parent / "plain")
        done = [0]

        def noop(frame: Any, batch: int) -> None:
            frame.write.format("noop").mode("overwrite").save()
            done[0] = batch + 1

        place = str(feed.folder.parent / "plain-checkpoint")
        writer = other.frame(session).writeStream.foreachBatch(noop)
        plain = writer.option("checkpointLocation", place).start()

        def plain_step() -> None:
            other.put(1)
            while done[0] < other.count:
                time.sleep(_NAP)

        ours: list[float] = []
        theirs: list[float] = []
        for number in range(scale.small + _WARM * 3):
            sides: list[Callable[[], Any]] = [lambda: _step(feed, started, 1), plain_step]
            for side in sides if number % 2 else sides[::-1]:
                side()
            if number >= _WARM * 3:
                ours.append(_batch_seconds(started._driver.query, feed.count))  # noqa: SLF001
                theirs.append(_batch_seconds(plain, other.count))
        plain.stop()
    plain_side = Timing("plain foreachBatch, noop sink", tuple(theirs))
    our_side = Timing(f"{scale.queries} queries, exactly once to Parquet", tuple(ours))
    timed = (plain_side, our_side)
    rows = tuple((each.side, each.milliseconds, str(each.over(plain_side))) for each in timed)
    title = f"stream, batches of one row, 2 partitions, 16 buckets (median of {scale.small})"
    promise = f"{scale.queries} queries, a batch of one row against a plain foreachBatch"
    section = Section(title, ("side", "batch, ms (range)", "ratio (range)"), rows, (timed,))
    return section, Check.of(promise, 3.0, our_side.over(plain_side))


def _batch_seconds(query: Any, batches: int) -> float:
    """What Spark says a batch took, from its start to its commit."""
    while True:
        last = query.lastProgress
        if last is not None and last.batchId >= batches - 1 and last.numInputRows:
            return int(last.durationMs["triggerExecution"]) / 1e3
        time.sleep(_NAP)
