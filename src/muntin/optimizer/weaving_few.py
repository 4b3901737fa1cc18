"""A few groups woven into trees in plain Python, the pair that saves most first."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Protocol

import numpy as np

from muntin.optimizer.costs import TreeCost
from muntin.optimizer.weaving_groups import Groups, Ints
from muntin.optimizer.weaving_sample import Sample, Words


class Costs(Protocol):
    """What knows groups, their sample and the cost of their trees."""

    groups: Groups

    @property
    def sample(self) -> Sample:
        """The positions that edges are counted on."""

    def tree_cost(self, members: Ints, edges: float, partial: float) -> TreeCost:
        """The cost of a tree of groups that has so many edges."""


@dataclass(frozen=True, eq=False)
class _Tree:
    members: Ints
    bits: Words
    hits: int
    edges: float
    cost: float


def weave_few(
    costs: Costs, members: Ints, bits: Words, per_tree: float, free: float
) -> tuple[list[Ints], list[float]]:
    """Merge groups while a merge makes the plan cheaper; gives trees and their edge rates.

    The price of a pair is kept until one of its trees is merged. Among equal savings the pair
    with the lowest trees wins, so the outcome does not depend on chance.

    Args:
        costs: What prices a tree.
        members: The groups.
        bits: Their marked positions.
        per_tree: What a tree costs, whatever is in it, per time unit.
        free: Operations per edge that a tree is spared.
    """

    def made(groups: Ints, marked: Words, hits: int) -> _Tree:
        rate = float(costs.groups.rates[groups].sum())
        edges = costs.sample.rate(int(np.bitwise_count(marked).sum()), hits, rate)
        price = costs.tree_cost(groups, edges, per_tree)
        return _Tree(groups, marked, hits, edges, price.total - edges * free)

    def joined(one: _Tree, two: _Tree) -> _Tree:
        groups = np.sort(np.concatenate([one.members, two.members]))
        return made(groups, one.bits | two.bits, one.hits + two.hits)

    trees = {
        row: made(members[row : row + 1], bits[row], int(np.bitwise_count(bits[row]).sum()))
        for row in range(len(members))
    }
    savings: dict[tuple[int, int], float] = {}
    pairs = list(combinations(trees, 2))
    while True:
        for one, two in pairs:
            before = trees[one].cost + trees[two].cost
            saving = before - joined(trees[one], trees[two]).cost
            # Less than rounding could explain is no saving.
            if saving > 1e-12 * before:
                savings[one, two] = saving
        if not savings:
            break
        left, right = min(savings, key=lambda pair: (-savings[pair], pair))
        trees[left] = joined(trees[left], trees.pop(right))
        savings = {pair: value for pair, value in savings.items() if not {left, right} & {*pair}}
        pairs = [(min(left, other), max(left, other)) for other in trees if other != left]
    return [tree.members for tree in trees.values()], [tree.edges for tree in trees.values()]
