"""Many groups woven into trees, the pair that saves most first; imports compiled loops."""

from __future__ import annotations

from math import gcd

import numpy as np

from muntin.optimizer import weaving_merge_kernels as merging
from muntin.optimizer.costs_omega import TECHNIQUES, Technique
from muntin.optimizer.weaving_groups import Floats, Groups, Ints
from muntin.optimizer.weaving_loop_kernels import weave
from muntin.optimizer.weaving_rates import quick_omega
from muntin.optimizer.weaving_sample import Sample, Words

# Partners on a tree's list, and trees up to which every pair is priced.
PARTNERS = 16
BREADTH = 1024
# Slides whose quotient is made of numbers up to this are relatives: they share at least one
# edge in so many. A tree remembers so many relatives.
QUOTIENT = 16
RELATIVES = 32


def weave_groups(
    groups: Groups,
    sample: Sample,
    bits: Words,
    technique: Technique,
    per_tree: float,
    free: float = 0.0,
) -> tuple[list[Ints], list[float]]:
    """Merge groups while a merge makes the plan cheaper; gives trees and their edge rates.

    Trees come in order of their first group.

    Args:
        groups: What to merge.
        sample: The positions that edge rates are counted on.
        bits: The groups' edges among them.
        technique: What computes the final answers.
        per_tree: What a tree costs, whatever is in it, per time unit.
        free: Operations per edge that a tree is spared.
    """
    code = TECHNIQUES.index(technique)
    costs = (float(per_tree * sample.unit), float(free))
    prices = merging.Prices(code, *costs, sample.scale, sample.whole > 0)
    state = _state(groups, sample.unit, bits, prices)
    near = _relatives(groups.period) if len(groups) > BREADTH else np.full((len(groups), 1), -1)
    root = weave(bits.copy(), state, near, prices, PARTNERS, BREADTH)
    while np.any(root[root] != root):
        root = root[root]
    roots, tree = np.unique(root, return_inverse=True)
    order = np.argsort(tree, kind="stable")
    trees = np.split(order, np.cumsum(np.bincount(tree))[:-1])
    return trees, (state[roots, merging.EDGES] / sample.unit).tolist()


def _state(groups: Groups, unit: int, bits: Words, prices: merging.Prices) -> Floats:
    """The columns of the merge, with time counted in units of the sample."""
    statistics = groups.statistics
    statistics[:, 2] -= statistics[:, 0] * np.log2(unit)
    statistics[:, 3] /= unit
    state = np.empty((len(groups), merging.COLUMNS))
    state[:, merging.SUMS] = state[:, merging.EDGES] = groups.rates * unit
    state[:, merging.HITS] = np.bitwise_count(bits).sum(axis=1)
    state[:, merging.COUNT : merging.LONGEST + 1] = statistics
    for row in state:
        omega = quick_omega(
            prices.technique, row[merging.EDGES], *row[merging.COUNT : merging.LONGEST + 1]
        )
        row[merging.COST] = prices.per_tree + row[merging.EDGES] * (omega - prices.free)
    return state


def _relatives(period: Ints) -> Ints:
    """Per group those whose slides share most edges with its own, nearest first; -1 for none."""
    near = np.full((len(period), RELATIVES), -1, dtype=np.int64)
    filled = np.zeros(len(period), dtype=np.int64)
    order = np.argsort(period, kind="stable")
    ordered = period[order]
    for upper, lower in _quotients():
        related = np.flatnonzero((period % lower == 0) & (filled < RELATIVES))
        wanted = period[related] // lower * upper
        place = np.minimum(np.searchsorted(ordered, wanted), len(order) - 1)
        fits = (ordered[place] == wanted) & (order[place] != related)
        rows = related[fits]
        near[rows, filled[rows]] = order[place[fits]]
        filled[rows] += 1
    return near


def _quotients() -> list[tuple[int, int]]:
    pairs = [
        (upper, lower)
        for upper in range(1, QUOTIENT + 1)
        for lower in range(1, QUOTIENT + 1)
        if gcd(upper, lower) == 1
    ]
    return sorted(pairs, key=lambda pair: (pair[0] * pair[1], pair))
