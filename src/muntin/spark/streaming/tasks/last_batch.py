"""The last batch of a run, which Spark knows nothing of: the open windows of all buckets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from muntin.counts import Counts
from muntin.engine.answers.front import Answered
from muntin.sinks import Writer
from muntin.spark.streaming.buckets import Buckets
from muntin.spark.streaming.reports import NO_TIME, BucketReport, packed_share
from muntin.spark.streaming.tasks.bucket import Bucket
from muntin.spark.streaming.tasks.job import current_job, task_context
from muntin.spark.streaming.tasks.row_bucket import RowAnswers, RowBucket
from muntin.spark.streaming.tasks.stage_b import steps_of


def close_buckets(
    batches: Iterator[pa.RecordBatch], buckets: Buckets, writer: Writer[Any]
) -> Iterator[pa.RecordBatch]:
    """One task's buckets: their open windows, written together."""
    job = current_job()
    placed = job.buckets(buckets)
    results: dict[str, list[pa.Table]] = {}
    reports = []
    for batch in batches:
        for row in batch.to_pylist():
            bucket = placed.numbers[row["bucket"]]
            held = row["token"], row["written"], row["plan"], row["data"]
            answered: Answered | RowAnswers
            done = Counts()
            shares: dict[str, bytes] = {}
            spread: dict[int, bytes] = {}
            gaps: dict[str, int] = {}
            if placed.is_shared(bucket):
                answered = RowBucket(job, placed, bucket, held).close()
                shares, gaps = answered.shares, answered.gaps
            else:
                kept = Bucket(job, placed, bucket, held)
                answered = kept.close()
                spread = {family: packed_share(table) for family, table in kept.shares.items()}
                done = steps_of(answered)
            tables = {name: each for name, each in answered.tables.items() if each.num_rows}
            for name, table in tables.items():
                results.setdefault(name, []).append(table)
            rows = {name: table.num_rows for name, table in tables.items()}
            counts, found = done + Counts(errors=answered.errors), row["token"]
            reports.append(
                BucketReport(
                    bucket,
                    NO_TIME,
                    counts,
                    rows,
                    found=found,
                    token=found,
                    covers=1,
                    shares=shares,
                    spread=spread,
                    gaps=gaps,
                )
            )
    if reports:
        attempt = str(task_context().taskAttemptId())
        united = {name: pa.concat_tables(tables) for name, tables in results.items()}
        reports[-1].written = writer.write(job.record.batch, attempt, united)
    blobs = pa.array([report.to_bytes() for report in reports], pa.binary())
    yield pa.RecordBatch.from_arrays([blobs], ["report"])
