"""Memory by window size, powers of two and others: Figures 19 and 29.

"Algorithms and Optimizations for Incremental Window-Based Aggregations". The thesis takes the
resident size of a process, in which a buffer of rows is held; here it is the bytes of a
technique's arrays alone, on random values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from muntin_bench.papers.claims import Claim, Part, at_least, near
from muntin_bench.papers.thesis.single_query import COMMON, SLICK
from muntin_bench.report import Plot, Section

Bytes = Mapping[tuple[str, int], int]


def figures_19_29(powers: Sequence[int]) -> Part:
    """Bytes for windows of 2ᵏ, 2ᵏ + 1 and 3/2 · 2ᵏ partials."""
    from muntin_bench.aggregators.work import full, workloads  # noqa: PLC0415

    works = workloads()
    windows = [n for k in powers for n in (1 << k, (1 << k) + 1, 3 << (k - 1))]
    sides = [("max", each) for each in (*COMMON, SLICK["max"])] + [("sum", SLICK["sum"])]
    found = {
        (technique, window): full(works[name], technique, window).nbytes
        for name, technique in sides
        for window in windows
    }
    techniques = [technique for _, technique in sides]
    rows = tuple(
        (each, *(f"{found[each, window] / window:.3g}" for window in windows))
        for each in techniques
    )
    title = "Figures 19 and 29: bytes per partial of the window"
    lines = {
        each: tuple((float(window), float(found[each, window])) for window in windows)
        for each in techniques
    }
    return Part(
        (Section(title, ("window", *(f"{window:,}" for window in windows)), rows),),
        _claims(found, windows),
        (Plot("figure-29", "Figures 19 and 29: memory", "window", "bytes", lines),),
    )


def _claims(found: Bytes, windows: Sequence[int]) -> tuple[Claim, ...]:
    def times(more: str, less: str) -> list[float]:
        return [found[more, window] / found[less, window] for window in windows]

    trees, slick = times("flatfat", "flatfit"), times("panes", SLICK["max"])
    inverse = times(SLICK["sum"], "panes")
    return (
        near("Figure 19", "FlatFAT over FlatFIT, on average", 1.4, fmean(trees), 1.25),
        near("Figure 19", "FlatFAT over FlatFIT, at most", 1.9, max(trees), 1.25),
        near("Figure 29", "SlickDeque (Inv) over Panes, on average", 1, fmean(inverse), 1.1),
        at_least("Figure 29", "Panes over SlickDeque (Non-Inv), on average", 2, fmean(slick)),
        at_least("Figure 29", "Panes over SlickDeque (Non-Inv), at most", 5, max(slick)),
    )
