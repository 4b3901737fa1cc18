"""What tasks report of a batch: map tasks to buckets, buckets to the driver, which sums it up."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from muntin.counts import Counts
from muntin.operators.hot_keys import Key
from muntin.spark.streaming.checkpoint.asks import KeptFile
from muntin.spark.streaming.checkpoint.records import StreamOutcome, StreamRecord

REPORT_SCHEMA = "report binary"
# Before every tick: the heartbeat of a task that saw no time.
NO_TIME = -(2**62)


@dataclass
class MapReport:
    """What map tasks saw of their rows.

    Attributes:
        latest: The largest event time.
        counts: Rows, failed values, and updates of partials.
        aside: What a sink's writer says about rows set aside.
        kept: The files that hold what is kept to be asked, each with its keep.
        hot: By feed, how many rows were looked at, and their keys.
    """

    latest: int = NO_TIME
    counts: Counts = field(default_factory=Counts)
    aside: list[object] = field(default_factory=list)
    kept: list[tuple[str, KeptFile]] = field(default_factory=list)
    hot: dict[str, tuple[int, Counter[Key]]] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """The report as bytes."""
        return pickle.dumps(self, protocol=5)

    def add_bytes(self, data: bytes) -> None:
        """Add a report that `to_bytes` wrote."""
        other: MapReport = pickle.loads(data)
        self.latest = max(self.latest, other.latest)
        self.counts += other.counts
        self.aside += other.aside
        self.kept += other.kept
        for name, (rows, counts) in other.hot.items():
            known = self.hot.get(name, (0, Counter()))
            self.hot[name] = known[0] + rows, known[1] + counts


@dataclass
class BucketReport:
    """One bucket's part of a batch.

    Attributes:
        bucket: Its number.
        latest: The largest event time of its stream's rows.
        counts: What the map tasks counted for it, and what answering added.
        results: Rows of results by query.
        state_bytes: Bytes of its state.
        found: What the state before the batch is known by; empty where there was none.
        token: What the state after the batch is known by.
        covers: How many buckets' results are in ``written``: a task writes those of all its
            buckets together.
        written: The sink's entries for these results.
        aside: The sink's entries for rows that were late or bad.
        files: The batches whose files hold the state after the batch.
        kept: The files of what is kept to be asked, each with its keep.
        shares: Those of aggregates over joins that are merged with other buckets', as bytes by
            query.
        spread: Those of queries without groups whose values are spread over buckets, as bytes by
            family.
        gaps: Where the windows without rows begin that are still to be shown, by query.
        hot: By feed, how many rows were looked at, and their keys.
        since: By query over rows, the first instant that it answers wholly, where queries have
            joined with this batch.
    """

    bucket: int
    latest: int
    counts: Counts = field(default_factory=Counts)
    results: dict[str, int] = field(default_factory=dict)
    state_bytes: int = 0
    found: str = ""
    token: str = ""
    covers: int = 0
    written: Sequence[object] = ()
    aside: Sequence[object] = ()
    files: Sequence[int] = ()
    kept: Sequence[Any] = ()
    shares: dict[str, bytes] = field(default_factory=dict)
    spread: dict[int, bytes] = field(default_factory=dict)
    gaps: dict[str, int] = field(default_factory=dict)
    hot: dict[str, tuple[int, Counter[Key]]] = field(default_factory=dict)
    since: dict[str, int | None] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """The report as bytes."""
        return pickle.dumps(self, protocol=5)

    @classmethod
    def of_bytes(cls, data: bytes) -> BucketReport:
        """The report that `to_bytes` wrote."""
        report: BucketReport = pickle.loads(data)
        return report


def packed_share(table: pa.Table) -> bytes:
    """A share as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def unpacked_share(data: bytes) -> pa.Table:
    """The share that `packed_share` wrote."""
    return pa.ipc.open_stream(pa.py_buffer(data)).read_all()


@dataclass(frozen=True)
class BatchReport:
    """The reports of a batch's buckets together."""

    buckets: Sequence[BucketReport] = ()

    def __bool__(self) -> bool:
        return bool(self.buckets)

    def __iter__(self) -> Iterator[BucketReport]:
        return iter(self.buckets)

    @property
    def counts(self) -> Counts:
        """What all of them counted."""
        return sum((report.counts for report in self.buckets), Counts())

    @property
    def written(self) -> list[Any]:
        """The sink's entries for results."""
        return [entry for report in self.buckets for entry in report.written]

    @property
    def aside(self) -> list[Any]:
        """The sink's entries for rows set aside."""
        return [entry for report in self.buckets for entry in report.aside]

    @property
    def kept(self) -> list[Any]:
        """The files of what is kept to be asked."""
        return [entry for report in self.buckets for entry in report.kept]

    @property
    def found(self) -> dict[int, str]:
        """What the state before the batch is known by, for each bucket."""
        return {report.bucket: report.found for report in self.buckets}

    @property
    def tokens(self) -> list[str]:
        """What the state after the batch is known by, in the order of buckets."""
        return [report.token for report in sorted(self.buckets, key=lambda each: each.bucket)]

    @property
    def since(self) -> dict[str, int | None]:
        """The first instant that each query over rows answers wholly; empty where none joined."""
        return next((report.since for report in self.buckets if report.since), {})

    def covers(self, total: int) -> bool:
        """Whether each of so many buckets reported once, and had its results written."""
        numbers = {report.bucket for report in self.buckets}
        return len(numbers) == len(self.buckets) == self.covered == total

    @property
    def covered(self) -> int:
        """How many buckets had their results written."""
        return sum(report.covers for report in self.buckets)

    def files(self, partitions: int) -> list[list[int]]:
        """The batches whose files hold the state, by partition."""
        found: list[set[int]] = [set() for _ in range(partitions)]
        for report in self.buckets:
            found[report.bucket % partitions] |= set(report.files)
        return [sorted(each) for each in found]

    def of_buckets(self, numbers: range) -> BatchReport:
        """Those of some buckets."""
        return BatchReport([report for report in self.buckets if report.bucket in numbers])

    def stream(self, record: StreamRecord, before: StreamOutcome, clock: int) -> StreamOutcome:
        """A stream after the batch, if these are the reports of its buckets.

        Args:
            record: What the batch does with the stream.
            before: The stream before the batch.
            clock: The driver's clock, in microseconds.
        """
        latest = max((report.latest for report in self.buckets), default=NO_TIME)
        seen = max(latest, NO_TIME if record.seen is None else record.seen)
        reached = record.watermark
        if self.buckets:
            # Without any, no bucket has answered a window.
            reached = record.reached(latest if latest > NO_TIME else None)
        counts, recent = self.counts, before.recent
        if record.seen is not None:
            recent = recent.after(counts.rows, seen - record.seen)
        return StreamOutcome(
            state=record.plan if self.buckets else record.before,
            seen=seen if seen > NO_TIME else None,
            watermark=reached,
            heard=clock if latest > NO_TIME or before.heard is None else before.heard,
            rows=before.rows + counts.rows,
            late_rows=before.late_rows + counts.late_rows,
            bad_rows=before.bad_rows + counts.bad_rows,
            recent_rows=recent.rows,
            recent_ticks=recent.ticks,
        )
