"""Two carriers of state on Spark: files that a small head names, and a map of named pieces.

Neither runs queries. Each bucket gets the pieces that a batch of a stream would write: what the
batch brought, and a base of what is known of each group once that is outweighed. Sealed slices are
written in the first batch and stay. A worker that does not have a bucket in its memory reads the
base and what came since; with the cache switched off, that is so in every batch.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Protocol

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from muntin.spark.streaming.buckets import Buckets
from muntin.spark.streaming.tasks.carrier import StateFolder, StateWriter, Whose
from muntin_bench.measure import Timing
from muntin_bench.progress import step
from muntin_bench.report import Section

BUCKETS = Buckets(2, 16)
# Bytes of a group in the base, and of one of its slices.
_GROUP, _ENTRY = 64, 48
# Groups that a batch has rows of, and the bytes of sealed slices, at most.
_TOUCHED, _SEALED = 20_000, 1 << 28
_PIECES = 32
_HEAD = "batch bigint, since bigint, based bigint"
_RUN = "bench"


@dataclass(frozen=True)
class Carried:
    """How much is kept: groups, and slices of each; for how many batches, of which some warm up."""

    sizes: tuple[tuple[int, int], ...]
    batches: int
    warm: int = 3


CARRIED_FULL = Carried(
    ((10, 10), (10, 1_000), (10_000, 10), (10_000, 1_000), (1_000_000, 10)), batches=15
)
CARRIED_QUICK = Carried(((10, 10), (1_000, 10)), batches=5, warm=2)


@dataclass(frozen=True)
class Sizes:
    """Bytes of the pieces of one bucket."""

    news: int
    base: int
    sealed: int

    @classmethod
    def of(cls, groups: int, slices: int) -> Sizes:
        """Those of a stream with so many groups, and so many slices in a window."""
        news = -(-min(groups, _TOUCHED) * _ENTRY // BUCKETS.count)
        base = -(-groups * _GROUP // BUCKETS.count)
        return cls(news, base, min(news * slices, _SEALED // BUCKETS.count))


class Pieces(Protocol):
    """Where a bucket's pieces lie."""

    def put(self, name: str, data: bytes) -> None:
        """Keep a piece."""

    def get(self, name: str) -> bytes | memoryview:
        """A piece that was put there."""

    def drop(self, name: str) -> None:
        """Forget a piece."""


@dataclass(frozen=True)
class Head:
    """What is known of a bucket: its last batch, its first news since the base, and the base's."""

    batch: int
    since: int
    based: int


def following(head: Head | None) -> int:
    """The number of the next batch, which every bucket takes part in."""
    return 0 if head is None else head.batch + 1


def move_on(pieces: Pieces, head: Head | None, sizes: Sizes, cached: bool) -> Head:
    """Read what a worker must read, and write what a batch adds."""
    batch = following(head)
    if head is None:
        for number in range(_PIECES):
            pieces.put(f"sealed {number}", bytes(sizes.sealed // _PIECES))
        pieces.put(f"base {batch}", bytes(sizes.base))
        return Head(batch, batch + 1, batch)
    if not cached:
        read = len(pieces.get(f"base {head.based}"))
        read += sum(len(pieces.get(f"news {each}")) for each in range(head.since, batch))
        assert read == sizes.base + (batch - head.since) * sizes.news
    if (batch - head.since) * sizes.news < sizes.base:
        pieces.put(f"news {batch}", bytes(sizes.news))
        return Head(batch, head.since, head.based)
    pieces.put(f"base {batch}", bytes(sizes.base))
    for each in range(head.since, batch):
        pieces.drop(f"news {each}")
    pieces.drop(f"base {head.based}")
    return Head(batch, batch + 1, batch)


@dataclass
class _Task:
    """The file that the buckets of one task write, and those that are done."""

    writer: StateWriter
    done: int = 0


_tasks: dict[tuple[int, int], _Task] = {}


@dataclass(frozen=True)
class Files:
    """`applyInPandasWithState` with a head per bucket, and one file per batch and partition."""

    folder: str
    sizes: Sizes
    cached: bool

    def query(self, frame: Any) -> Any:
        """The rows that it gives."""
        return frame.groupBy("key").applyInPandasWithState(
            self, "batch bigint", _HEAD, "append", "NoTimeout"
        )

    def __call__(
        self, key: tuple[Any], frames: Iterable[pd.DataFrame], stored: Any
    ) -> Iterator[pd.DataFrame]:
        """Move one bucket on."""
        bucket = BUCKETS.numbers[int(key[0])]
        partition = bucket % BUCKETS.partitions
        folder = StateFolder(self.folder, _RUN)
        head = Head(*stored.get) if stored.exists else None
        batch = following(head)
        task = _tasks.setdefault((batch, partition), _Task(StateWriter(folder, batch, partition)))
        pieces = _InFiles(folder, task.writer, partition, bucket, batch)
        head = move_on(pieces, head, self.sizes, self.cached)
        stored.update((head.batch, head.since, head.based))
        task.done += 1
        if task.done == BUCKETS.beside(bucket):
            task.writer.close()
            _tasks.clear()
        yield pd.DataFrame({"batch": [batch]})


@dataclass(frozen=True)
class _InFiles:
    folder: StateFolder
    writer: StateWriter
    partition: int
    bucket: int
    batch: int

    def put(self, name: str, data: bytes) -> None:
        self.writer.put(f"{self.bucket} {name}", data)

    def get(self, name: str) -> memoryview:
        batch = int(name.rpartition(" ")[2])
        whose = Whose(self.bucket, self.batch)
        return self.folder.get(batch, self.partition, f"{self.bucket} {name}", whose)

    def drop(self, name: str) -> None:
        """Nothing: the driver removes files that no head names."""


@dataclass(frozen=True)
class Map:
    """`transformWithStateInPandas` with a head per bucket, and its pieces in a map by name."""

    sizes: Sizes
    cached: bool

    def query(self, frame: Any) -> Any:
        """The rows that it gives."""
        from pyspark.sql.streaming.stateful_processor import (  # noqa: PLC0415  only with Spark
            StatefulProcessor,
        )

        sizes, cached = self.sizes, self.cached

        class Mover(StatefulProcessor):
            def init(self, handle: Any) -> None:
                self._head = handle.getValueState("head", _HEAD)
                self._pieces = _InMap(handle.getMapState("pieces", "name string", "data binary"))

            def handleInputRows(  # noqa: N802  Spark's name
                self,
                key: Any,
                rows: Any,
                timerValues: Any,  # noqa: N803
            ) -> Iterator[pd.DataFrame]:
                head = Head(*self._head.get()) if self._head.exists() else None
                head = move_on(self._pieces, head, sizes, cached)
                self._head.update((head.batch, head.since, head.based))
                yield pd.DataFrame({"batch": [head.batch]})

            def close(self) -> None:
                pass

        return frame.groupBy("key").transformWithStateInPandas(
            Mover(), "batch bigint", "append", "none"
        )


@dataclass(frozen=True)
class _InMap:
    state: Any

    def put(self, name: str, data: bytes) -> None:
        self.state.updateValue((name,), (data,))

    def get(self, name: str) -> bytes:
        (data,) = self.state.getValue((name,))
        return bytes(data)

    def drop(self, name: str) -> None:
        self.state.removeKey((name,))


def carriers_section(running: Any, carried: Carried) -> Section:
    """Seconds per batch by both carriers, with the worker's cache on and off."""
    rows, timed = [], []
    for (groups, slices), cached in product(carried.sizes, (True, False)):
        cache = "on" if cached else "off"
        label = f"{groups:,} groups, {slices:,} slices, cache {cache}"
        step(label)
        files, by_map = _sides(running, Sizes.of(groups, slices), cached, carried)
        ratio = by_map.median / files.median
        seconds = (f"{each.median:.3f}" for each in (files, by_map))
        rows.append((f"{groups:,}", f"{slices:,}", cache, *seconds, f"{ratio:.2f}×"))
        timed.append(tuple(replace(e, side=f"{label}: {e.side}") for e in (files, by_map)))
    title = "seconds per batch by carrier of state: files that a head names, or a map in Spark"
    columns = ("groups", "slices", "cache", "files, s", "map, s", "map against files")
    return Section(title, columns, tuple(rows), tuple(timed))


def _sides(running: Any, sizes: Sizes, cached: bool, carried: Carried) -> tuple[Timing, Timing]:
    with tempfile.TemporaryDirectory(prefix="muntin-bench-") as name:
        root = Path(name)
        files = _seconds(running, root, "files", Files(f"{root}/state", sizes, cached), carried)
        return files, _seconds(running, root, "map", Map(sizes, cached), carried)


def _seconds(running: Any, root: Path, side: str, carrier: Files | Map, carried: Carried) -> Timing:
    """Seconds of each batch that is measured."""
    folder = root / f"rows-{side}"
    folder.mkdir()
    for batch in range(carried.batches):
        table = pa.table({"key": pa.array(BUCKETS.keys, pa.int32())})
        pq.write_table(table, folder / f"{batch:04d}.parquet")
    source = running.readStream.schema("key int")
    frame = source.option("maxFilesPerTrigger", 1).parquet(str(folder))
    query = (
        carrier.query(frame)
        .writeStream.outputMode("append")
        .format("noop")
        .option("checkpointLocation", str(root / f"checkpoint-{side}"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    taken = [each.batchDuration / 1000 for each in query.recentProgress if each.numInputRows]
    return Timing(side, tuple(taken[carried.warm :]))
