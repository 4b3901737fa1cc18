"""Aggregates over all values at their extremes: very many groups, or very many values in one.

Answers are compared with what they must be. Memory is what a process of its own held at most.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa

import muntin
from muntin_bench.report import Check, Section

# Seconds of a count of different values, over those of a count, with one value in each group.
_LITTLE_MORE = 2.0
# Gigabytes that one group of very many values may take, all of Python included.
_MOST = 4.0


def section(groups: int, values: int, checks: list[Check]) -> Section:
    """Both, and what is promised of them."""
    plain, distinct = (by_group(groups, call) for call in ("count(v)", "count(DISTINCT v)"))
    title = f"count(DISTINCT) of {groups:,} groups with one value each, against count"
    checks.append(Check(title, _LITTLE_MORE, distinct / plain))
    rows = [
        (f"count(v) of {groups:,} groups", f"{plain:.2f}", ""),
        (f"count(DISTINCT v) of {groups:,} groups", f"{distinct:.2f}", ""),
    ]
    for what, cap in (("over the cap: NULL", values // 10), ("answered", values)):
        seconds, held = in_process(values, cap)
        rows.append((f"one group of {values:,} values, {what}", f"{seconds:.2f}", f"{held:.2f}"))
        checks.append(Check(f"one group of {values:,} values, {what}", _MOST, held, " GB"))
    return Section("many groups, many values", ("what", "seconds", "GB"), tuple(rows))


def by_group(groups: int, call: str) -> float:
    """Processor seconds of a query by as many groups as rows."""
    keys = np.random.default_rng(1).permutation(groups)
    table = pa.table({"ts": np.arange(groups) * 100 // groups, "k": keys, "v": keys * 7})
    sql = f"SELECT k, {call} AS n FROM t [RANGE 100 SLIDE 100] GROUP BY k"
    taken = []
    for _ in range(3):
        begin = time.process_time()
        found = muntin.aggregate(table, sql, time="ts").table("q1")
        taken.append(time.process_time() - begin)
        assert found.num_rows == groups
        assert np.all(found["n"].to_numpy() == 1)
    return sorted(taken)[1]


def in_process(values: int, cap: int) -> tuple[float, float]:
    """Processor seconds and gigabytes of one group, in a process of its own."""
    code = f"from muntin_bench.holistic.extremes import one_group; one_group({values}, {cap})"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    return float(done[0]), float(done[1])


def one_group(values: int, cap: int) -> None:
    """Count and order the different values of one group; print seconds and gigabytes."""
    numbers = np.random.default_rng(2).permutation(values)
    table = pa.table({"ts": np.zeros(values, np.int64), "v": numbers})
    begin = time.process_time()
    result = muntin.aggregate(
        table,
        "SELECT count(DISTINCT v) AS n, median(v) AS m FROM t [RANGE 100 SLIDE 100]",
        time="ts",
        cap_values=cap,
        cap_bytes=16 * cap,
    )
    seconds = time.process_time() - begin
    (row,) = result.table("q1").to_pylist()
    is_answered = cap >= values
    wanted = (values, (values - 1) / 2) if is_answered else (None, None)
    assert (row["n"], row["m"]) == wanted, row
    assert bool(result.errors) != is_answered
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    print(seconds, held)
