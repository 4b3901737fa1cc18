"""Answers the windows that are still open, from the state that Spark keeps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from muntin.sinks import Writer
from muntin.spark.streaming.bucket import Bucket
from muntin.spark.streaming.buckets import Buckets
from muntin.spark.streaming.job import PROPERTY, Job, current_job, task_context
from muntin.spark.streaming.records import REPORT_SCHEMA, BucketReport
from muntin.spark.streaming.stage_a import NO_TIME

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def flush(
    session: SparkSession, folder: str, job: Job, buckets: Buckets, writer: Writer[Any]
) -> list[BucketReport]:
    """Close every bucket of the last batch that Spark committed, in its folder."""

    def close(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return close_buckets(batches, buckets, writer)

    states = session.read.format("statestore").load(folder)
    columns = states.selectExpr(
        "key.bucket",
        *(f"value.groupState.{name}" for name in ("token", "written", "plan", "data")),
    )
    session.sparkContext.setLocalProperty(PROPERTY, job.to_text())
    rows = columns.mapInArrow(close, REPORT_SCHEMA).collect()
    return [BucketReport.of_bytes(bytes(row.report)) for row in rows]


def close_buckets(
    batches: Iterator[pa.RecordBatch], buckets: Buckets, writer: Writer[Any]
) -> Iterator[pa.RecordBatch]:
    """One task's buckets: their open windows, written together."""
    job = current_job()
    results: dict[str, list[pa.Table]] = {}
    reports = []
    for batch in batches:
        for row in batch.to_pylist():
            bucket = buckets.numbers[row["bucket"]]
            held = row["token"], row["written"], row["plan"], row["data"]
            answered = Bucket(job, bucket, bucket % buckets.partitions, held).state().close()
            tables = {name: each for name, each in answered.tables.items() if each.num_rows}
            for name, table in tables.items():
                results.setdefault(name, []).append(table)
            rows = {name: table.num_rows for name, table in tables.items()}
            errors, found = dict(answered.errors), row["token"]
            reports.append(
                BucketReport(
                    bucket, NO_TIME, errors=errors, results=rows, found=found, token=found, covers=1
                )
            )
    if reports:
        attempt = str(task_context().taskAttemptId())
        united = {name: pa.concat_tables(tables) for name, tables in results.items()}
        reports[-1].written = writer.write(job.record.batch, attempt, united)
    blobs = pa.array([report.to_bytes() for report in reports], pa.binary())
    yield pa.RecordBatch.from_arrays([blobs], ["report"])
