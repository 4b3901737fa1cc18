"""Ratios that the techniques promise to keep, each measured within one run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from muntin.aggregators import create
from muntin.bench.aggregators_work import Workload, full
from muntin.bench.measure import measure
from muntin.bench.report import Check, Section
from muntin.compiled import compiled

_PROMISED = (
    ("slickdeque_inv", "sum", 4.0),
    ("slickdeque_inv", "sum of doubles", 8.0),
    ("slickdeque_noninv", "max", 8.0),
)
_SMALL, _LARGE = 16, 1 << 20


@compiled
def running_sum(values: npt.NDArray[Any], out: npt.NDArray[Any]) -> None:
    """The plain loop that others are compared with."""
    total = values[0] - values[0]
    for i in range(len(values)):
        total += values[i]
        out[i] = total


def against_running_sum(works: dict[str, Workload], steps: int) -> tuple[Section, list[Check]]:
    """SlickDeques against a running sum over the same array, on a small and a large window."""
    rows: list[tuple[str, ...]] = []
    checks: list[Check] = []
    for technique, name, limit in _PROMISED:
        work = works[name]
        values = work.take(0, steps)
        out = np.empty_like(values)
        sides: dict[str, Callable[[], Any]] = {"sum": partial(running_sum, values, out)}
        for window in (_SMALL, 1 << 10, _LARGE):
            side = full(work, technique, window)
            sides[str(window)] = partial(side.run, values)
        found = {key: timing.median for key, timing in measure(sides, repeats=7).items()}
        ratios = [found[key] / found["sum"] for key in list(sides)[1:]]
        rows.append((f"{technique}, {name}", *(f"{ratio:.2f}×" for ratio in ratios)))
        checks.append(Check(f"{technique}, {name}, against a running sum", limit, max(ratios)))
        if name != "sum of doubles":
            fall = found[str(_LARGE)] / found[str(_SMALL)]
            checks.append(Check(f"{technique} from window 16 to 2^20", 2.0, fall))
    columns = ("time of a running sum = 1", "window 16", "2^10", "2^20")
    return Section("against a compiled running sum", columns, tuple(rows)), checks


def many_ranges(work: Workload, counts: Sequence[int], answers: int) -> Section:
    """FlatFIT, FlatFAT and SlickDeque with every range from 1 up: rates, and their ratio."""
    names = ("flatfat", "flatfit", "slickdeque_inv")
    rows = []
    for count in counts:
        values = work.take(0, max(answers // count, 64))
        sides: dict[str, Callable[[], Any]] = {}
        for name in names:
            side = create(name, work.aggregate, range(1, count + 1))
            side.run(work.take(0, count + 1))
            sides[name] = partial(side.run, values)
        found = {name: timing.median for name, timing in measure(sides, repeats=3).items()}
        rows.append(
            (
                f"ranges 1 to {count}",
                *(f"{len(values) * count / found[name]:.3g}" for name in names),
                f"{found['flatfat'] / found['flatfit']:.1f}×",
            )
        )
    columns = ("answers a second", *names, "flatfit / flatfat")
    return Section("many ranges at once, sum", columns, tuple(rows))
