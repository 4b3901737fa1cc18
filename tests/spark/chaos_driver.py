"""A driver that is killed: it runs a stream, and kills itself where it is told to.

Usage: chaos_driver.py FOLDER POINT COUNT, where the folder holds ``in``; POINT is one of `POINTS`,
"later" for COUNT milliseconds after the first batch, or "never".
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from muntin import sinks
from muntin.spark import session, stop
from muntin.spark.streaming import batches, checkpoint, records
from muntin.spark.streaming.handle import Run
from muntin.spark.streaming.run import run
from spark.folder_stream import FolderStream

QUERIES = """
CREATE QUERY turnover AS SELECT sum(price * vol) AS value, stddev(price) AS spread
  FROM trades [RANGE '15 minutes' SLIDE '5 minutes'];
CREATE QUERY vwap AS SELECT symbol, sum(price * vol) / sum(vol) AS vwap, count(*) AS n
  FROM trades [RANGE '10 minutes' SLIDE '3 minutes'] GROUP BY symbol;
"""
EXTRA = """CREATE QUERY extra_{0} AS SELECT symbol, sum(price) AS total, max(vol) AS largest
  FROM trades [RANGE '{1} minutes' SLIDE '2 minutes'] WHERE vol > {0}00 GROUP BY symbol"""
LATENESS = 20_000_000
# Where a driver may die: the class and method, and whether before or after it.
POINTS: dict[str, tuple[Any, str, bool]] = {
    "before the record": (records.RecordLog, "write_record", True),
    "after the record": (records.RecordLog, "write_record", False),
    "before the commit": (sinks.ParquetSink, "commit", True),
    "after the commit": (sinks.ParquetSink, "commit", False),
    "before the outcome": (records.RecordLog, "write_outcome", True),
    "after the outcome": (records.RecordLog, "write_outcome", False),
    "after the batch": (batches.BatchRunner, "__call__", False),
    "before a change": (checkpoint.Checkpoint, "write_changes", True),
    "after a change": (checkpoint.Checkpoint, "write_changes", False),
}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arm(point: str, count: int) -> None:
    """Die at the count-th time that a point is passed."""
    owner, name, is_before = POINTS[point]
    real: Callable[..., Any] = getattr(owner, name)
    left = [count]

    def deadly(*args: Any, **kwargs: Any) -> Any:
        left[0] -= 1
        if is_before and left[0] == 0:
            die()
        result = real(*args, **kwargs)
        if left[0] == 0:
            die()
        return result

    setattr(owner, name, deadly)


def change(started: Run) -> None:
    """Let queries join and leave as batches go by, those that have not done so before."""
    while not started.await_termination(0.01):
        done = started.progress().batches
        names = {query.name for query in started.queries()}
        for number in range(1, 4):
            if done >= 2 * number and f"extra_{number}" not in names and done < 2 * number + 3:
                started.add(EXTRA.format(number, 3 + number))
        if done >= 7 and "extra_1" in names:
            started.remove("extra_1")


def main(folder: Path, point: str, count: int) -> None:
    spark = session("chaos", master="local[2]", config={"spark.driver.memory": "768m"})
    started = run(
        FolderStream(folder / "in").frame(spark),
        QUERIES,
        lateness=f"{LATENESS} microseconds",
        sink=sinks.parquet(folder / "out", compact_every=3),
        checkpoint=folder / "ck",
        trigger="available_now",
        partitions=2,
        buckets=4,
    )
    if point == "later":
        first = started.progress().batches

        def later() -> None:
            while started.progress().batches == first:
                time.sleep(0.005)
            time.sleep(count / 1000)
            die()

        threading.Thread(target=later, daemon=True).start()
    change(started)
    stop(spark)


if __name__ == "__main__":
    if sys.argv[2] in POINTS:
        arm(sys.argv[2], int(sys.argv[3]))
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
