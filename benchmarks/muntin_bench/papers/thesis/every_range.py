"""Throughput with every range from 1 to the window at once: Figures 17, 18, 25 and 26.

The max-multi-query environment of "Algorithms and Optimizations for Incremental Window-Based
Aggregations", sections 3.4.2.2 and 4.4.1.2. A slide answers as many queries as the window has
partials.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from statistics import fmean
from typing import Any

from muntin.aggregators import create
from muntin_bench.papers.claims import Claim, Part, at_least, near
from muntin_bench.papers.thesis.single_query import SLICK, Rates, leads, rate_plot, rate_table

COMMON = ("panes", "flatfat", "bint", "flatfit")
FIGURES = {"sum": 25, "max": 26}
LEADS = {"sum": (0.45, 0.60), "max": (2.66, 3.45)}
# Panes take n² operations per slide; beyond this they only hold up the others.
_PANES = 1024


def figures_17_18_25_26(windows: Sequence[int], answers: int, repeats: int) -> Part:
    """Slides a second by window, sums and maxima."""
    from muntin_bench.aggregators.work import workloads  # noqa: PLC0415

    works = workloads()
    sections, plots, claims = [], [], []
    for name, slick in SLICK.items():
        found: dict[tuple[str, int], float] = {}
        for window in windows:
            found |= slides_a_second(works[name], (*COMMON, slick), window, answers, repeats)
        numbers = "17 and 26" if name == "max" else "25"
        title = f"Figure {numbers}: {name} with every range, million slides a second"
        techniques = (*COMMON, slick)
        sections.append(rate_table(title, found, techniques, windows))
        plots.append(rate_plot(f"figure-{FIGURES[name]}", title, found, techniques, windows))
        if name == "max":
            claims += flatfit_claims(found, windows)
        claims += slick_claims(name, found, windows)
    return Part(tuple(sections), tuple(claims), tuple(plots))


def slides_a_second(
    work: Any, techniques: Sequence[str], window: int, answers: int, repeats: int
) -> dict[tuple[str, int], float]:
    """Techniques in turn on one window with all its ranges; their answers must be the same."""
    from muntin_bench.optimizer.fit import processor_seconds  # noqa: PLC0415

    sides: dict[str, Callable[[], Any]] = {}
    steps = max(answers // window, 16)
    values = work.take(0, steps)
    last: list[Any] = []
    for technique in techniques:
        if technique == "panes" and window > _PANES:
            continue
        side = create(technique, work.aggregate, range(1, window + 1))
        side.run(work.take(0, window + 1))
        last.append(side.run(values)[-1].tolist())
        assert last[-1] == last[0], f"{technique} of {work.name}, window {window}"
        sides[technique] = partial(side.run, values)
    taken = processor_seconds(sides, repeats)
    return {(name, window): steps / seconds for name, seconds in taken.items()}


def flatfit_claims(found: Rates, windows: Sequence[int]) -> list[Claim]:
    """Figure 18: FlatFIT over FlatFAT."""
    several = [window for window in windows if window > 1]
    ratios = [1 + lead for lead in leads(found, "flatfit", ("flatfat",), several)]
    return [
        near("Figure 18", "FlatFIT over FlatFAT, on average", 10, fmean(ratios), 1.5),
        near("Figure 18", "FlatFIT over FlatFAT, at most", 17, max(ratios), 1.5),
        at_least("Figure 17", "FlatFIT over FlatFAT, windows from 2 on, at least", 1, min(ratios)),
    ]


def slick_claims(name: str, found: Rates, windows: Sequence[int]) -> list[Claim]:
    """Figures 25 and 26: SlickDeque against the second best."""
    several = [window for window in windows if window >= 4]
    above = [
        found[SLICK[name], window]
        / max(rate for (each, w), rate in found.items() if w == window and each in COMMON)
        - 1
        for window in several
    ]
    mean, most = LEADS[name]
    where = f"Figure {FIGURES[name]}"
    return [
        at_least(where, "SlickDeque above the second best, on average", mean, fmean(above), ".0%"),
        at_least(where, "SlickDeque above the second best, at most", most, max(above), ".0%"),
        at_least(where, "SlickDeque above the second best, at least", 0, min(above), ".0%"),
    ]
