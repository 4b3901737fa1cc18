"""Tasks of a real Spark job write, the driver commits, and Spark reads back."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
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


def test_many_numbers_and_times_are_read_by_every_engine(spark: Any, tmp_path: Path) -> None:
    """Columns of a large file have encodings of their own, which all readers know."""
    count = 20_000
    chance = np.random.default_rng(3)
    lowest, highest = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    moments = chance.integers(0, 10**15, count)
    columns = {
        "at": pa.array(moments).cast(pa.timestamp("us", "UTC")),
        "day": pa.array((moments % 40_000).astype(np.int32)).cast(pa.date32()),
        "wide": chance.integers(lowest, highest, count),
        "near": np.arange(count, dtype=np.int32),
        "few": chance.integers(0, 5, count),
        "share": chance.random(count),
        "word": [f"w{number}" for number in chance.integers(0, 10**9, count)],
    }
    table = pa.table({name: pa.array(each) for name, each in columns.items()})
    gaps = pa.table({"at": pa.nulls(7, table.schema.field("at").type)})
    table = pa.concat_tables([table, gaps], promote_options="default")
    sink = sinks.parquet(tmp_path / "out")
    sink.commit(0, sink.writer().write(0, 0, {"q": table}))
    (path,) = sinks.read(tmp_path / "out").files("q")
    metadata = pq.ParquetFile(path).metadata.row_group(0)
    encodings = {metadata.column(i).path_in_schema: metadata.column(i).encodings for i in range(7)}
    differing = {name for name, each in encodings.items() if "DELTA_BINARY_PACKED" in each}
    assert differing == {"at", "day", "wide", "near"}
    assert "RLE_DICTIONARY" in encodings["few"]
    assert_same_rows(sinks.read(tmp_path / "out")["q"], table)
    order = [(name, "ascending") for name in ("near", "wide")]
    expected = table.sort_by(order)
    for found in (
        spark.read.parquet(str(path)).toArrow(),
        duckdb.sql(f"SELECT * FROM '{path}'").to_arrow_table(),
        pl.read_parquet(path).to_arrow(),
    ):
        assert found.sort_by(order).cast(table.schema).equals(expected)
