"""Two formulas that the compiled merge and plain Python share: edge rates and Ω, in numbers."""

from __future__ import annotations

from math import expm1, log, log2

# Euler's constant: a harmonic number less the logarithm, in the long run.
EULER = 0.5772156649015329


def union_rate(scale: float, exact: bool, count: float, hits: float, sums: float) -> float:
    """The edge rate of a tree from marked positions and the exact rates of its groups.

    The error of the groups' own counts is known and shared by the tree's, so most of it can be
    taken off; the less, the more the groups overlap.

    Args:
        scale: What one marked position stands for.
        exact: Whether positions are a whole period, so that there is no error.
        count: Positions that are edges of the tree.
        hits: Positions that are edges of a group, summed over its groups.
        sums: The rates of its groups, summed.

    >>> union_rate(0.01, False, 10.0, 12.0, 0.12), union_rate(0.01, False, 0.0, 0.0, 1e-6)
    (0.1, 1e-06)
    """
    if exact:
        return scale * count
    if hits == 0.0:
        return sums
    share = count / hits
    return min(sums, scale * count + share * share * (sums - scale * hits))


def quick_omega(
    technique: int, edges: float, count: float, overlap: float, logs: float, longest: float
) -> float:
    """Ω from four numbers a tree: windows, Σ range/slide, Σ log₂ range and the longest range.

    Exact for panes, FlatFIT and SlickDeque (Non-Inv) but for rounding to whole partials. FlatFAT
    takes the mean logarithm, and SlickDeque (Inv) the distinct values that are expected when
    ranges fall anywhere below the longest. Techniques are numbered as in `TECHNIQUES`.

    >>> quick_omega(0, 0.5, 2.0, 5.0, 5.6, 8.0), quick_omega(2, 0.5, 2.0, 5.0, 5.6, 8.0)
    (5.0, 6.0)
    """
    if technique == 0:
        return overlap
    if technique == 1:
        return max(0.0, logs + count * (log2(edges) + 0.5))
    if technique == 2:
        return 3.0 * count
    partials = max(1.0, edges * longest)
    if technique == 3:
        return 2.0 * max(1.0, -partials * expm1(-count / partials))
    if partials < 1.5:
        return 1.0 + count
    return 2.0 - 1.5 / partials + count + log(partials) + EULER
