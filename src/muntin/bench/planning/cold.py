"""Cold starts: what a fresh process takes to its first answers."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass

import muntin
from muntin.bench.planning import workloads
from muntin.errors import MuntinError


@dataclass(frozen=True)
class Start:
    """What a fresh process does, by the name of a function of this module, and its limit."""

    name: str
    function: str
    limit: float


def first_call() -> None:
    """One query over a few rows."""
    text = "SELECT sum(vol) AS total FROM events [RANGE '10 minutes' SLIDE '1 minute']"
    muntin.aggregate(workloads.rows(1_000), text, time="ts")


def first_queries() -> None:
    """256 queries with different windows and predicates."""
    muntin.aggregate(workloads.rows(20_000), workloads.unlike(256), time="ts")


# A row of the table each; a function that starts Spark may stand here as well.
STARTS = (
    Start("one query in a fresh process", "first_call", 2.0),
    Start("256 queries in a fresh process", "first_queries", 3.0),
)


def seconds_of(start: Start) -> tuple[float, int]:
    """Seconds by the clock from the start of Python to the last answer, and kernels to compile.

    The seconds are those of a second process, which finds on disk what a first one had to
    compile itself: nothing, after ``make setup``.
    """
    compiled = _run(start)
    begin = time.perf_counter()
    _run(start)
    return time.perf_counter() - begin, compiled


def _run(start: Start) -> int:
    """Run it in a process of its own; how many kernels that has compiled."""
    count = "from muntin.compiled import compilations; print(compilations())"
    command = f"from muntin.bench.planning import cold; cold.{start.function}(); {count}"
    done = subprocess.run(
        [sys.executable, "-c", command], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise MuntinError(f"{start.name} failed: {done.stderr.strip().splitlines()[-1]}")
    return int(done.stdout.split()[-1])
