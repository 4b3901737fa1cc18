"""The loom: groups of queries, how often their trees have edges, and what those trees cost."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np

from muntin.optimizer.costs import Technique, TreeCost, WindowQuery, check_rate
from muntin.optimizer.costs_omega import check_technique, omega, omega_alone
from muntin.optimizer.edge_counting import rate_within
from muntin.optimizer.weaving_few import weave_few
from muntin.optimizer.weaving_groups import Floats, Groups, Ints, group_queries
from muntin.optimizer.weaving_sample import Sample, Words, sample_for
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

    def woven(self, per_tree: float, free: float = 0.0) -> tuple[list[Ints], list[float]]:
        """Trees of the greedy merge, in order of their first group, and their edge rates.

        Args:
            per_tree: What a tree costs, whatever is in it, per time unit.
            free: Operations per edge that a tree is spared.
        """
        trees: list[Ints] = []
        sampled: list[float] = []
        for portion in self._portions():
            found, edges = self._woven(portion, per_tree, free)
            trees += found
            sampled += edges
        work = EXACT_WORK // len(trees)
        rates = [
            exact if (exact := self._exact_rate(tree, work)) is not None else rate
            for tree, rate in zip(trees, sampled, strict=True)
        ]
        order = np.argsort([int(tree[0]) for tree in trees])
        return [trees[each] for each in order], [rates[each] for each in order]

    def _woven(self, portion: Ints, per_tree: float, free: float) -> tuple[list[Ints], list[float]]:
        groups = self.groups.take(portion)
        bits = self._marked(portion)
        if len(groups) <= FEW:
            found, edges = weave_few(self, portion, bits, per_tree, free)
        else:
            # Compiled loops take a second to import; few queries do not wait for them.
            from muntin.optimizer.weaving_greedy import weave_groups  # noqa: PLC0415

            found, edges = weave_groups(groups, self.sample, bits, self.technique, per_tree, free)
            found = [portion[members] for members in found]
        return found, edges

    def _marked(self, portion: Ints) -> Words:
        """The edges of a portion's groups; those of all groups are kept."""
        if len(portion) < len(self.groups):
            return self.sample.mark(self.groups.take(portion))
        return self._all_marked

    @cached_property
    def _all_marked(self) -> Words:
        return self.sample.mark(self.groups)

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
