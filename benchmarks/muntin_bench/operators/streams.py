"""Row queries over Spark streams, beside Spark's own stream-stream joins and deduplication.

Both sides read the same files, one per stream and batch, and write Parquet.
"""

from __future__ import annotations

import os
import shutil
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

from muntin import sinks
from muntin.api import files, run
from muntin.spark.environment.settings import PROVIDER, ROCKSDB
from muntin.spark.streaming.tasks.job import CACHE
from muntin_bench.progress import step
from muntin_bench.report import Check, Section

SCHEMA = "ts timestamp, k bigint, v bigint"
_SECOND = 1_000_000
_START = 1_700_000_000_000_000
_SPAN = 1000  # seconds that all rows lie in
_PATIENCE = 3600


@dataclass(frozen=True)
class StreamScale:
    """How much to measure: rows per stream, batches, and joins at once on either side."""

    rows: int = 2_000_000
    batches: int = 10
    joins: int = 64
    spark_joins: tuple[int, ...] = (1, 4)
    lengths: tuple[int, ...] = (1, 4)


FULL = StreamScale()
QUICK = StreamScale(200_000, 5, 64, (1,), (1, 4))


@dataclass(frozen=True)
class Window:
    """A join by windows of so many seconds of rows whose values are at least a bound."""

    left: int
    right: int
    least: int = 0

    def sql(self, name: str) -> str:
        """The join as Muntin's SQL."""
        return (
            f"CREATE QUERY {name} AS SELECT a.k, a.v, b.v AS w FROM a [RANGE '{self.left} s'] "
            f"JOIN b [RANGE '{self.right} s'] ON a.k = b.k WHERE a.v >= {self.least};"
        )

    def condition(self) -> str:
        """When rows of both are alive together, as Spark's join says it."""
        return (
            f"a.k = b.k AND b.ts < a.ts + INTERVAL {self.left} SECONDS "
            f"AND a.ts < b.ts + INTERVAL {self.right} SECONDS"
        )


ONE = Window(100, 100)
ABSENT = """CREATE QUERY absent AS SELECT a.k, a.v FROM a [RANGE '100 s']
  LEFT JOIN b [RANGE '100 s'] ON a.k = b.k EMIT UNMATCHED WHERE b.k IS NULL;"""
DISTINCT = "CREATE QUERY firsts AS SELECT DISTINCT k FROM a [RANGE '100 s'];"


def windows(count: int) -> list[Window]:
    """Joins that differ in both windows and in what they leave out."""
    return [Window(20 + 5 * (n % 16), 30 + 10 * (n % 7), 15 * (n % 64)) for n in range(count)]


class Files:
    """The files of two streams, made once for all sides."""

    def __init__(self, root: Path, rows: int, batches: int, keys: int) -> None:
        self.root = root
        for seed, name in enumerate("ab"):
            chance = np.random.default_rng(seed)
            times = np.sort(chance.integers(0, _SPAN * _SECOND, rows)) + _START
            table = pa.table(
                {
                    "ts": pa.array(times).cast(pa.timestamp("us", "UTC")),
                    "k": chance.integers(0, keys, rows),
                    "v": chance.integers(0, 1000, rows),
                }
            )
            (root / name).mkdir(parents=True)
            size = -(-rows // batches)
            for number in range(batches):
                path = root / name / f"{number:05d}.parquet"
                part = table.slice(number * size, size)
                pq.write_table(part, path, row_group_size=max(size // 4, 1))
                os.utime(path, (1e9 + number, 1e9 + number))


@dataclass(frozen=True)
class Taken:
    """Seconds, rows of results, and the bytes that were written to hold state."""

    seconds: float
    results: int
    written: int = 0


@contextmanager
def _place() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="muntin-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def ours(given: Files, text: str, streams: str = "ab") -> Taken:
    """Muntin over the files, all of its queries in one Spark query."""
    with _place() as folder:
        frames = {
            name: files(given.root / name, schema=SCHEMA, maxFilesPerTrigger=1) for name in streams
        }
        begin = time.perf_counter()
        done = run(
            frames,
            text,
            "ts",
            sink=sinks.parquet(folder / "out"),
            checkpoint=folder / "checkpoint",
            trigger="available_now",
            partitions=2,
            buckets=2,
        )
        assert done.await_termination(_PATIENCE)
        seconds = time.perf_counter() - begin
        written = sum(path.stat().st_size for path in (folder / "checkpoint" / "state").iterdir())
        return Taken(seconds, sum(done.progress().results.values()), written)


def theirs(session: Any, given: Files, build: Callable[[dict[str, Any]], Any]) -> Taken:
    """A query of Spark's own over the files, with RocksDB."""
    with _place() as folder:
        frames = {
            name: session.readStream.schema(SCHEMA)
            .option("maxFilesPerTrigger", 1)
            .parquet(str(given.root / name))
            .withWatermark("ts", "0 seconds")
            .alias(name)
            for name in "ab"
        }
        begin = time.perf_counter()
        writer = build(frames).writeStream.format("parquet").outputMode("append")
        writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
        query = writer.trigger(availableNow=True).start(str(folder / "out"))
        query.awaitTermination()
        seconds = time.perf_counter() - begin
        return Taken(seconds, session.read.parquet(str(folder / "out")).count())


def _join(frames: dict[str, Any], window: Window, how: str = "inner") -> Any:
    from pyspark.sql.functions import expr  # noqa: PLC0415  imported when it is used

    left = frames["a"].where(f"v >= {window.least}") if window.least else frames["a"]
    return left.join(frames["b"], expr(window.condition()), how)


def _pairs(window: Window) -> Callable[[dict[str, Any]], Any]:
    return lambda frames: _join(frames, window).selectExpr("a.k", "a.v", "b.v AS w")


def _absent(frames: dict[str, Any]) -> Any:
    joined = _join(frames, ONE, "left_outer").where("b.k IS NULL")
    return joined.selectExpr("a.k", "a.v")


def _firsts(frames: dict[str, Any]) -> Any:
    spaced = frames["a"].withWatermark("ts", "100 seconds")
    return spaced.dropDuplicatesWithinWatermark(["k"]).select("k")


def stream_sections(session: Any, scale: StreamScale) -> tuple[list[Section], list[Check]]:
    """All comparisons with Spark's own operators, and what a longer window costs."""
    session.conf.set(PROVIDER, ROCKSDB)
    session.conf.set("spark.sql.shuffle.partitions", "2")
    with _place() as folder:
        given = Files(folder / "join", scale.rows, scale.batches, scale.rows // 2)
        few = Files(folder / "distinct", scale.rows, scale.batches, min(100_000, scale.rows // 4))
        # Kernels and the JVM are warm before anything is timed.
        warm = Files(folder / "warm", 4000, 2, 2000)
        step("streams, warming up")
        ours(warm, ONE.sql("q") + ABSENT + DISTINCT)
        theirs(session, warm, _pairs(ONE))
        compared, checks = _compared(session, scale, given, few)
        step("streams, by the length of the window")
        return [compared, _lengths(scale, given)], checks


def _compared(
    session: Any, scale: StreamScale, given: Files, few: Files
) -> tuple[Section, list[Check]]:
    rows: list[tuple[str, ...]] = []
    checks: list[Check] = []

    def compare(what: str, our: Taken, their: float, limit: float, said: str = "") -> None:
        ratio = their / our.seconds
        shown = f"{our.seconds:.1f} s", f"{their:.1f} s{said}", f"{ratio:.1f}×"
        rows.append((what, *shown, f"{our.results:,}"))
        checks.append(Check(f"stream, {what}, times Spark's own", limit, ratio, least=True))

    step("streams, one join")
    one, other = ours(given, ONE.sql("q")), theirs(session, given, _pairs(ONE))
    assert one.results == other.results, (one.results, other.results)
    compare("one join", one, other.seconds, 8)
    step(f"streams, {scale.joins} joins")
    several = windows(scale.joins)
    shared = ours(given, "".join(each.sql(f"q{n}") for n, each in enumerate(several)))
    measured = several[:: max(scale.joins // scale.spark_joins[-1], 1)][: scale.spark_joins[-1]]
    taken = [theirs(session, given, _pairs(each)).seconds for each in measured]
    scaled = sum(taken) / len(taken) * scale.joins
    said = f" (scaled from {len(taken)})"
    compare(f"{scale.joins} joins", shared, scaled, 40, said)
    step("streams, absence")
    compare("an absence", ours(given, ABSENT), theirs(session, given, _absent).seconds, 8)
    step("streams, distinct values")
    compare("distinct", ours(few, DISTINCT, "a"), theirs(session, few, _firsts).seconds, 3)
    title = f"streams of {scale.rows:,} rows, {scale.batches} batches, into Parquet"
    columns = ("query", "muntin", "Spark's own", "ratio", "our rows")
    return Section(title, columns, tuple(rows)), checks


def _lengths(scale: StreamScale, given: Files) -> Section:
    """One join by the length of its window; keys are so many that results stay few."""
    rows = []
    kept = os.environ.get(CACHE)
    try:
        for cache in ("256", "0"):
            os.environ[CACHE] = cache
            for times in scale.lengths:
                taken = ours(given, Window(50 * times, 50 * times).sql("q"))
                worker = "in memory" if cache != "0" else "read anew"
                seconds = f"{taken.seconds / scale.batches:.2f} s"
                size = f"{taken.written / 1e6 / scale.batches:.1f} MB"
                rows.append((f"{50 * times} s", worker, seconds, size, f"{taken.results:,}"))
    finally:
        os.environ.pop(CACHE, None)
        if kept is not None:
            os.environ[CACHE] = kept
    title = "one join by the length of its window, and where workers find the rows they keep"
    return Section(title, ("window", "rows", "batch", "state written per batch", "results"),
                   tuple(rows))  # fmt: skip
