"""Refinement: groups moved to other trees, one at a time, while that makes the plan cheaper.

A greedy merge never takes a group out of a tree again, and among many groups it looks at likely
partners only. Moving groups afterwards costs little, because a group has few of the positions
that edges are counted on, and more than makes up for that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Floats, Ints, Words
from muntin.planner.trees.merges import (
    COST,
    COUNT,
    EDGES,
    HITS,
    LOGS,
    LONGEST,
    OVERLAP,
    SUMS,
    Prices,
    cost_of,
    union_rate,
)

# Trees up to which groups are moved, and how often each group is looked at.
MOST_TREES = 128
ROUNDS = 3
WORD = 64
# Less of a plan's cost is not worth a move.
LEAST = 1e-9


def refine(tree: Ints, bits: Words, state: Floats, prices: Prices) -> Ints:
    """The tree of each group, after moves.

    Args:
        tree: The tree of each group, numbered from 0.
        bits: The groups' edges.
        state: What is known of each group alone, in the columns of the merge.
        prices: What trees cost.
    """
    trees = int(tree.max()) + 1
    if not 1 < trees <= MOST_TREES:
        return tree
    tree = tree.copy()
    move_groups(tree, bits, state, prices, trees)
    return tree


@compiled
def positions_of(row: Any, found: Any) -> int:
    """List the positions that a group marks; gives how many there are."""
    size = 0
    for word in range(len(row)):
        left = row[word]
        if left != 0:
            for bit in range(WORD):
                if (left >> np.uint64(bit)) & np.uint64(1):
                    found[size] = word * WORD + bit
                    size += 1
    return size


@compiled
def set_cost(totals: Any, marked: Any, tree: int, prices: Prices) -> None:
    """Set the edges and the cost of a tree by its other columns; an empty one costs nothing."""
    row = totals[tree]
    if row[COUNT] < 0.5:
        row[EDGES], row[COST] = 0.0, 0.0
        return
    row[EDGES] = union_rate(prices.scale, prices.exact, marked[tree], row[HITS], row[SUMS])
    row[COST] = cost_of(row, prices)


@compiled
def shift(
    totals: Any, marked: Any, tree: int, group: Any, positions: float, sign: float, prices: Prices
) -> None:
    """Add a group to a tree, or take it out; the longest range of a tree stays as it was."""
    for column in (SUMS, HITS, COUNT, OVERLAP, LOGS):
        totals[tree, column] += sign * group[column]
    totals[tree, LONGEST] = max(totals[tree, LONGEST], group[LONGEST])
    marked[tree] += sign * positions
    set_cost(totals, marked, tree, prices)


@compiled
def move_groups(tree: Any, bits: Any, state: Any, prices: Prices, trees: int) -> None:
    """Move groups in place to where they add least, as long as that is less than they leave."""
    covers = np.zeros((trees, bits.shape[1] * WORD), np.int32)
    totals = np.zeros((trees + 1, state.shape[1]), np.float64)
    marked = np.zeros(trees + 1, np.float64)
    found = np.empty(bits.shape[1] * WORD, np.int64)
    for group in range(len(tree)):
        size, fresh = positions_of(bits[group], found), 0
        for each in found[:size]:
            fresh += covers[tree[group], each] == 0
            covers[tree[group], each] += 1
        shift(totals, marked, tree[group], state[group], fresh, 1.0, prices)
    spare = trees
    for _ in range(ROUNDS):
        moves = 0
        for group in range(len(tree)):
            size, home, gone = positions_of(bits[group], found), tree[group], 0
            for each in found[:size]:
                gone += covers[home, each] == 1
            totals[spare], marked[spare] = totals[home], marked[home]
            shift(totals, marked, spare, state[group], gone, -1.0, prices)
            saved = totals[home, COST] - totals[spare, COST]
            best, least, added = home, saved - LEAST * totals[home, COST], 0
            for other in range(trees):
                if other == home:
                    continue
                fresh = 0
                for each in found[:size]:
                    fresh += covers[other, each] == 0
                totals[spare], marked[spare] = totals[other], marked[other]
                shift(totals, marked, spare, state[group], fresh, 1.0, prices)
                if totals[spare, COST] - totals[other, COST] < least:
                    best, least, added = other, totals[spare, COST] - totals[other, COST], fresh
            if best != home:
                moves += 1
                for each in found[:size]:
                    covers[home, each] -= 1
                    covers[best, each] += 1
                shift(totals, marked, home, state[group], gone, -1.0, prices)
                shift(totals, marked, best, state[group], added, 1.0, prices)
                tree[group] = best
        if moves * 100 < len(tree):
            return
