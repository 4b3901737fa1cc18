"""Whatever dies in a session, nothing is half done: a restart goes on as if nothing had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from muntin import sinks
from muntin.api import run
from muntin.errors import MuntinError
from muntin.testing import assert_same_rows, trades
from spark.chaos_blows import Blow, StruckSink, carried_by_value
from spark.chaos_driver import QUERIES
from spark.cluster_processes import of_environment
from spark.folder_stream import FolderStream, batches_read, expected, parts


def test_a_killed_worker_fails_the_run_and_a_restart_goes_on(spark: Any, tmp_path: Path) -> None:
    """A local session tries a task once; on a cluster Spark would try it again."""
    stream = FolderStream(tmp_path / "in")
    batches = parts(trades(2000, seed=60, seconds=3000), 3)
    for batch in batches:
        stream.put(batch)
    sink = StruckSink(tmp_path / "out", Blow(1, str(tmp_path / "struck")))
    options = {"checkpoint": tmp_path / "ck", "trigger": "available_now", "partitions": 2}
    with carried_by_value():
        started = run(stream.frame(spark), QUERIES, sink=sink, **options)
        with pytest.raises(MuntinError, match="Python worker exited unexpectedly") as caught:
            started.await_termination(120)
    assert "start again with the same checkpoint" in str(caught.value.hint)
    assert (tmp_path / "struck").exists()
    again = run(stream.frame(spark), QUERIES, sink=sinks.parquet(tmp_path / "out"), **options)
    assert again.await_termination(120)
    output = sinks.read(tmp_path / "out")
    for name, table in expected(batches, [QUERIES] * 3).items():
        assert_same_rows(output[name], table)


def test_a_file_noted_without_its_batch_is_read_with_the_next(spark: Any, tmp_path: Path) -> None:
    """What a driver leaves that dies between two notes of Spark's: the file's and the batch's."""
    stream = FolderStream(tmp_path / "in")
    batches = parts(trades(2000, seed=61, seconds=3000), 4)
    options = {"checkpoint": tmp_path / "ck", "trigger": "available_now", "partitions": 2}
    for batch in batches[:2]:
        stream.put(batch)
    sink = sinks.parquet(tmp_path / "out")
    assert run(stream.frame(spark), QUERIES, sink=sink, **options).await_termination(120)
    for batch in batches[2:]:
        stream.put(batch)
    log = tmp_path / "ck" / "spark" / "sources" / "0"
    note = (log / "1").read_text().replace("00001.parquet", "00002.parquet")
    (log / "2").write_text(note.replace('"batchId":1', '"batchId":2'))
    again = run(stream.frame(spark), QUERIES, sink=sinks.parquet(tmp_path / "out"), **options)
    assert again.await_termination(120)
    read = batches_read(tmp_path / "ck")
    assert [batch.num_rows for batch in read] == [500, 500, 1000]
    output = sinks.read(tmp_path / "out")
    for name, table in expected(read, [QUERIES] * 3).items():
        assert_same_rows(output[name], table)


def test_processes_of_tests_are_found_again(spark: Any, spark_processes: str) -> None:
    """What is left at the end is ended by this mark: the JVM has it, and its Python workers."""

    def look(batches: Any) -> Any:
        import os

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"number": [os.getpid()]})

    (row,) = spark.range(1).coalesce(1).mapInArrow(look, "number bigint").collect()
    marked = of_environment(spark_processes)
    assert row.number in marked
    assert spark.sparkContext._gateway.proc.pid in marked
