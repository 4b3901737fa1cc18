"""Trees that grow and shrink by single queries, priced on a sample that stays the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from muntin.optimizer.costs import Technique, WindowQuery, tree_cost
from muntin.optimizer.weaving_groups import group_queries
from muntin.optimizer.weaving_sample import Sample, Words, sample_for
from muntin.windows.edges import EdgeClass

Classes = tuple[EdgeClass, ...]


@dataclass(frozen=True, eq=False)
class GrownTree:
    """Queries by name, the edges of them among the sampled positions, and their cost."""

    queries: Mapping[str, WindowQuery]
    groups: frozenset[Classes]
    bits: Words
    edges: float
    cost: float


class Nursery:
    """Makes trees of queries, and of two trees one.

    What a group marks on the sample is kept, so a trial costs one pass over the sample and one
    over the queries of the two trees.
    """

    def __init__(self, queries: Sequence[WindowQuery], rate: float, technique: Technique) -> None:
        self._rate = rate
        self._technique = technique
        self._queries = queries
        self._marked: dict[Classes, Words] = {}
        self._hits: dict[Classes, int] = {}

    @cached_property
    def sample(self) -> Sample:
        """The positions that edges are counted on."""
        return sample_for(group_queries(self._queries))

    def knows(self, query: WindowQuery) -> bool:
        """Whether the edges of a query can be told on the sample."""
        return bool(self._queries) and self.sample.fits(group_queries([query]))

    def tree(self, queries: Mapping[str, WindowQuery]) -> GrownTree:
        """The tree of some queries, at least one."""
        by_classes = {query.classes: query for query in queries.values()}
        bits = np.bitwise_or.reduce([self._bits(query) for query in by_classes.values()])
        return self._priced(queries, frozenset(by_classes), bits)

    def joined(self, one: GrownTree, two: GrownTree) -> GrownTree:
        """Two trees made one."""
        queries = {**one.queries, **two.queries}
        return self._priced(queries, one.groups | two.groups, one.bits | two.bits)

    def _priced(
        self, queries: Mapping[str, WindowQuery], groups: frozenset[Classes], bits: Words
    ) -> GrownTree:
        hits = sum(self._hits[each] for each in groups)
        rates = sum(len(classes) / classes[0][0] for classes in groups)
        edges = self.sample.rate(int(np.bitwise_count(bits).sum()), hits, rates)
        cost = tree_cost(list(queries.values()), self._rate, self._technique, edges)
        return GrownTree(queries, groups, bits, edges, cost.total)

    def _bits(self, query: WindowQuery) -> Words:
        if query.classes not in self._marked:
            bits = self.sample.mark(group_queries([query]))[0]
            self._marked[query.classes] = bits
            self._hits[query.classes] = int(np.bitwise_count(bits).sum())
        return self._marked[query.classes]
