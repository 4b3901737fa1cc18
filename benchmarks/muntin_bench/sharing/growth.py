"""What many queries, and groups, cost over few: sets of queries timed in turn on one core."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import cycle
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from muntin.engine import Progress
from muntin_bench.measure import Timing, measure
from muntin_bench.progress import step
from muntin_bench.report import Check, Section
from muntin_bench.sharing.data import Market
from muntin_bench.sharing.engine import Prepared, check_rows, plain_pass, prepare
from muntin_bench.sharing.rows import Columns, columns_of
from muntin_bench.sharing.workloads import NAMES, Workload, workload

_PASS = "plain pass"
_GROUPED = "by symbol"
# How much dearer than a plain pass, and than fewer queries, a set may be.
_PASSES = {"B": 100.0, "C regular": 80.0, "C low sharing": 200.0}
_FROM_SMALL = {"A": 2.0, "B": 2.0, "C regular": 2.0, "C low sharing": 3.0}
_TO_LARGE = {"A": 3.0, "B": 3.0, "C regular": 3.0}
_FROM_UNGROUPED = 4.0


def growth(
    market: Market, sizes: tuple[int, int, int], seeds: Sequence[int]
) -> tuple[Section, list[Check]]:
    """Times of three sizes of each workload and of a plain pass, in alternating order.

    Each run takes the queries of another seed; a time is the median over the seeds. The largest
    sets are of the first seed only: they take long to plan, and differ less.
    """
    rows: list[tuple[str, ...]] = []
    checks: list[Check] = []
    timed: list[tuple[Timing, ...]] = []
    columns = columns_of(market)
    for name in NAMES:
        step(f"{name}, growth to {sizes[-1]:,} queries")
        asked = sizes if name in _TO_LARGE else sizes[:2]
        sides: dict[str, Callable[[], Any]] = {_PASS: partial(plain_pass, market)}
        planning: dict[str, float] = {}
        for size in asked:
            drawn = seeds[:1] if size == sizes[2] else seeds
            turns = Turns([prepare(market, workload(name, size, seed)) for seed in drawn])
            check_rows(turns()[0], workload(name, size, drawn[0]), columns)
            sides[str(size)], planning[str(size)] = turns, turns.planning
        if name == "C regular":
            sides[_GROUPED] = _grouped(market, sizes[1], seeds, columns)
        timings = measure(sides, repeats=len(seeds))
        rows += [_row(name, side, timings, planning) for side in timings]
        timed.append(tuple(replace(each, side=f"{name}, {side}") for side, each in timings.items()))
        checks += _checks(name, [str(size) for size in asked], timings)
    columns_shown = ("workload, queries", "ms (range)", "plain passes (range)", "planning ms")
    title = f"growth of `cells`, on one core, median of {len(seeds)} seeds"
    return Section(title, columns_shown, tuple(rows), tuple(timed)), checks


class Turns:
    """Runs one prepared set of queries after the other, over and over."""

    def __init__(self, prepared: Sequence[Prepared]) -> None:
        self.planning = statistics.median(each.planning for each in prepared)
        self._turns = cycle(prepared)

    def __call__(self) -> tuple[dict[str, pa.Table], Progress]:
        """The results of the next set."""
        return next(self._turns).run()


def _grouped(
    market: Market, size: int, seeds: Sequence[int], columns: Columns
) -> Callable[[], Any]:
    works = [workload("C regular", size, seed) for seed in seeds]
    turns = Turns([prepare(market, work, grouped=True) for work in works])
    check_groups(turns()[0], works[0], market, columns)
    return turns


def check_groups(
    results: Mapping[str, pa.Table], work: Workload, market: Market, columns: Columns
) -> int:
    """Compare the results of some symbols with sums of their rows, as :func:`check_rows` does."""
    symbols = market.close.column("symbol")
    compared = 0
    for code in range(0, len(symbols), max(len(symbols) // 3, 1)):
        own = {name: column[columns["symbol"] == code] for name, column in columns.items()}
        chosen = {
            name: table.filter(pc.field("symbol") == symbols[code]).sort_by("window_start")
            for name, table in results.items()
        }
        compared += check_rows(chosen, work, own)
    return compared


def _row(
    name: str, side: str, timings: Mapping[str, Timing], planning: Mapping[str, float]
) -> tuple[str, ...]:
    timing = timings[side]
    return (
        f"{name}, {side}",
        timing.milliseconds,
        str(timing.over(timings[_PASS])),
        f"{planning[side] * 1e3:,.0f}" if side in planning else "",
    )


def _checks(name: str, sizes: list[str], timings: Mapping[str, Timing]) -> list[Check]:
    small, middle, *large = sizes
    many = timings[middle]
    grown = many.over(timings[small])
    checks = [Check.of(f"{name}, {small} to {middle} queries", _FROM_SMALL[name], grown)]
    if large:
        grown = timings[large[0]].over(many)
        checks.append(Check.of(f"{name}, {middle} to {large[0]} queries", _TO_LARGE[name], grown))
    if name in _PASSES:
        passes = many.over(timings[_PASS])
        checks.append(Check.of(f"{name}, {middle} queries in plain passes", _PASSES[name], passes))
    if _GROUPED in timings:
        dearer = timings[_GROUPED].over(many)
        checks.append(Check.of(f"{name}, {middle} queries by symbol", _FROM_UNGROUPED, dearer))
    return checks
