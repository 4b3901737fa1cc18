"""A driver on a cluster: it answers queries with both ways of having Muntin on the workers.

Usage: cluster_driver.py FOLDER MASTER PYTHON, where the folder holds ``in`` and PYTHON is an
interpreter without Muntin. What workers say of themselves goes to ``workers.json``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import muntin
from muntin.api import run
from muntin.spark import session, ship, stop
from quick_jvm import archived
from spark.chaos_blows import Blow, StruckSink, carried_by_value, while_reading
from spark.chaos_driver import QUERIES
from spark.cluster_processes import die_with_parent
from spark.folder_stream import SCHEMA, FolderStream

_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
CONFIG = {
    "spark.driver.memory": "512m",
    "spark.driver.defaultJavaOptions": _JVM,
    "spark.executor.memory": "512m",
    "spark.executor.defaultJavaOptions": f"{_JVM} {archived()}",
    # Both executors are there before the first task.
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
}
STRUCK = ("a worker while reading", "an executor while writing")


def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Where a worker runs, and has Muntin and compiled kernels from."""
    import os

    import muntin._compiled

    for _ in batches:
        found = {
            "folder": os.getcwd(),
            "package": muntin.__file__,
            "given": os.environ[muntin._compiled.VARIABLE],
            "kernels": os.environ["NUMBA_CACHE_DIR"],
        }
        yield pa.RecordBatch.from_pydict({key: [value] for key, value in found.items()})


def workers(spark: Any) -> list[dict[str, str]]:
    columns = "folder string, package string, given string, kernels string"
    rows = spark.range(0, 2, 1, 2).mapInArrow(look, columns).collect()
    return [row.asDict() for row in rows]


def answer(spark: Any, folder: Path, place: Path) -> None:
    """Answer bounded input, through Spark's reader and through that of workers."""
    place.mkdir()
    frame = spark.read.schema(SCHEMA).parquet(str(folder / "in"))
    for kind, data in (("frame", frame), ("files", muntin.files(str(folder / "in")))):
        results = muntin.aggregate(data, QUERIES, time="ts")
        for name in ("turnover", "vwap"):
            pq.write_table(results.table(name), place / f"{kind}-{name}.parquet")


def stream(spark: Any, folder: Path) -> None:
    """Run a stream while a Python worker and an executor are killed, each in a task's midst."""
    first, second = (str(folder / name) for name in STRUCK)
    rows = while_reading(Blow(1, first, "worker"))
    with carried_by_value():
        started = run(
            FolderStream(folder / "in").frame(spark).mapInArrow(rows, SCHEMA),
            QUERIES,
            sink=StruckSink(folder / "out", Blow(2, second, "executor")),
            checkpoint=folder / "ck",
            trigger="available_now",
            partitions=2,
            buckets=4,
        )
        assert started.await_termination(120)


def main(folder: Path, master: str, python: str) -> None:
    spark = session("cluster", master=master, config=CONFIG, ship=False)
    told = {"installed": workers(spark)}
    answer(spark, folder, folder / "installed")
    # From here on workers have another interpreter.
    spark.sparkContext.pythonExec = python
    ship(spark)
    told["shipped"] = workers(spark)
    answer(spark, folder, folder / "shipped")
    stream(spark, folder)
    (folder / "workers.json").write_text(json.dumps(told))
    stop(spark)


if __name__ == "__main__":
    die_with_parent()
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
