"""Ratios that the techniques promise to keep, each measured within one run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from muntin._compiled import compiled
from muntin.aggregators import create
from muntin_bench.aggregators.work import Workload, full
from muntin_bench.measure import Timing, measure
from muntin_bench.report import Check, Section

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
    timed: list[tuple[Timing, ...]] = []
    for technique, name, limit in _PROMISED:
        work = works[name]
        values = work.take(0, steps)
        out = np.empty_like(values)
        sides: dict[str, Callable[[], Any]] = {"sum": partial(running_sum, values, out)}
        for window in (_SMALL, 1 << 10, _LARGE):
            side = full(work, technique, window)
            sides[str(window)] = partial(side.run, values)
        found = measure(sides, repeats=7)
        base, *others = found.values()
        ratios = [timing.over(base) for timing in others]
        rows.append((f"{technique}, {name}", *map(str, ratios)))
        timed.append(
            tuple(replace(each, side=f"{rows[-1][0]}, {each.side}") for each in found.values())
        )
        worst = max(ratios, key=lambda ratio: ratio.value)
        checks.append(Check.of(f"{technique}, {name}, against a running sum", limit, worst))
        if name != "sum of doubles":
            fall = found[str(_LARGE)].over(found[str(_SMALL)])
            checks.append(Check.of(f"{technique} from window 16 to 2^20", 2.0, fall))
    columns = ("time of a running sum = 1", "window 16", "2^10", "2^20")
    title = "against a compiled running sum (range of the turns)"
    return Section(title, columns, tuple(rows), tuple(timed)), checks


def many_ranges(work: Workload, counts: Sequence[int], answers: int) -> Section:
    """FlatFIT, FlatFAT and SlickDeque with every range from 1 up: rates, and their ratio."""
    names = ("flatfat", "flatfit", "slickdeque_inv")
    rows, timed = [], []
    for count in counts:
        values = work.take(0, max(answers // count, 64))
        sides: dict[str, Callable[[], Any]] = {}
        for name in names:
            side = create(name, work.aggregate, range(1, count + 1))
            side.run(work.take(0, count + 1))
            sides[name] = partial(side.run, values)
        found = measure(sides, repeats=3)
        rows.append(
            (
                f"ranges 1 to {count}",
                *(f"{len(values) * count / found[name].median:.3g}" for name in names),
                str(found["flatfat"].over(found["flatfit"])),
            )
        )
        timed.append(
            tuple(replace(found[name], side=f"{name}, ranges 1 to {count}") for name in names)
        )
    columns = ("answers per second", *names, "flatfit / flatfat")
    return Section("many ranges at once, sum", columns, tuple(rows), tuple(timed))
