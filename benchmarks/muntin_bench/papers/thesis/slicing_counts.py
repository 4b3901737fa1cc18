"""Partials per window by slicing: Table 1, counted.

Section 2.3.1 of "Algorithms and Optimizations for Incremental Window-Based Aggregations".
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

from muntin.windows.edges import SLICINGS, Slicing, edge_classes, edges_between
from muntin_bench.papers.claims import Claim, Part
from muntin_bench.report import Section

FORMULAS: dict[Slicing, tuple[str, str, Callable[[int, int], int]]] = {
    "panes": ("r/s", "r/gcd(r, s)", lambda r, s: r // gcd(r, s)),
    "pairs": ("r/s", "2 ⌊r/s⌋ + 1", lambda r, s: 2 * (r // s) + 1 if r % s else r // s),
    "cutty": ("r/s", "⌈r/s⌉", lambda r, s: -(-r // s)),
}
# Figures 2 to 4, and the pair of the sharing paper's Figure 1.
_EXAMPLES = ((4, 1), (14, 8), (5, 3), (18, 15))


def partials(range_: int, slide: int, slicing: Slicing) -> int:
    """Slices that a window is put together from, counted over its edges.

    >>> [partials(14, 8, slicing) for slicing in SLICINGS]
    [7, 3, 2]
    """
    end = 3 * slide
    classes = edge_classes(range_, slide, 0, slicing)
    return len(edges_between(classes, end - range_ + 1, end)) + 1


def table_1(longest: int) -> Part:
    """Every range up to the longest with every slide up to the range, by the three slicings."""
    windows = [(r, s) for r in range(1, longest + 1) for s in range(1, r + 1)]
    rows, claims = [], []
    for slicing in SLICINGS:
        whole, broken, formula = FORMULAS[slicing]
        for divides, printed in ((True, whole), (False, broken)):
            own = [(r, s) for r, s in windows if (r % s == 0) == divides]
            same = sum(partials(r, s, slicing) == formula(r, s) for r, s in own)
            case = f"{slicing}, r is {'a' if divides else 'no'} multiple of s"
            rows.append((case, printed, f"{same:,} of {len(own):,}"))
            claims.append(
                Claim(
                    "Table 1", case, printed, f"{same:,} of {len(own):,} windows", same == len(own)
                )
            )
    examples = tuple(
        (f"range {r}, slide {s}", *(str(partials(r, s, slicing)) for slicing in SLICINGS))
        for r, s in _EXAMPLES
    )
    return Part(
        (
            Section(
                f"Table 1: partials per window, ranges up to {longest}",
                ("slicing", "thesis", "windows where the count is that"),
                tuple(rows),
            ),
            Section("Table 1: partials counted", ("window", *SLICINGS), examples),
        ),
        tuple(claims),
    )
