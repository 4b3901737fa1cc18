"""Operations to count edges by the Bit Set and by Formula F1: Figure 34.

Section 5.3 of "Algorithms and Optimizations for Incremental Window-Based Aggregations", for the
slides 1, 2, ..., n with multiples kept: the Bit Set marks every edge of every slide over the least
common multiple, F1 goes over all groups of slides. Beside the formulas, what our two take.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from math import lcm

from muntin.errors import WindowError
from muntin.planner.edges.counts import bitset_count
from muntin.planner.edges.f1 import f1_terms
from muntin.windows.edges import EdgeClass
from muntin_bench.papers.claims import Claim, Part, at_least
from muntin_bench.report import Plot, Section

_PATIENCE = 0.005
# F1 visits 2ⁿ groups, one after another in Python: a second or two for 2²⁰.
_F1_SLIDES = 18


def bitset_operations(n: int) -> int:
    """Positions marked, equation 5.11.

    >>> bitset_operations(4)
    25
    """
    period = lcm(*range(1, n + 1))
    return sum(period // slide for slide in range(1, n + 1))


def f1_operations(n: int) -> int:
    """Multiples worked out and terms added, all groups together.

    >>> f1_operations(4)
    32
    """
    return n << (n - 1)


def figure_34(slides: Sequence[int]) -> Part:
    """Formulas for all numbers of slides, seconds for those that end."""
    rows = []
    for n in slides:
        marked, grouped = bitset_operations(n), f1_operations(n)
        rows.append(
            (
                str(n),
                f"{marked:,.4g}",
                f"{grouped:,.4g}",
                f"{marked / grouped:,.3g}",
                *_times(n),
            )
        )
    columns = ("slides", "operations of Bit Set", "of F1", "Bit Set / F1", "seconds", "of F1")
    lines = {
        "Bit Set": tuple((float(n), float(bitset_operations(n))) for n in slides),
        "F1": tuple((float(n), float(f1_operations(n))) for n in slides),
    }
    return Part(
        (
            Section(
                "Figure 34: operations to count the edges of slides 1 to n", columns, tuple(rows)
            ),
        ),
        _claims(slides),
        (Plot("figure-34", "Figure 34: operations to count edges", "slides", "operations", lines),),
    )


def _times(n: int) -> tuple[str, str]:
    classes: list[EdgeClass] = [(slide, 0) for slide in range(1, n + 1)]
    # A bit set over everything counts every position: one slide has all edges.
    by_bits = _seconds(lambda: bitset_count(classes))
    by_f1 = _seconds(lambda: f1_terms(classes)) if n <= _F1_SLIDES else "-"
    return by_bits, by_f1


def _seconds(count: Callable[[], object]) -> str:
    begin = time.process_time()
    runs = 0
    while (taken := time.process_time() - begin) < _PATIENCE or not runs:
        try:
            count()
        except WindowError:
            return "refused"
        runs += 1
    return f"{taken / runs:.2g}"


def _claims(slides: Sequence[int]) -> tuple[Claim, ...]:
    ratios = [bitset_operations(n) / f1_operations(n) for n in slides]
    ahead = next((n for n, ratio in zip(slides, ratios, strict=True) if ratio > 1), None)
    halves = len(ratios) // 2
    return (
        at_least("Figure 34", f"Bit Set / F1 operations at {slides[-1]} slides", 1, ratios[-1]),
        Claim(
            "Figure 34",
            "the ratio grows without end, as eⁿ / 2ⁿ",
            "grows",
            f"{ratios[halves]:,.3g} at {slides[halves]}, {ratios[-1]:,.3g} at {slides[-1]};"
            f" above 1 from {ahead}",
            ratios[-1] > ratios[halves] > ratios[0],
        ),
    )
