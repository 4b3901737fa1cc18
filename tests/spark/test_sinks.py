"""Tasks of a real Spark job write, the driver commits, and Spark reads back."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from muntin import sinks
from muntin.api import run
from muntin.errors import DataError
from muntin.sinks import SinkError
from muntin.testing import assert_same_rows, trades
from spark.folder_stream import FolderStream, expected, parts


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


def test_a_run_refuses_to_go_on_without_its_results(spark: Any, tmp_path: Path) -> None:
    """The last manifest is lost, then the side output: neither goes by without a word."""
    stream, out, aside = FolderStream(tmp_path / "in"), tmp_path / "out", tmp_path / "aside"
    query = """CREATE QUERY n AS SELECT count(*) AS n
      FROM trades [RANGE '10 minutes' SLIDE '10 minutes']"""

    def start(**options: Any) -> None:
        started = run(
            stream.frame(spark),
            query,
            sink=sinks.parquet(out),
            side_output=aside,
            checkpoint=tmp_path / "ck",
            trigger="available_now",
            partitions=1,
            **options,
        )
        assert started.await_termination(120)

    early, *batches = parts(trades(2000, seed=3, seconds=9000), 4)
    for batch in batches:
        stream.put(batch)
    stream.put(early)
    start()
    last = max((out / "_commits").iterdir())
    content = last.read_bytes()
    last.unlink()
    with pytest.raises(SinkError, match=r"results of batch 2 are missing from .*/out"):
        start()
    last.write_bytes(content)
    shutil.move(aside, tmp_path / "elsewhere")
    with pytest.raises(SinkError, match=r"results up to batch 3 are missing from .*/aside"):
        start()
    with pytest.raises(DataError, match="on_gap must be accept or fail, not 'skip'"):
        start(on_gap="skip")
    stream.put(early)
    start(on_gap="accept")
    stream.put(early)
    start()
    assert sinks.read(aside)["late_rows"].num_rows == 2 * early.num_rows
    assert_same_rows(sinks.read(out)["n"], expected(batches, [query] * 3)["n"])
