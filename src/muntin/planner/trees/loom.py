"""The loom: groups of queries, how often their trees have edges, and what those trees cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from math import inf
from typing import Protocol

import numpy as np

from muntin._typing import Floats, Ints, Words
from muntin.planner.costs.formula import Technique, TreeCost, WindowQuery, check_rate
from muntin.planner.costs.omega import check_technique, omega, omega_alone
from muntin.planner.edges.counts import rate_within
from muntin.planner.trees.groups import Groups, group_queries
from muntin.planner.trees.sample import Sample, sample_for
from muntin.windows.edges import reduce_classes

# Classes that may be looked at to count the edges of all trees of a plan exactly, about half a
# second; and classes of a tree past which the sample is believed at once.
EXACT_WORK = 20_000
EXACT_CLASSES = 64
# Groups up to which pairs are priced one by one in Python.
FEW = 32
# Groups woven together; more are woven in portions of neighbouring slides.
PORTION = 2**15

Trees = tuple[list[Ints], list[TreeCost]]


class Loom:
    """What every way of weaving asks about some queries.

    Edge rates are exact where that is cheap, else read off a fixed sample of positions with an
    error below one percent. The same queries always give the same plan.
    """

    def __init__(self, queries: Sequence[WindowQuery], rate: float, technique: Technique) -> None:
        check_rate(rate)
        check_technique(technique)
        self.rate = float(rate)
        self.technique = technique
        self.groups: Groups = group_queries(queries)

    @cached_property
    def sample(self) -> Sample:
        """The positions that edges are counted on."""
        return sample_for(self.groups)

    @cached_property
    def unshared(self) -> float:
        """The cost of a tree for every query."""
        edges, omegas = self.alone()
        window = self.groups.window
        return float(self.rate * len(window) + np.sum((edges * omegas)[window]))

    def alone(self) -> tuple[Floats, Floats]:
        """Edges per time unit and Ω of every unique window in a tree of its own."""
        edges = np.repeat(self.groups.rates, np.diff(self.groups.starts))
        partials = edges * self.groups.ranges
        return edges, omega_alone(self.technique, partials, self.groups.overlaps)

    def one_tree(self) -> Trees:
        """All groups in one tree."""
        members = np.arange(len(self.groups))
        return [members], [self.tree_cost(members, self.common_rate, self.rate)]

    @cached_property
    def common_rate(self) -> float:
        """Edges per time unit of all groups together."""
        members = np.arange(len(self.groups))
        exact = self._exact_rate(members, EXACT_WORK)
        if exact is not None:
            return exact
        bits = np.uint64(0)
        hits = 0
        for portion in self._portions():
            marked = self._marked(portion)
            bits = bits | np.bitwise_or.reduce(marked, axis=0)
            hits += int(np.bitwise_count(marked).sum())
        count = int(np.bitwise_count(bits).sum())
        return self.sample.rate(count, hits, float(self.groups.rates.sum()))

    def woven(
        self, per_tree: float, free: float = 0.0, limit: float = inf
    ) -> tuple[list[Ints], list[float]]:
        """Trees of the greedy merge, in order of their first group, and their edge rates.

        Args:
            per_tree: What a tree costs, whatever is in it, per time unit.
            free: Operations per edge that a tree is spared.
            limit: A cost past which the plan is not of use, and is not made better.
        """
        trees: list[Ints] = []
        sampled: list[float] = []
        for portion in self._portions():
            found, edges = self._woven(portion, per_tree, free, limit)
            trees += found
            sampled += edges
        work = EXACT_WORK // len(trees)
        rates = [
            exact if (exact := self._exact_rate(tree, work)) is not None else rate
            for tree, rate in zip(trees, sampled, strict=True)
        ]
        order = np.argsort([int(tree[0]) for tree in trees])
        return [trees[each] for each in order], [rates[each] for each in order]

    def _woven(
        self, portion: Ints, per_tree: float, free: float, limit: float
    ) -> tuple[list[Ints], list[float]]:
        groups = self.groups.take(portion)
        bits = self._marked(portion)
        if len(groups) <= FEW:
            found, edges = weave_few(self, portion, bits, per_tree, free)
        else:
            # Compiled loops take a second to import; few queries do not wait for them.
            from muntin.planner.trees.greedy import weave_groups  # noqa: PLC0415

            prices = self.technique, per_tree, free, limit
            found, edges = weave_groups(groups, self.sample, bits, *prices)
            found = [portion[members] for members in found]
        return found, edges

    def _marked(self, portion: Ints) -> Words:
        """The edges of a portion's groups; those of all groups are kept."""
        if len(portion) < len(self.groups):
            return self._marks(self.groups.take(portion))
        return self._all_marked

    @cached_property
    def _all_marked(self) -> Words:
        return self._marks(self.groups)

    def _marks(self, groups: Groups) -> Words:
        if len(groups) <= FEW:
            return self.sample.mark(groups)
        from muntin.planner.trees.greedy import mark_many  # noqa: PLC0415 - it brings numba

        return mark_many(self.sample, groups)

    def tree_cost(self, members: Ints, edges: float, partial: float) -> TreeCost:
        """The cost of a tree of groups that has so many edges."""
        windows = self.groups.windows(members)
        ranges, overlaps = self.groups.ranges[windows], self.groups.overlaps[windows]
        return TreeCost(partial, edges, omega(self.technique, edges * ranges, overlaps))

    def queries_of(self, trees: Sequence[Ints]) -> tuple[tuple[int, ...], ...]:
        """The queries of trees of groups, by their number; all groups are in one tree each."""
        tree = np.empty(len(self.groups), dtype=np.int64)
        for number, members in enumerate(trees):
            tree[members] = number
        of_query = tree[self.groups.member]
        order = np.argsort(of_query, kind="stable")
        bounds = np.concatenate([[0], np.cumsum(np.bincount(of_query))]).tolist()
        numbers = order.tolist()
        return tuple(tuple(numbers[low:high]) for low, high in pairwise(bounds))

    def _exact_rate(self, members: Ints, work: int) -> float | None:
        if len(members) == 1:
            return float(self.groups.rates[members[0]])
        if 2 * len(members) > EXACT_CLASSES:
            return None
        classes = {each for group in members.tolist() for each in self.groups.classes(group)}
        found = rate_within(reduce_classes(classes), work)
        return None if found is None else float(found)

    def _portions(self) -> list[Ints]:
        """All groups in order, or portions of them with neighbouring slides."""
        size = len(self.groups)
        if size <= PORTION:
            return [np.arange(size)]
        order = np.argsort(self.groups.period, kind="stable")
        return [np.sort(order[low : low + PORTION]) for low in range(0, size, PORTION)]


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
