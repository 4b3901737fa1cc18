"""A driver that is killed: it runs a stream, and it or a worker of its dies where it is told to.

Usage: chaos_driver.py FOLDER KILL [MASTER], where the folder holds ``in`` and the kill is one of
`chaos.Kill` as JSON. With the master of a cluster, tasks lag and Spark starts copies of them. A run
that fails ends it with the status `FAILED`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from muntin import sinks
from muntin.api import run
from muntin.spark import session
from muntin.spark.streaming.checkpoint import asks, checkpoint, records
from muntin.spark.streaming.driver import batches
from muntin.spark.streaming.driver.handle import Run
from muntin.spark.streaming.problems import RunError
from spark.chaos_blows import Blow, LaggingSink, StruckSink, carried_by_value, while_reading
from spark.cluster_processes import die_with_parent
from spark.folder_stream import SCHEMA, FolderStream

QUERIES = """
CREATE QUERY turnover AS SELECT sum(price * vol) AS value, stddev(price) AS spread
  FROM trades [RANGE '15 minutes' SLIDE '5 minutes'];
CREATE QUERY vwap AS SELECT symbol, sum(price * vol) / sum(vol) AS vwap, count(*) AS n
  FROM trades [RANGE '10 minutes' SLIDE '3 minutes'] GROUP BY symbol;
"""
# Rows with lifetimes: they meet in buckets of their own, those of hot symbols in several. The last
# aggregates a join whose groups span buckets, which the driver puts together.
ROWS = """
CREATE QUERY pairs WITH (skew = 'replicate') AS SELECT x.symbol, x.vol, y.vol AS other
  FROM trades [RANGE '2 minutes'] x
  JOIN trades [RANGE '1 minute'] y ON x.symbol = y.symbol WHERE x.vol > y.vol AND y.vol > 500;
CREATE QUERY alone AS SELECT t.symbol, t.price FROM trades [RANGE '3 minutes'] t
  WHERE NOT EXISTS (SELECT 1 FROM trades [RANGE '1 minute'] u
                    WHERE u.symbol = t.symbol AND u.price > t.price);
CREATE QUERY active AS SELECT DISTINCT symbol FROM trades [RANGE '20 seconds'];
CREATE QUERY crossed AS SELECT x.exchange, count(*) AS n, sum(y.price) AS total
  FROM trades [RANGE '2 minutes' SLIDE '1 minute'] x
  JOIN trades [RANGE '1 minute'] y ON x.symbol = y.symbol GROUP BY x.exchange;
"""
KEEPS = """
CREATE KEEP recent AS
  SELECT symbol, count(*), sum(vol), max(price), median(vol), count(DISTINCT vol)
  FROM trades [RANGE '20 minutes' SLIDE '10 seconds'] GROUP BY symbol CUT (vol > 500);
CREATE KEEP gram AS SELECT max(price), avg(price) FROM trades [RANGE '20 minutes' SLIDE '1 minute']
  WITH (synopsis = 'timegram');
"""
EXTRA = """CREATE QUERY extra_{0} AS SELECT symbol, sum(price) AS total, max(vol) AS largest
  FROM trades [RANGE '{1} minutes' SLIDE '2 minutes'] WHERE vol > {0}00 GROUP BY symbol"""
EXTRAS = 2
LATENESS = 20_000_000
FAILED = 3
# Where a driver may die: the class and method, and whether before or after it.
POINTS: dict[str, tuple[Any, str, bool]] = {
    "before the record": (records.RecordLog, "write_record", True),
    "after the record": (records.RecordLog, "write_record", False),
    "before the commit": (sinks.ParquetSink, "commit", True),
    "after the commit": (sinks.ParquetSink, "commit", False),
    "before what is kept": (asks.AskLog, "write", True),
    "after what is kept": (asks.AskLog, "write", False),
    "before the outcome": (records.RecordLog, "write_outcome", True),
    "after the outcome": (records.RecordLog, "write_outcome", False),
    "after the batch": (batches.BatchRunner, "__call__", False),
    "before a change": (checkpoint.Checkpoint, "write_changes", True),
    "after a change": (checkpoint.Checkpoint, "write_changes", False),
}
# Where in a task a process may die, the driver's or the worker's own.
BLOWS = ("while reading", "while writing")


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


def arm_clock(started: Run, milliseconds: int) -> None:
    """Die so long after the first batch of this start."""
    first = started.progress().batches

    def later() -> None:
        while started.progress().batches == first:
            time.sleep(0.005)
        time.sleep(milliseconds / 1000)
        die()

    threading.Thread(target=later, daemon=True).start()


def change(started: Run) -> None:
    """Let queries join and leave as batches go by, those that have not done so before."""
    while not started.await_termination(0.01):
        done = started.progress().batches
        names = {query.name for query in started.queries()}
        for number in range(1, EXTRAS + 1):
            if 2 * number - 1 <= done < 2 * number + 1 and f"extra_{number}" not in names:
                started.add(EXTRA.format(number, 3 + number))
        if done >= 4 and "extra_1" in names:
            started.remove("extra_1")


# A copy of a task is started as soon as the other one has ended, and this one has not.
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.2",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.minTaskRuntime": "50ms",
    "spark.executor.memory": "512m",
    "spark.executor.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
}
NEVER = 1 << 62


def main(folder: Path, kill: dict[str, Any], master: str | None = None) -> None:
    point, count = kill["point"], kill["count"]
    if point in POINTS:
        arm(point, count)
    spark = session(
        "chaos",
        master=master or f"local[2, {kill['attempts']}]",
        config={
            **(SPECULATION | {"spark.task.maxFailures": str(kill["attempts"])} if master else {}),
            "spark.driver.memory": "640m",
            # Quick to start rather than fast later on.
            "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        },
    )
    frame = FolderStream(folder / "in").frame(spark)
    sink = sinks.parquet(folder / "out", compact_every=3)
    blow = Blow(NEVER, "")
    if point in BLOWS:
        # Each start has a blow of its own.
        marker = str(folder / f"blow-{os.getpid()}")
        victim = "worker" if kill["worker"] else os.getpid()
        blow = Blow(committed(folder) + count - 1, marker, victim)
        if point == "while reading":
            frame = frame.mapInArrow(while_reading(blow), SCHEMA)
        else:
            sink = StruckSink(folder / "out", blow, compact_every=3)
    if master is not None:
        own = blow if point == "while writing" else Blow(NEVER, "")
        # Each start has attempts of its own.
        lags = folder / "lags" / str(os.getpid())
        lags.mkdir()
        sink = LaggingSink(folder / "out", lags, own, compact_every=3)
    started = run(
        frame,
        QUERIES + ROWS,
        lateness=f"{LATENESS} microseconds",
        sink=sink,
        checkpoint=folder / "ck",
        trigger="available_now",
        partitions=2,
        buckets=4,
        keeps=KEEPS,
    )
    if point == "later":
        arm_clock(started, count)
    change(started)


def committed(folder: Path) -> int:
    """How many batches Spark has committed."""
    commits = folder / "ck" / "spark" / "commits"
    return sum(path.name.isdigit() for path in commits.iterdir()) if commits.is_dir() else 0


if __name__ == "__main__":
    die_with_parent()
    status = 0
    try:
        with carried_by_value():
            main(Path(sys.argv[1]), json.loads(sys.argv[2]), *sys.argv[3:])
    except RunError as error:
        print(error, flush=True)
        status = FAILED
    # The caller ends the JVM, which would take its time.
    os._exit(status)
