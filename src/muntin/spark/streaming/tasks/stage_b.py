"""Stage B in Spark's stateful tasks: a bucket's partials come in, its windows are answered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from muntin.counts import Counts
from muntin.engine.answers.front import Answered
from muntin.sinks import Writer
from muntin.spark.streaming.buckets import Buckets
from muntin.spark.streaming.reports import NO_TIME, BucketReport, MapReport, packed_share
from muntin.spark.streaming.tasks.bucket import Bucket
from muntin.spark.streaming.tasks.carrier import StateFolder, StateWriter
from muntin.spark.streaming.tasks.job import Job, current_job, end_task, task_context
from muntin.spark.streaming.tasks.row_bucket import RowAnswers, RowBucket
from muntin.spark.streaming.tasks.stage_a import Parcel

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class StateStage:
    """The function of Spark's stateful operator, called once for each bucket and batch."""

    buckets: Buckets
    writer: Writer[Any]

    def __call__(
        self, key: tuple[Any], frames: Iterable[pd.DataFrame], stored: Any
    ) -> Iterator[pd.DataFrame]:
        """Take in what the map tasks have for a bucket; one row, the bucket's report."""
        import pandas as pd  # noqa: PLC0415  imported in workers only

        job = current_job()
        buckets = job.buckets(self.buckets)
        bucket = buckets.numbers[int(key[0])]
        news = collected(frames)
        seen, partition = news.report, bucket % buckets.partitions
        kept: Bucket | RowBucket
        answered: Answered | RowAnswers
        done = Counts()
        shares: dict[str, bytes] = {}
        spread: dict[int, bytes] = {}
        gaps: dict[str, int] = {}
        since: dict[str, int | None] = {}
        if buckets.is_shared(bucket):
            kept = RowBucket(job, buckets, bucket, stored.getOption)
            answered = kept.answer([Parcel.of_bytes(blob) for blob in news.blobs], news.latest)
            shares, gaps, since = answered.shares, answered.gaps, kept.since
        else:
            kept = Bucket(job, buckets, bucket, stored.getOption)
            answered = kept.answer(news.blobs, seen.latest)
            spread = {family: packed_share(table) for family, table in kept.shares.items()}
            done = steps_of(answered)
        tables = answered.tables.items()
        results = {name: table.num_rows for name, table in tables if table.num_rows}
        waiting = self._waiting(job, partition)
        kept.store(waiting.state, results)
        row = kept.row()
        if row is not None:
            stored.update(row)
        report = BucketReport(
            bucket,
            seen.latest,
            seen.counts + done + Counts(errors=answered.errors),
            results,
            kept.head.size,
            kept.found,
            kept.token,
            aside=seen.aside,
            kept=seen.kept,
            files=kept.head.batches(),
            shares=shares,
            spread=spread,
            gaps=gaps,
            hot=seen.hot,
            since=since,
        )
        waiting.tables[bucket] = dict(answered.tables)
        if len(waiting.tables) == buckets.beside(bucket):
            self._write(job, report, waiting)
        yield pd.DataFrame({"report": [report.to_bytes()]})

    def _waiting(self, job: Job, partition: int) -> _Waiting:
        """What this attempt at a task has made so far; what another left behind is of no use."""
        name = f"{job.run} {job.record.batch} {task_context().taskAttemptId()}"
        held = _task.get(name)
        if held is None:
            for other in _task.values():
                other.state.abandon()
            _task.clear()
            folder = StateFolder(job.blocks, job.run)
            held = _task[name] = _Waiting({}, StateWriter(folder, job.record.batch, partition))
        return held

    def _write(self, job: Job, report: BucketReport, waiting: _Waiting) -> None:
        """Write the results and the state of all buckets of a task at once, after the last of them.

        One file for each query and bucket would be many small ones. Spark commits the heads of
        states when the task has ended, so the file is there before they are.
        """
        results: dict[str, list[pa.Table]] = {}
        for _, each in sorted(waiting.tables.items()):
            for name, table in each.items():
                results.setdefault(name, []).append(table)
        united = {name: _united(parts) for name, parts in results.items()}
        attempt = str(task_context().taskAttemptId())
        # Either waits for the disk most of the time.
        with ThreadPoolExecutor(1) as pool:
            closing = pool.submit(waiting.state.close)
            report.written = self.writer.write(job.record.batch, attempt, united)
            closing.result()
        report.covers = len(waiting.tables)
        _task.clear()
        end_task()


@dataclass(frozen=True)
class _Waiting:
    """Results by bucket, and pieces of state, that one attempt at a task has not finished yet."""

    tables: dict[int, dict[str, pa.Table]]
    state: StateWriter


# The attempt that this worker is at, by its name.
_task: dict[str, _Waiting] = {}


def steps_of(answered: Answered) -> Counts:
    """The aggregations that answering took."""
    return Counts(final_aggregations=answered.steps, cell_aggregations=answered.cell_steps)


def _united(parts: Sequence[pa.Table]) -> pa.Table:
    """The results of several buckets; changes are in order of time, '-' before '+'."""
    whole = pa.concat_tables(parts)
    if len(parts) > 1 and whole.column_names[:2] == ["op", "at"]:
        return whole.sort_by([("at", "ascending"), ("op", "descending")])
    return whole


@dataclass
class Collected:
    """What the map tasks have for a bucket: blobs, a report, each stream's largest time."""

    blobs: list[bytes] = field(default_factory=list)
    report: MapReport = field(default_factory=MapReport)
    latest: dict[int, int] = field(default_factory=dict)


def collected(frames: Iterable[pd.DataFrame]) -> Collected:
    """What a bucket is sent, whatever order its rows come in."""
    found = Collected()
    # By stream and task, the parts of what each sent.
    blobs: dict[tuple[int, int], dict[int, bytes]] = {}
    for frame in frames:
        labels = (frame[name] for name in ("stream", "task", "part"))
        for stream, task, part, data in zip(*labels, frame["partials"], strict=True):
            if data is not None:
                blobs.setdefault((int(stream), int(task)), {})[int(part)] = data
        for stream, latest in zip(frame["stream"], frame["latest"], strict=True):
            if latest > NO_TIME:
                found.latest[int(stream)] = max(found.latest.get(int(stream), NO_TIME), int(latest))
        for data in frame["counts"]:
            if data is not None:
                found.report.add_bytes(bytes(data))
    found.blobs = [
        b"".join(data for _, data in sorted(parts.items())) for _, parts in sorted(blobs.items())
    ]
    found.report.latest = max(found.latest.values(), default=NO_TIME)
    return found
