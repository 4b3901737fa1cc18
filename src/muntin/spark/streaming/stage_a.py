"""Stage A in Spark's map tasks: rows come in, a few rows of partials and heartbeats go out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from muntin.engine.partials import PartialBatch, merge
from muntin.engine.wire import split, to_bytes
from muntin.plan import SharedPlan
from muntin.spark.streaming.buckets import Buckets
from muntin.spark.streaming.job import Job, current_job
from muntin.spark.streaming.rows import count_late, usable_rows

# A heartbeat goes to every bucket; its counts go to the first one only.
SCHEMA = "bucket int, partials binary, latest bigint, counts string"
# Before every tick: the heartbeat of a task that saw no time.
NO_TIME = -(2**62)
# Spark hands rows over in small batches; stage A has a cost of its own for each.
_CHUNK = 1 << 18

Batches = Iterator[pa.RecordBatch]
Reader = Callable[[Batches], Iterable[pa.RecordBatch]]


@dataclass
class Counts:
    """What a task saw of its rows."""

    latest: int = NO_TIME
    rows: int = 0
    late_rows: int = 0
    bad_rows: int = 0
    errors: Counter[str] = field(default_factory=Counter)

    def to_text(self) -> str:
        """The counts as text."""
        return json.dumps([self.rows, self.late_rows, self.bad_rows, self.errors])

    def add_text(self, text: str) -> None:
        """Add counts that `to_text` wrote."""
        rows, late_rows, bad_rows, errors = json.loads(text)
        self.rows += rows
        self.late_rows += late_rows
        self.bad_rows += bad_rows
        self.errors.update(errors)


@dataclass(frozen=True)
class MapStage:
    """The function of ``mapInArrow``: one task's rows to partials, split by bucket.

    ``read`` turns what Spark hands over into rows; they are the rows unless said otherwise.
    """

    buckets: Buckets
    read: Reader | None = None

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Take in a task's rows; at the end, one row for each bucket."""
        job = current_job()
        counts = Counts()
        rows = batches if self.read is None else self.read(batches)
        taken = [_take(job, chunk, counts) for chunk in _chunks(rows)]
        plan = job.plan(job.record.plan)
        yield self._emit(plan, _united(plan, taken), counts)

    def _emit(
        self, plan: SharedPlan, partials: list[PartialBatch], counts: Counts
    ) -> pa.RecordBatch:
        found = split(plan, partials, self.buckets.count) if partials else {}
        numbers = range(self.buckets.count)
        blobs = [to_bytes(found[number]) if number in found else None for number in numbers]
        return pa.RecordBatch.from_pydict(
            {
                "bucket": pa.array(self.buckets.keys, pa.int32()),
                "partials": pa.array(blobs, pa.binary()),
                "latest": pa.array([counts.latest] * self.buckets.count, pa.int64()),
                "counts": pa.array([counts.to_text(), *[None] * (self.buckets.count - 1)]),
            }
        )


def _take(job: Job, rows: pa.Table, counts: Counts) -> list[PartialBatch]:
    """Partials of some rows."""
    plan, watermark = job.plan(job.record.plan), job.record.watermark
    usable = usable_rows(_typed(rows, plan.source), plan.timeline, job.record.horizon)
    counts.rows += rows.num_rows
    counts.bad_rows += usable.bad_rows
    if usable.latest is not None:
        counts.latest = max(counts.latest, usable.latest)
    if not plan.finals:
        counts.late_rows += count_late(usable.rows, plan.timeline, watermark)
        return []
    output = job.stage_a()(usable.rows, 0, watermark)
    counts.late_rows += output.late_rows
    counts.errors.update(output.errors)
    return output.partials


def _typed(rows: pa.Table, source: pa.Schema) -> pa.Table:
    """Rows in the types of the plan: Spark may say a time zone or a string differently."""
    wanted = pa.schema([source.field(name) for name in rows.column_names])
    return rows if rows.schema.types == wanted.types else rows.cast(wanted)


def _chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= _CHUNK:
            yield pa.Table.from_batches(waiting)
            waiting, rows = [], 0
    if rows:
        yield pa.Table.from_batches(waiting)


def _united(plan: SharedPlan, taken: list[list[PartialBatch]]) -> list[PartialBatch]:
    """The partials of all chunks, each entry once."""
    if len(taken) < 2:
        return taken[0] if taken else []
    return [
        merge(node, [partials[place] for partials in taken]).as_batch()
        for place, node in enumerate(plan.partials)
    ]
