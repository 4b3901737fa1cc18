"""Throughput with one query over the whole window: Figures 16, 23 and 24.

Sections 3.4 and 4.4 of "Algorithms and Optimizations for Incremental Window-Based Aggregations".
Rates are slides in a second of processor time, the fastest of some runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any

from muntin_bench.papers.claims import Claim, Part, at_least, near
from muntin_bench.report import Plot, Section

COMMON = ("panes", "flatfat", "bint", "flatfit", "two_stacks", "daba")
SLICK = {"sum": "slickdeque_inv", "max": "slickdeque_noninv"}
FIGURES = {"sum": 23, "max": 24}
# SlickDeque's throughput above the second best: on average and at most.
LEADS = {"sum": (0.15, 0.19), "max": (0.07, 0.10)}
_CONSTANT = ("flatfit", "two_stacks", "daba")
_FALLING = ("panes", "flatfat", "bint")
# From the smallest of the larger windows to the largest, a constant rate may fall so much.
_SETTLED, _STEADY = 16, 2.0

# Operations that are enough to time panes.
_PANES_OPERATIONS = 1 << 24

# Steps a second, by technique and window.
Rates = Mapping[tuple[str, int], float]


def figures_16_23_24(windows: Sequence[int], slides: int, repeats: int) -> Part:
    """Rates of the thesis's techniques, sums and maxima."""
    from muntin_bench.aggregators.work import workloads  # noqa: PLC0415

    works = workloads()
    sections, plots, claims = [], [], []
    for name, slick in SLICK.items():
        techniques = (*COMMON, slick)
        found: dict[tuple[str, int], float] = {}
        for window in windows:
            found |= slides_a_second(works[name], techniques, window, slides, repeats)
        title = f"Figure {FIGURES[name]}: {name}, million slides a second"
        sections.append(rate_table(title, found, techniques, windows))
        plots.append(rate_plot(f"figure-{FIGURES[name]}", title, found, techniques, windows))
        if name == "max":
            claims += flatfit_claims(found, windows)
        claims += slick_claims(name, found, windows) + group_claims(name, found, windows)
    return Part(tuple(sections), tuple(claims), tuple(plots))


def slides_a_second(
    work: Any, techniques: Sequence[str], window: int, slides: int, repeats: int
) -> dict[tuple[str, int], float]:
    """Techniques in turn on a full window; panes slide less often where that takes long."""
    from muntin_bench.aggregators.work import full  # noqa: PLC0415
    from muntin_bench.optimizer.fit import processor_seconds  # noqa: PLC0415

    steps = {
        each: slides if each != "panes" else _panes_slides(window, slides) for each in techniques
    }
    sides = {
        each: partial(full(work, each, window).run, work.take(0, steps[each]))
        for each in techniques
    }
    taken = processor_seconds(sides, repeats)
    return {(each, window): steps[each] / taken[each] for each in techniques}


def _panes_slides(window: int, slides: int) -> int:
    return max(4, min(slides, _PANES_OPERATIONS // window))


def leads(found: Rates, leader: str, others: Sequence[str], windows: Sequence[int]) -> list[float]:
    """How far a technique is above the best of some others, by window; below zero is behind.

    >>> leads({("a", 8): 3.0, ("b", 8): 2.0, ("c", 8): 1.0}, "a", ("b", "c"), [8])
    [0.5]
    """
    return [
        found[leader, window] / max(found[other, window] for other in others) - 1
        for window in windows
    ]


def flatfit_claims(found: Rates, windows: Sequence[int]) -> list[Claim]:
    """Figure 16: FlatFIT against FlatFAT."""
    ratios = [1 + lead for lead in leads(found, "flatfit", ("flatfat",), windows)]
    behind = [window for window, ratio in zip(windows, ratios, strict=True) if ratio <= 1]
    first = min((window for window in windows if window > max(behind, default=0)), default=0)
    return [
        near("Figure 16", "FlatFIT over FlatFAT, on average", 1.8, fmean(ratios), 1.5),
        near("Figure 16", "FlatFIT over FlatFAT, at most", 2.6, max(ratios), 1.5),
        near("Figure 16", "window from which on FlatFIT is ahead (0: none)", 8, first, 2.0),
    ]


def slick_claims(name: str, found: Rates, windows: Sequence[int]) -> list[Claim]:
    """Figures 23 and 24: SlickDeque against the second best."""
    above = leads(found, SLICK[name], COMMON, windows)
    mean, most = LEADS[name]
    where = f"Figure {FIGURES[name]}"
    return [
        at_least(where, "SlickDeque above the second best, on average", mean, fmean(above), ".0%"),
        at_least(where, "SlickDeque above the second best, at most", most, max(above), ".0%"),
    ]


def group_claims(name: str, found: Rates, windows: Sequence[int]) -> list[Claim]:
    """Which rates stay, and which fall, from a window of 16 to the largest."""
    where = f"Figure {FIGURES[name]}"
    small, large = min(w for w in windows if w >= _SETTLED), windows[-1]
    falls = {each: found[each, small] / found[each, large] for each in (*COMMON, SLICK[name])}
    steady = {each: falls[each] for each in (*_CONSTANT, SLICK[name])}
    falling = {each: falls[each] for each in _FALLING}
    what = f"rate at {small} over rate at {large:,}"
    stays = max(steady.values()) <= _STEADY
    falls_more = min(falling.values()) > max(1.0, min(steady.values()))
    return [
        Claim(where, f"{what}: these stay", "about 1", _listed(steady), stays),
        Claim(where, f"{what}: these fall", "above 1", _listed(falling), falls_more),
    ]


def rate_table(
    title: str, found: Rates, techniques: Sequence[str], windows: Sequence[int]
) -> Section:
    """One row a technique, one column a window."""
    rows = tuple(
        (each, *(f"{found[each, window] / 1e6:.3g}" if (each, window) in found else "-"
                 for window in windows))
        for each in techniques
    )  # fmt: skip
    return Section(title, ("window", *(f"{window:,}" for window in windows)), rows)


def rate_plot(
    name: str, title: str, found: Rates, techniques: Sequence[str], windows: Sequence[int]
) -> Plot:
    """The same as lines."""
    lines = {
        each: tuple((float(w), found[each, w]) for w in windows if (each, w) in found)
        for each in techniques
    }
    return Plot(name, title, "window", "slides a second", lines)


def _listed(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.3g}" for name, value in values.items())
