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
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from muntin import sinks
from muntin.api import files, run
from muntin.spark.environment.settings import PROVIDER, ROCKSDB
from muntin_bench.progress import step
from muntin_bench.report import Check, Section

Found = tuple[list[Section], list[Check]]
SCHEMA = "ts timestamp, k bigint, v bigint"
_SECOND = 1_000_000
_START = 1_700_000_000_000_000
_SPAN = 1000  # seconds that all rows lie in
_PATIENCE = 3600
# Turns that count, after so many in which the JVM compiles most of what both sides run.
_TURNS, _WARMING = 5, 3


@dataclass(frozen=True)
class StreamScale:
    """How much to measure: rows per stream, batches, and joins at once on either side.

    Spark's own are measured at two numbers of joins, and more are scaled from these.
    """

    rows: int = 2_000_000
    batches: int = 10
    joins: int = 64
    spark_joins: tuple[int, int] = (1, 4)


FULL = StreamScale()
QUICK = StreamScale(100_000, 4)


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
    """Seconds, and rows of results."""

    seconds: float
    results: int


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
        return Taken(seconds, sum(done.progress().results.values()))


Build = Callable[[dict[str, Any]], Any]


def theirs(session: Any, given: Files, *builds: Build, late: str = "0 seconds") -> Taken:
    """Queries of Spark's own over the files, all started at once, with RocksDB."""
    with _place() as folder:
        frames = {
            name: session.readStream.schema(SCHEMA)
            .option("maxFilesPerTrigger", 1)
            .parquet(str(given.root / name))
            .withWatermark("ts", late)
            .alias(name)
            for name in "ab"
        }
        begin = time.perf_counter()
        started = []
        for number, build in enumerate(builds):
            writer = build(frames).writeStream.format("parquet").outputMode("append")
            writer = writer.option("checkpointLocation", str(folder / f"checkpoint{number}"))
            started.append(writer.trigger(availableNow=True).start(str(folder / f"out{number}")))
        for query in started:
            query.awaitTermination()
        seconds = time.perf_counter() - begin
        found = [session.read.parquet(str(folder / f"out{n}")).count() for n in range(len(builds))]
        return Taken(seconds, sum(found))


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
    return frames["a"].dropDuplicatesWithinWatermark(["k"]).select("k")


class Streams:
    """The comparisons with Spark's own operators, each over files that are made for it.

    Args:
        session: Spark's.
        scale: How much to measure.
    """

    def __init__(self, session: Any, scale: StreamScale) -> None:
        self._session, self._scale = session, scale
        session.conf.set(PROVIDER, ROCKSDB)
        session.conf.set("spark.sql.shuffle.partitions", "2")
        # Kernels and the JVM are warm before anything is timed.
        with _place() as folder:
            warm = Files(folder / "warm", 4000, 2, 2000)
            step("streams, warming up")
            ours(warm, ONE.sql("q") + windows(2)[1].sql("r") + ABSENT + DISTINCT)
            theirs(session, warm, _pairs(ONE))

    def join(self) -> Found:
        """One join."""
        step("streams, one join")
        with self._files(self._scale.rows // 2) as given:
            one, other = ours(given, ONE.sql("q")), theirs(self._session, given, _pairs(ONE))
        assert one.results == other.results, (one.results, other.results)
        return self._compared("one join", one, other.seconds, 8)

    def joins(self) -> Found:
        """Joins with different windows and conditions over one key."""
        few, more = self._scale.spark_joins
        count = self._scale.joins
        several = windows(count)
        step(f"streams, {count} joins")
        with self._files(self._scale.rows // 2) as given:
            shared = ours(given, "".join(each.sql(f"q{n}") for n, each in enumerate(several)))
            # Those in the middle, whose conditions leave as much as the average does.
            first = count // 2 - more // 2
            chosen = several[first : first + more]
            step(f"streams, {few} and {more} joins by Spark")
            sides = [
                theirs(self._session, given, *map(_pairs, chosen[:number]))
                for number in (few, more)
            ]
            same = ours(given, "".join(each.sql(f"q{n}") for n, each in enumerate(chosen)))
        assert same.results == sides[1].results, (same.results, sides[1].results)
        each = (sides[1].seconds - sides[0].seconds) / (more - few)
        scaled = sides[0].seconds + (count - few) * each
        shown = " and ".join(f"{side.seconds:.0f} s" for side in sides)
        said = f" (scaled from {shown} at {few} and {more})"
        return self._compared(f"{count} joins", shared, scaled, 40, said)

    def absence(self) -> Found:
        """Rows without a partner in all their life."""
        step("streams, absence")
        with self._files(self._scale.rows // 2) as given:
            one, other = ours(given, ABSENT), theirs(self._session, given, _absent)
        return self._compared("an absence", one, other.seconds, 8)

    def distinct(self) -> Found:
        """Each value once for as long as it is there."""
        step("streams, distinct values")
        sides: tuple[list[Taken], list[Taken]] = ([], [])
        with self._files(min(100_000, self._scale.rows // 4)) as given:

            def own() -> None:
                sides[0].append(ours(given, DISTINCT, "a"))

            def other() -> None:
                sides[1].append(theirs(self._session, given, _firsts, late="100 seconds"))

            # A few seconds each, of which the JVM takes most to compile what it runs: in turn.
            for turn in range(_WARMING + _TURNS):
                for side in (own, other) if turn % 2 else (other, own):
                    side()
        one, their = (median(each.seconds for each in side[_WARMING:]) for side in sides)
        said = f" (medians of {_TURNS} turns)"
        return self._compared("distinct", Taken(one, sides[0][0].results), their, 3, said)

    @contextmanager
    def _files(self, keys: int) -> Iterator[Files]:
        with _place() as folder:
            yield Files(folder / "in", self._scale.rows, self._scale.batches, keys)

    def _compared(self, what: str, our: Taken, their: float, limit: float, said: str = "") -> Found:
        ratio = their / our.seconds
        shown = f"{our.seconds:.1f} s", f"{their:.1f} s{said}", f"{ratio:.1f}×"
        title = (
            f"{what}: streams of {self._scale.rows:,} rows, {self._scale.batches} batches, "
            "into Parquet"
        )
        columns = ("muntin", "Spark's own", "ratio", "our rows")
        section = Section(title, columns, ((*shown, f"{our.results:,}"),))
        check = Check(f"stream, {what}, times Spark's own", limit, ratio, least=True)
        return [section], [check]
