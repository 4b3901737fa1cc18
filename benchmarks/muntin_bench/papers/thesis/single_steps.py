"""How long single answers take over 1,024 partials: Figures 27 and 28.

Section 4.4.1.3 of "Algorithms and Optimizations for Incremental Window-Based Aggregations". As
there, the slowest 0.005% are left out. Steps are timed by the processor's counter, whose own cost
of some nanoseconds is part of each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt

from muntin_bench.papers.claims import Claim, Part, at_least, at_most
from muntin_bench.papers.thesis.single_query import COMMON, SLICK
from muntin_bench.report import Section

WINDOW = 1024
OUTLIERS = 0.00005
CATEGORIES = ("min", "25%", "median", "mean", "75%", "max")
# SlickDeque's latency below the second best's: how far that one is above, mean over categories.
LEADS = {"max": 0.08, "sum": 0.75}
# DABA's highest spike above SlickDeque's.
SPIKE = 2.83

Steps = npt.NDArray[np.floating[Any]]


def figures_27_28(steps: int, techniques: Sequence[str] = COMMON) -> Part:
    """Latencies of all techniques, sums and maxima."""
    from muntin_bench.aggregators.latency import nanoseconds_per_cycle, timed_steps  # noqa: PLC0415
    from muntin_bench.aggregators.work import full, workloads  # noqa: PLC0415

    works = workloads()
    cycle = nanoseconds_per_cycle()
    sections, claims = [], []
    for name, slick in SLICK.items():
        found: dict[str, Steps] = {}
        for technique in (*techniques, slick):
            side = full(works[name], technique, WINDOW)
            # The first steps go over cold caches, or compile.
            timed_steps(side, works[name], 0, 1000)
            found[technique] = kept(timed_steps(side, works[name], 1000, steps) * cycle)
        rows = tuple(
            (technique, *(f"{value:,.1f}" for value in categories(taken)))
            for technique, taken in found.items()
        )
        title = f"Figure 27: {name}, nanoseconds a step, window {WINDOW:,}, {steps:,} steps"
        sections.append(Section(title, ("technique", *CATEGORIES), rows))
        claims += _claims(name, slick, found)
    return Part(tuple(sections), tuple(claims))


def kept(taken: Steps) -> Steps:
    """All but the slowest, sorted.

    >>> len(kept(np.arange(100_000.0)))
    99995
    """
    return np.sort(taken)[: len(taken) - int(len(taken) * OUTLIERS)]


def categories(taken: Steps) -> tuple[float, ...]:
    """The six numbers that the thesis compares.

    >>> categories(np.array([1.0, 2.0, 3.0, 4.0, 15.0]))
    (1.0, 2.0, 3.0, 5.0, 4.0, 15.0)
    """
    low, middle, high = np.percentile(taken, (25, 50, 75), method="higher")
    return tuple(map(float, (taken.min(), low, middle, taken.mean(), high, taken.max())))


def _claims(name: str, slick: str, found: Mapping[str, Steps]) -> list[Claim]:
    ours = categories(found[slick])
    best = [
        min(values)
        for values in zip(
            *(categories(taken) for each, taken in found.items() if each != slick), strict=True
        )
    ]
    lower = sum(a <= b for a, b in zip(ours, best, strict=True))
    lead = fmean(b / a - 1 for a, b in zip(ours, best, strict=True))
    claims = [
        at_least("Figure 27", f"{slick}: lowest in how many of 6 categories", 6, lower, "g"),
        at_least(
            "Figure 27", f"{slick}: second best above it, on average", LEADS[name], lead, ".0%"
        ),
    ]
    if "daba" in found:
        spike, median, high = float(found["daba"].max()), float(np.median(found["daba"])), ours[-1]
        claims += [
            at_least(
                "Figure 27",
                f"highest spike of daba above {slick}'s",
                SPIKE,
                spike / high - 1,
                ".0%",
            ),
            at_most("Figure 28", f"{slick}: highest spike over daba's", 1, high / spike),
            at_least("Figure 28", f"median of daba over {slick}'s", 1, median / ours[2]),
        ]
    return claims
