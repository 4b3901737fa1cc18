"""What a bank costs a group, range and step, on one core."""

from __future__ import annotations

import math
import statistics
import time
from typing import Any

import numpy as np
import pyarrow as pa

from muntin.aggregates import resolve
from muntin.aggregators import bank
from muntin.aggregators.banks.bank import Bank
from muntin_bench.report import Check, Section

RANGES = tuple(1 << k for k in range(8))
_TARGETS = {"sum of BIGINT": (5.0, 25.0), "sum of DOUBLE": (20.0, 25.0)}
_KINDS: tuple[tuple[str, str, str, pa.DataType], ...] = (
    ("sum of BIGINT", "slickdeque_inv", "sum", pa.int64()),
    ("sum of DOUBLE", "slickdeque_inv", "sum", pa.float64()),
    ("max of DOUBLE", "slickdeque_noninv", "max", pa.float64()),
)


def bank_costs(groups: int, steps: int, seed: int = 0) -> tuple[Section, list[Check]]:
    """Nanoseconds a group, range and step: all groups advance, then a random tenth of them.

    Processor time, so that other work on the machine is not counted.
    """
    rng = np.random.default_rng(seed)
    rows: list[tuple[str, ...]] = []
    checks: list[Check] = []
    for label, technique, name, kind in _KINDS:
        windows = bank(technique, resolve(name, [kind]), RANGES, groups)
        batches = [_values(rng, kind, groups) for _ in range(8)]
        _fill_and_check(windows, batches)
        every = _cost(windows, [(batch, None) for batch in batches], steps)
        some = [rng.choice(groups, groups // 10, replace=False) for _ in range(16)]
        tenth = [(batches[i % 8][: groups // 10], some[i]) for i in range(16)]
        # Until the groups have lost step, they are cheaper than they will be.
        _cost(windows, tenth, steps)
        part = _cost(windows, tenth, steps)
        size = windows.nbytes / (groups * max(RANGES))
        rows.append((label, f"{every:.1f} ns", f"{part:.1f} ns", f"{size:.0f}"))
        if label in _TARGETS:
            limits = _TARGETS[label]
            checks.append(Check(f"bank, {label}, all groups advance", limits[0], every, " ns"))
            checks.append(Check(f"bank, {label}, a tenth advances", limits[1], part, " ns"))
    title = f"bank of {groups:,} groups and {len(RANGES)} ranges, a group, range and step"
    columns = ("aggregate", "all groups", "a random tenth", "bytes a partial")
    return Section(title, columns, tuple(rows)), checks


def _values(rng: np.random.Generator, kind: pa.DataType, groups: int) -> pa.Array:
    if kind == pa.int64():
        return pa.array(rng.integers(-(10**6), 10**6, groups))
    return pa.array(rng.normal(100.0, 20.0, groups))


def _fill_and_check(windows: Bank, batches: list[pa.Array]) -> None:
    """Fill the windows; the answers of the first group must equal recomputation."""
    steps = 2 * max(RANGES)
    for i in range(steps):
        answers = windows.advance(batches[i % 8]).values[0].tolist()
    rows = [batches[i % 8][0].as_py() for i in range(steps)]
    compute: Any = math.fsum if isinstance(rows[0], float) else sum
    if windows.aggregate.name == "max":
        compute = max
    wanted = [compute(rows[-size:]) for size in RANGES]
    assert answers == wanted, f"{answers}, not {wanted}"


def _cost(windows: Bank, moves: list[tuple[pa.Array, Any]], steps: int) -> float:
    seconds = []
    for i in range(steps):
        values, groups = moves[i % len(moves)]
        begin = time.process_time()
        windows.advance(values, groups)
        seconds.append(time.process_time() - begin)
    return statistics.median(seconds) / (len(moves[0][0]) * len(RANGES)) * 1e9
