"""Ω: how many final operations a technique performs per edge of a tree, on average.

Table 11 of "Algorithms and Optimizations for Incremental Window-Based Aggregations" with its
slips mended: one partial takes FlatFAT no operation (7.4), SlickDeque (Inv) pays twice per
distinct number of partials (7.6), and a deque over uniform input holds the harmonic number of
nodes (7.7).
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from muntin.errors import AggregateError, did_you_mean

Technique: TypeAlias = Literal["panes", "flatfat", "flatfit", "slickdeque_inv", "slickdeque_noninv"]
TECHNIQUES: tuple[Technique, ...] = get_args(Technique)

# Up to this the harmonic number is summed; above, its expansion is exact to nine digits.
_SUMMED = 64
_HARMONIC = np.cumsum(np.concatenate([[0.0], 1.0 / np.arange(1, _SUMMED + 1)]))


def check_technique(technique: str) -> None:
    """Refuses a technique without a cost."""
    if technique not in TECHNIQUES:
        raise AggregateError(
            f"no cost is known for the technique {technique!r}",
            hint=did_you_mean(str(technique), TECHNIQUES),
        )


def omega(technique: Technique, partials: npt.ArrayLike, overlaps: npt.ArrayLike) -> float:
    """Final operations per edge of a tree with these unique queries.

    Args:
        technique: What computes the final answers.
        partials: How many partials the range of each query spans: range times edge rate.
        overlaps: Range over slide of each query; only panes ask for it.

    A query that fires once in a slide reads `range * edges` partials, which is `range / slide`
    an edge: so panes pay for what fires, while the other techniques keep up with every edge.
    Partials are rounded to whole ones, at least one.

    >>> omega("panes", [3, 4], [3.0, 2.0]), omega("flatfit", [3, 4], [3.0, 2.0])
    (5.0, 6.0)
    >>> omega("slickdeque_inv", [3, 3, 4], [3, 3, 4]), omega("flatfat", [1, 4], [1, 4])
    (4.0, 1.75)
    >>> omega("slickdeque_noninv", [1], [1])
    2.0
    """
    check_technique(technique)
    counts = whole(partials)
    if not len(counts):
        return 0.0
    if technique == "panes":
        return float(np.sum(np.asarray(overlaps, dtype=np.float64)))
    if technique == "flatfat":
        return float(_flatfat(counts).sum())
    if technique == "flatfit":
        return 3.0 * len(counts)
    if technique == "slickdeque_inv":
        return 2.0 * len(np.unique(counts))
    longest = counts.max()
    return float(2.0 - 2.0 / longest + len(counts) + harmonic(longest))


def omega_alone(
    technique: Technique, partials: npt.ArrayLike, overlaps: npt.ArrayLike
) -> npt.NDArray[np.float64]:
    """Final operations per edge of each query, if every one had a tree of its own.

    >>> omega_alone("slickdeque_inv", [3, 3], [3, 3]).tolist()
    [2.0, 2.0]
    """
    check_technique(technique)
    counts = whole(partials)
    if technique == "panes":
        return np.array(overlaps, dtype=np.float64)
    if technique == "flatfat":
        return _flatfat(counts)
    if technique == "slickdeque_noninv":
        return np.asarray(3.0 - 2.0 / counts + harmonic(counts))
    return np.full(len(counts), 3.0 if technique == "flatfit" else 2.0)


def whole(partials: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Mean numbers of partials as whole ones, halves up, at least one.

    >>> whole([0.2, 1.5, 2.4]).tolist()
    [1.0, 2.0, 2.0]
    """
    return np.maximum(1.0, np.floor(np.asarray(partials, dtype=np.float64) + 0.5))


def harmonic(n: npt.ArrayLike) -> Any:
    """1 + 1/2 + ... + 1/n, the mean length of a deque over n partials in random order.

    >>> round(float(harmonic(64)), 2), float(harmonic(2))
    (4.74, 1.5)
    """
    counts = np.asarray(n, dtype=np.float64)
    summed = _HARMONIC[np.minimum(counts, _SUMMED).astype(np.int64)]
    expansion = np.log(counts) + np.euler_gamma + 1 / (2 * counts) - 1 / (12 * counts**2)
    return np.where(counts <= _SUMMED, summed, expansion)


def _flatfat(counts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Nodes that cover a range, less one, on average over where the range starts."""
    several = np.maximum(counts, 2.0)
    # frexp gives the floor of the logarithm of whole numbers without rounding.
    lower = np.frexp(several - 1)[1] - 1
    cost = lower + (several - 1) / np.exp2(np.frexp(several)[1] - 1)
    return np.where(counts > 1, cost, 0.0)
