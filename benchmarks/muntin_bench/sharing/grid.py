"""Workloads × strategies × query counts: times and operations, answers compared before."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from muntin.engine import Progress
from muntin.plan.nodes import Strategy
from muntin.windows.edges import Slicing
from muntin_bench.measure import Timing, measure
from muntin_bench.progress import step
from muntin_bench.sharing.data import Market, hour
from muntin_bench.sharing.engine import (
    STRATEGIES,
    Prepared,
    check_equal,
    check_rows,
    prepare,
)
from muntin_bench.sharing.rows import Columns, columns_of
from muntin_bench.sharing.workloads import NAMES, Workload, workload

Side = tuple[Strategy, Slicing]
_PAIRED: tuple[Side, ...] = tuple((strategy, "pairs") for strategy in reversed(STRATEGIES))
# Only windows differ on A, so that is where the ways to slice them are compared.
_SLICED: tuple[Side, ...] = (("slices", "panes"), ("slices", "cutty"), ("unshared", "panes"))


@dataclass(frozen=True)
class Found:
    """What one strategy took for one set of queries: its runs, and its work."""

    workload: str
    size: int
    strategy: str
    slicing: str
    timing: Timing
    planning: float
    progress: Progress

    @property
    def seconds(self) -> float:
        """The median of its runs."""
        return self.timing.median

    @property
    def side(self) -> str:
        """The strategy, and how windows are sliced where that is not by pairs."""
        return self.strategy if self.slicing == "pairs" else f"{self.strategy}, {self.slicing}"


def sides(name: str) -> tuple[Side, ...]:
    """Strategies and slicings that are compared on a workload, ours first."""
    return _PAIRED + _SLICED if name == "A" else _PAIRED


def grid(
    market: Market, sizes: Sequence[int], squares: Sequence[int], repeats: int, patience: float
) -> Iterator[Found]:
    """Measure all strategies on all workloads, small sets first.

    ``squares`` are the sizes of `C regular`. A side that takes longer than ``patience`` seconds
    runs once. All strategies must give the same answers to the last bit, and some are compared
    with sums of the rows themselves.
    """
    small = hour(min(2000, market.trades.num_rows), symbols=50)
    for name in NAMES:
        # Everything is compiled before anything is timed.
        _run_once(small, workload(name, 16), columns_of(small), patience)
    columns = columns_of(market)
    for name in NAMES:
        for size in squares if name == "C regular" else sizes:
            step(f"{name}, {size} queries, all strategies")
            once = _run_once(market, workload(name, size), columns, patience)
            quick: dict[str, Callable[[], Any]] = {
                found.side: prepared.run for prepared, found in once if found.seconds < patience
            }
            timings = measure(quick, repeats=repeats)
            for _, found in once:
                timing = timings.get(found.side)
                yield found if timing is None else replace(found, timing=timing)


def _run_once(
    market: Market, work: Workload, columns: Columns, patience: float
) -> list[tuple[Prepared, Found]]:
    """Run all sides, and compare their answers with each other and with the rows."""
    found: list[tuple[Prepared, Found]] = []
    first: dict[str, Any] = {}
    for side in sides(work.name):
        prepared = prepare(market, work, *side)
        results, progress, taken = _timed(prepared)
        if patience <= taken < 4 * patience:
            # Some of it may have gone into compiling what small sets do not need.
            results, progress, taken = _timed(prepared)
        if not first:
            first = results
            check_rows(results, work, columns)
        check_equal(first, results, f"{work.name}, {work.size} queries, {' '.join(side)}")
        known = (work.name, work.size, *side)
        once = Found(*known, Timing("", (taken,)), prepared.planning, progress)
        found.append((prepared, replace(once, timing=Timing(once.side, (taken,)))))
    return found


def _timed(prepared: Prepared) -> tuple[dict[str, Any], Progress, float]:
    begin = time.perf_counter()
    results, progress = prepared.run()
    return results, progress, time.perf_counter() - begin
