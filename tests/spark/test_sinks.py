"""Tasks of a real Spark job write, the driver commits, and Spark reads back."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from muntin import sinks
from muntin.testing import assert_same_rows


def run_batch(spark: Any, sink: sinks.Sink[Any], batch: int) -> None:
    writer = sink.writer()

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        rows = pa.Table.from_batches(list(batches))
        even = pa.array([number % 2 == 0 for number in rows["id"].to_pylist()])
        results = {"all": rows, "even": rows.filter(even)}
        entries = writer.write(batch, context.taskAttemptId(), results)
        yield pa.RecordBatch.from_pydict({"entry": [pickle.dumps(entry) for entry in entries]})

    frame = spark.range(batch * 10, batch * 10 + 10, 1, 2).mapInArrow(write, "entry binary")
    sink.commit(batch, [pickle.loads(row.entry) for row in frame.collect()])


def test_rows_arrive_once_through_every_sink(spark: Any, tmp_path: Path) -> None:
    files, memory = sinks.parquet(tmp_path / "out"), sinks.memory()
    for batch in (0, 1, 1, 2):
        for sink in (files, memory):
            run_batch(spark, sink, batch)
    output = sinks.read(tmp_path / "out")
    for query in ("all", "even"):
        assert_same_rows(output[query], memory.table(query))
    assert sorted(output["all"]["id"].to_pylist()) == list(range(30))
    files.compact()
    assert spark.read.parquet(*output.files("even")).count() == 15
