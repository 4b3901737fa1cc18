"""Stage A in Spark's map tasks: rows come in, a few rows of partials and heartbeats go out."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from muntin.counts import Counts
from muntin.engine.rows.batches import gathered
from muntin.engine.slices.partials import PartialBatch, merge
from muntin.engine.wire import split, to_bytes
from muntin.operators.feeds import FeedSplitter
from muntin.operators.hot_keys import KeySample
from muntin.operators.splits import SplitKey, lanes_of
from muntin.plan import SharedPlan
from muntin.plan.routes import Feed
from muntin.sinks import Writer
from muntin.spark.streaming.buckets import Buckets
from muntin.spark.streaming.checkpoint.asks import FOLDER, KeepRecord, write_kept
from muntin.spark.streaming.reports import NO_TIME, MapReport
from muntin.spark.streaming.tasks.job import Job, current_job, end_task, task_context
from muntin.spark.streaming.tasks.rows import AsideNames, sort_out

# A heartbeat goes to every bucket; its counts go to the first one of its stream only. To buckets
# that no stream owns go parcels, and the times of all streams. What a task sends to a bucket may be
# cut into parts, a row each; the first one has the time and the counts.
_NAMED = {
    "bucket": "int",
    "stream": "int",
    "task": "int",
    "part": "int",
    "partials": "binary",
    "latest": "bigint",
    "counts": "binary",
}
SCHEMA = ", ".join(f"{name} {kind}" for name, kind in _NAMED.items())
_ARROW = {"int": pa.int32(), "bigint": pa.int64(), "binary": pa.binary()}
_TYPES = [_ARROW[kind] for kind in _NAMED.values()]
# Rows of more bytes are cut. The JVM copies each a few times, into room for twice as much, and
# where that is half a megabyte or more, its collector, G1, marks the whole heap again and again.
LONGEST = 1 << 17
# Spark hands rows over in small batches; stage A has a cost of its own for each.
_CHUNK = 1 << 18

_NAMES = AsideNames()

Batches = Iterator[pa.RecordBatch]
Reader = Callable[[Batches], Iterable[pa.Table]]


@dataclass(frozen=True)
class Parcel:
    """What one task of a stream sends to a bucket that no stream owns: packets by their names."""

    stream: int
    task: int
    packets: dict[str, bytes]

    def to_bytes(self) -> bytes:
        """The parcel as bytes."""
        return pickle.dumps(self, protocol=5)

    @classmethod
    def of_bytes(cls, data: bytes) -> Parcel:
        """The parcel that `to_bytes` wrote."""
        parcel: Parcel = pickle.loads(data)
        return parcel


@dataclass(frozen=True)
class MapStage:
    """The function of a stream's ``mapInArrow``: one task's rows to partials, split by bucket.

    ``read`` turns what Spark hands over into rows; they are the rows unless said otherwise.
    ``aside`` writes the rows that are late or bad, under ``names``; they are only counted unless
    said otherwise. ``stream`` is the number of the stream.
    """

    buckets: Buckets
    read: Reader | None = None
    aside: Writer[Any] | None = None
    names: AsideNames = _NAMES
    stream: int = 0

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Take in a task's rows; at the end, one row for each bucket."""
        names = None if self.aside is None else self.names
        task = _Task(current_job(), self.stream, names, self.buckets)
        rows = (pa.Table.from_batches([batch]) for batch in batches)
        given = rows if self.read is None else self.read(batches)
        taken = [task.take(chunk) for chunk in gathered(given, _CHUNK)]
        if self.aside is not None and task.kept:
            attempt = f"a{task_context().taskAttemptId()}"
            united = {name: pa.concat_tables(parts) for name, parts in task.kept.items()}
            task.report.aside = self.aside.write(task.job.record.batch, attempt, united)
        task.write_kept()
        task.count_keys()
        yield self._emit(task, _united(task.plan, taken))
        end_task()

    def _emit(self, task: _Task, partials: list[PartialBatch]) -> pa.RecordBatch:
        """A row for each bucket: those of other streams must be called too, and are told no time.

        An other stream may have no row in this batch, and windows that are due all the same.
        """
        buckets, report = task.job.buckets(self.buckets), task.report
        own = buckets.of_stream(self.stream)
        found = split(task.plan, partials, buckets.count) if partials else {}
        blobs: list[bytes | None] = [None] * buckets.total
        for number, each in found.items():
            blobs[own[number]] = to_bytes(each)
        for number, packets in task.packets().items():
            parcel = Parcel(self.stream, task_context().partitionId(), packets)
            blobs[buckets.shared[number]] = parcel.to_bytes()
        counted = report.to_bytes()
        rows = []
        for number, (key, blob) in enumerate(zip(buckets.keys, blobs, strict=True)):
            told = number in own or number in buckets.shared
            latest = report.latest if told else NO_TIME
            counts = counted if number == own.start else None
            for part, data in enumerate(cut(blob)):
                place = key, self.stream, task_context().partitionId(), part
                rows.append((*place, data, NO_TIME if part else latest, None if part else counts))
        columns = zip(*rows, strict=True)
        arrays = [pa.array(each, kind) for each, kind in zip(columns, _TYPES, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, names=list(_NAMED))


class _Task:
    """The rows of one task, chunk by chunk; ``names`` are those of rows that are set aside."""

    def __init__(self, job: Job, stream: int, names: AsideNames | None, buckets: Buckets) -> None:
        self.job, self._record, self._names = job, job.record.streams[stream], names
        self.plan = job.plan(self._record.plan)
        self.report = MapReport()
        self.kept: dict[str, list[pa.Table]] = {}
        self._feeds: list[tuple[Feed, FeedSplitter]] = []
        self._samples: dict[str, KeySample] = {}
        if job.record.row_plan is not None:
            plan = job.row_plan(job.record.row_plan)
            feeds, joined = plan.of_number(stream), plan.met
            splits = [SplitKey(**each) for each in job.record.splits]
            for feed in feeds:
                lanes = lanes_of(splits, plan.groups, feed.clock, buckets.partitions)
                self._feeds.append((feed, FeedSplitter(feed, buckets.count, lanes)))
            self._samples = {
                feed.name: KeySample(feed.key) for feed in feeds if feed.name in joined
            }
        listed = (KeepRecord(**each) for each in job.record.keeps)
        self._keeps = [each for each in listed if each.stream == stream]
        self._partials: dict[str, list[PartialBatch]] = {}

    def take(self, rows: pa.Table) -> list[PartialBatch]:
        """Partials of some rows."""
        record, report = self._record, self.report
        typed = _typed(rows, self.plan.source)
        found = sort_out(typed, self.plan.timeline, record.horizon, record.watermark)
        report.counts += Counts(rows.num_rows, found.late.num_rows, found.bad.num_rows)
        if found.latest is not None:
            report.latest = max(report.latest, found.latest)
        if self._names is not None:
            self._keep(self._names.late, found.late)
            self._keep(self._names.bad, found.bad)
        for feed, splitter in self._feeds:
            rows = found.rows
            if feed.relation is not None:
                joined = self.job.joiner(feed)(rows)
                rows = joined.batch
                report.counts.errors.update(dict.fromkeys(feed.queries, joined.errors))
            splitter.take(rows)
            if feed.name in self._samples:
                self._samples[feed.name].see(rows)
        for keep in self._keeps:
            made = self.job.stage_a(keep.plan)(found.rows)
            self._partials.setdefault(keep.name, []).append(made.partials[0])
            failed = made.counts.errors.total()
            if failed:
                report.counts.errors[keep.counted_as] += failed
        if not self.plan.finals:
            return []
        output = self.job.stage_a(record.plan)(found.rows)
        report.counts += Counts(
            errors=output.counts.errors,
            partial_aggregations=output.counts.partial_aggregations,
        )
        return output.partials

    def count_keys(self) -> None:
        """Say which keys a sample of the rows has."""
        self.report.hot = {name: (each.rows, each.counts) for name, each in self._samples.items()}

    def packets(self) -> dict[int, dict[str, bytes]]:
        """The rows for buckets that no stream owns: by bucket, then by the name of the feed."""
        found: dict[int, dict[str, bytes]] = {}
        for feed, splitter in self._feeds:
            for bucket, data in splitter.packets().items():
                found.setdefault(bucket, {})[feed.name] = data
        return found

    def write_kept(self) -> None:
        """Write what is kept to be asked, a file for each keep that rows went into."""
        for keep in self._keeps:
            parts = [each for each in self._partials.get(keep.name, ()) if each.starts.size]
            if not parts:
                continue
            united = parts[0]
            if len(parts) > 1:
                united = merge(self.job.plan(keep.plan).partials[0], parts).as_batch()
            folder = Path(self.job.blocks).parent / FOLDER / "data" / keep.name
            name = f"b{self.job.record.batch:020d}-a{task_context().taskAttemptId()}.arrow"
            self.report.kept.append((keep.name, write_kept(folder, name, united)))

    def _keep(self, name: str, rows: pa.Table) -> None:
        if rows.num_rows:
            self.kept.setdefault(name, []).append(rows)


def cut(blob: bytes | None) -> list[bytes | None]:
    """What a task sends to a bucket, in parts that are not too long; one, if it is nothing."""
    if blob is None or len(blob) <= LONGEST:
        return [blob]
    return [blob[begin : begin + LONGEST] for begin in range(0, len(blob), LONGEST)]


def _typed(rows: pa.Table, source: pa.Schema) -> pa.Table:
    """Rows in the types of the plan: Spark may say a time zone or a string differently."""
    wanted = pa.schema([source.field(name) for name in rows.column_names])
    return rows if rows.schema.types == wanted.types else rows.cast(wanted)


def _united(plan: SharedPlan, taken: list[list[PartialBatch]]) -> list[PartialBatch]:
    """The partials of all chunks, each entry once."""
    if len(taken) < 2:
        return taken[0] if taken else []
    return [
        merge(node, [partials[place] for partials in taken]).as_batch()
        for place, node in enumerate(plan.partials)
    ]
