"""When sharing slices pays, by the paper's formulas: Figure 4.

Section 3.2 of "On-the-Fly Sharing for Streamed Aggregation". Queries that share nothing aggregate
every row n times and few partials; those that share aggregate it once, and partials of slices that
all of them cut. Costs are aggregations a second, for windows of the paper's workload A.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from math import ceil
from statistics import fmean

import numpy as np

from muntin.planner.costs.formula import WindowQuery
from muntin_bench.papers.claims import Claim, Part, at_least, near
from muntin_bench.report import Plot, Section

REAL_RATE = 375.0
LOW_RATE = 0.0005
# What the low rate is if it was meant per millisecond.
PER_MILLISECOND = 1000 * LOW_RATE
CROSSING = 83
# Seconds, drawn from thirty years, on which edges are looked for: a rate is within 1% of the truth.
_SAMPLE = np.random.default_rng(0).integers(0, 10**9, 1 << 17)
_SHOWN = (1, 2, 4, 8, 16, 32, 64, 83, 128, 256)


@dataclass(frozen=True)
class Costs:
    """Final aggregations a second of the first n queries, with and without sharing."""

    queries: int
    unshared: float
    shared: float

    def totals(self, rate: float) -> tuple[float, float]:
        """All aggregations a second, unshared and shared, of Table 3 over the common period."""
        return self.queries * rate + self.unshared, rate + self.shared


def costs(windows: Sequence[tuple[int, int]]) -> list[Costs]:
    """Costs of one window, of the first two, and so on; windows are (range, slide)."""
    found: list[Costs] = []
    edges = np.zeros(len(_SAMPLE), np.bool_)
    unshared = overlaps = 0.0
    for number, (range_, slide) in enumerate(windows, start=1):
        for period, phase in WindowQuery(range_, slide).classes:
            edges |= _SAMPLE % period == phase
        unshared += ceil(2 * range_ / slide) / slide
        overlaps += range_ / slide
        found.append(Costs(number, unshared, float(edges.mean()) * overlaps))
    return found


def crossing(found: Sequence[Costs], rate: float) -> int:
    """The number of queries from which on sharing costs more; one past the last if it never does.

    >>> crossing([Costs(1, 1, 1), Costs(2, 1, 9), Costs(3, 2, 12)], rate=1)
    2
    """
    for each in reversed(found):
        unshared, shared = each.totals(rate)
        if shared <= unshared:
            return each.queries + 1
    return found[0].queries


def figure_4(queries: int, seeds: Sequence[int]) -> Part:
    """Costs by number of queries, and where the lines cross, at three rates."""
    from muntin_bench.sharing.workloads import windows  # noqa: PLC0415

    every = [costs(list(islice(windows(seed), queries))) for seed in seeds]
    rates = (REAL_RATE, PER_MILLISECOND, LOW_RATE)
    shown = [number for number in _SHOWN if number <= queries]
    rows = tuple(
        (f"{rate:g} rows per second, {side}", *(f"{_mean(every, n, rate)[k]:,.4g}" for n in shown))
        for rate in rates
        for k, side in enumerate(("unshared", "shared"))
    )
    section = Section(
        f"Figure 4: aggregations a second by number of queries, mean of {len(seeds)} seeds",
        ("rate, strategy", *map(str, shown)),
        rows,
    )
    return Part((section,), _claims(every), (_plot(every[0]),))


def _mean(every: Sequence[Sequence[Costs]], number: int, rate: float) -> tuple[float, float]:
    found = [each[number - 1].totals(rate) for each in every]
    return fmean(pair[0] for pair in found), fmean(pair[1] for pair in found)


def _claims(every: Sequence[Sequence[Costs]]) -> tuple[Claim, ...]:
    ratios = [
        each.totals(REAL_RATE)[0] / each.totals(REAL_RATE)[1]
        for found in every
        for each in found[1:]
    ]
    crossings = {
        rate: fmean(crossing(found, rate) for found in every)
        for rate in (LOW_RATE, PER_MILLISECOND)
    }
    what = "queries from which sharing costs more, at {:g} rows per second"
    return (
        at_least(
            "Figure 4",
            "unshared over shared at 375 rows per second, from 2 queries on, at least",
            1,
            min(ratios),
        ),
        near("Figure 4", what.format(LOW_RATE), CROSSING, crossings[LOW_RATE], 1.25),
        near(
            "Figure 4",
            what.format(PER_MILLISECOND) + " (0.0005 a millisecond)",
            CROSSING,
            crossings[PER_MILLISECOND],
            1.25,
        ),
    )


def _plot(found: Sequence[Costs]) -> Plot:
    lines = {
        f"{rate:g} rows per second, {side}": tuple(
            (float(each.queries), each.totals(rate)[k]) for each in found
        )
        for rate in (REAL_RATE, PER_MILLISECOND, LOW_RATE)
        for k, side in enumerate(("unshared", "shared"))
    }
    return Plot("figure-4", "Figure 4: to share or not", "queries", "aggregations a second", lines)
