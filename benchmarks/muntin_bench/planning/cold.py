"""Cold starts: what a fresh process takes to its first answers.

The process runs a program as a user would write it, with rows and queries from files: nothing of
the benchmark is loaded in it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from muntin.errors import MuntinError
from muntin_bench.planning import workloads

_CALL = """
import sys
import pyarrow.parquet
import muntin
rows = pyarrow.parquet.ParquetFile(sys.argv[1] + "/rows/0.parquet").read()
muntin.aggregate(rows, sys.argv[1] + "/queries.sql", time="ts")
"""
_STREAM = """
import sys
import muntin
from muntin.spark import session
columns = "ts timestamp, vol bigint, amount double, moved double, "
columns += "r1000 boolean, r2000 boolean, r3000 boolean"
stream = session(master="local[2]").readStream.schema(columns).parquet(sys.argv[1] + "/rows")
run = muntin.run(stream, sys.argv[1] + "/queries.sql", time="ts",
                 sink=muntin.sinks.parquet(sys.argv[1] + "/out"),
                 checkpoint=sys.argv[1] + "/checkpoint")
while not run.progress().batches and not run.await_termination(0.01):
    pass
"""
_ANSWERED = """
from muntin._compiled import compilations
print(compilations(), flush=True)
"""
_STOP = "run.stop()"


@dataclass(frozen=True)
class Start:
    """The program that a fresh process runs, over so many rows, and its limit in seconds.

    Once it has answered it prints how many kernels it had to compile.
    """

    name: str
    program: str
    queries: Callable[[], str]
    rows: int
    limit: float


def _one() -> str:
    return "SELECT sum(vol) AS total FROM events [RANGE '10 minutes' SLIDE '1 minute']"


def _many() -> str:
    return workloads.unlike(256)


STARTS = (
    Start("one query in a fresh process", _CALL + _ANSWERED, _one, 1_000, 2.0),
    Start("256 queries in a fresh process", _CALL + _ANSWERED, _many, 20_000, 3.0),
    Start(
        "the first Spark batch of 256 queries in a fresh process",
        _STREAM + _ANSWERED + _STOP,
        _many,
        20_000,
        20.0,
    ),
)


def seconds_of(start: Start) -> tuple[float, int]:
    """Seconds by the clock from the start of Python to the last answer, and kernels to compile.

    The seconds are those of a second process, which finds on disk what a first one had to
    compile itself: nothing, after ``make setup``.
    """
    compiled, _ = _run(start)
    return _run(start)[1], compiled


def _run(start: Start) -> tuple[int, float]:
    """Run it in a process of its own; how many kernels that has compiled, and the seconds."""
    with tempfile.TemporaryDirectory(prefix="muntin-bench-") as name:
        folder = Path(name)
        (folder / "rows").mkdir()
        pq.write_table(workloads.rows(start.rows), folder / "rows" / "0.parquet")
        (folder / "queries.sql").write_text(start.queries(), encoding="utf-8")
        command = [sys.executable, "-c", start.program, name]
        errors = folder / "errors"
        begin = time.perf_counter()
        with (
            errors.open("wb") as written,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=written) as process,
        ):
            assert process.stdout is not None
            answered = process.stdout.readline()
            taken = time.perf_counter() - begin
        if process.returncode or not answered:
            said = errors.read_text(errors="replace").strip().splitlines() or ["no answer"]
            raise MuntinError(f"{start.name} failed: {said[-1]}")
    return int(answered), taken
