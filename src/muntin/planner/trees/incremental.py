"""Insert-then-Weave: queries join and leave a running plan without planning all anew."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from muntin._typing import Words
from muntin.errors import UnknownQueryError, WindowError, did_you_mean
from muntin.planner.costs.formula import Technique, WindowQuery, check_rate, tree_cost
from muntin.planner.costs.omega import check_technique
from muntin.planner.trees.groups import group_queries
from muntin.planner.trees.sample import Sample, sample_for
from muntin.planner.trees.weave_share import weave_share
from muntin.planner.trees.weaving import Weaving
from muntin.windows.edges import EdgeClass


class Weaver:
    """A plan that queries join and leave.

    A query that joins goes to the tree where it adds least to the cost, or to one of its own;
    then the tree it went to is woven with another one as long as that saves. A query that leaves
    is taken out of its tree, which may then be woven with another. All else stays as it is.

    The plan drifts from what planning from scratch would give. `drift` says how much: the sum of
    all changes of cost since then, as a share of the cost then. Past `bound` all is planned anew.

    Args:
        queries: Those that run from the start; their names differ.
        rate: λ, rows per time unit.
        technique: What computes the final answers.
        bound: The drift at which all is planned anew; 0 does so at every change that costs.

    >>> weaver = Weaver([WindowQuery(6, 2, name="a")], rate=1, technique="panes", bound=9)
    >>> weaver.add(WindowQuery(8, 4, name="b"))
    >>> weaver.weaving.trees, round(weaver.drift, 2)
    (((0, 1),), 0.4)
    >>> weaver.remove("a")
    >>> [query.name for query in weaver.queries], weaver.weaving.total
    (['b'], 1.5)
    """

    def __init__(
        self,
        queries: Iterable[WindowQuery],
        rate: float,
        technique: Technique,
        bound: float = 0.25,
    ) -> None:
        check_rate(rate)
        check_technique(technique)
        self._rate = float(rate)
        self._technique = technique
        self._bound = bound
        self._queries: dict[str, WindowQuery] = {}
        for query in queries:
            self._check_fresh(query)
            self._queries[query.name] = query
        self.rebuilds = -1
        self.rebuild()

    @property
    def queries(self) -> tuple[WindowQuery, ...]:
        """Those that run, in the order they joined."""
        return tuple(self._queries.values())

    @property
    def total(self) -> float:
        """The cost of the plan."""
        return sum(tree.cost for tree in self._trees)

    @property
    def drift(self) -> float:
        """Changes of cost since all was planned, as a share of the cost then."""
        return self._changed / self._planned if self._planned else float(self._changed > 0)

    @property
    def weaving(self) -> Weaving:
        """The plan; its queries are numbered as in `queries`."""
        number = {name: each for each, name in enumerate(self._queries)}
        numbered = sorted(
            (sorted(number[name] for name in tree.queries), tree.edges) for tree in self._trees
        )
        queries = self.queries
        costs = [
            tree_cost([queries[each] for each in members], self._rate, self._technique, edges)
            for members, edges in numbered
        ]
        alone = [tree_cost([query], self._rate, self._technique).total for query in queries]
        return Weaving(
            method="insert_then_weave",
            technique=self._technique,
            rate=self._rate,
            trees=tuple(tuple(members) for members, _ in numbered),
            costs=tuple(costs),
            combined=0.0,
            unshared=sum(alone),
        )

    def add(self, query: WindowQuery) -> None:
        """Let a query join."""
        self._check_fresh(query)
        before = self.total
        self._queries[query.name] = query
        if not self._nursery.knows(query):
            self._resample()
        fresh = self._nursery.tree({query.name: query})
        choices = [(fresh.cost, -1, fresh)]
        for place, tree in enumerate(self._trees):
            grown = self._nursery.joined(tree, fresh)
            choices.append((grown.cost - tree.cost, place, grown))
        _, place, grown = min(choices, key=lambda choice: choice[:2])
        if place >= 0:
            self._trees.pop(place)
        self._settle(grown, before)

    def remove(self, name: str) -> None:
        """Let a query leave."""
        if name not in self._queries:
            raise UnknownQueryError(
                f"no query named {name!r} runs", hint=did_you_mean(name, self._queries)
            )
        before = self.total
        del self._queries[name]
        place = next(each for each, tree in enumerate(self._trees) if name in tree.queries)
        tree = self._trees.pop(place)
        left = {other: query for other, query in tree.queries.items() if other != name}
        self._settle(self._nursery.tree(left) if left else None, before)

    def rebuild(self) -> None:
        """Plan all queries from scratch."""
        queries = self.queries
        self._nursery = Nursery(queries, self._rate, self._technique)
        self._trees: list[GrownTree] = []
        if queries:
            planned = weave_share(queries, self._rate, self._technique).trees
            self._trees = [
                self._nursery.tree({queries[each].name: queries[each] for each in members})
                for members in planned
            ]
        self._planned, self._changed = self.total, 0.0
        self.rebuilds += 1

    def _settle(self, tree: GrownTree | None, before: float) -> None:
        """Weave a changed tree with others while that saves, and see how far the plan drifted."""
        while tree is not None:
            choices = [
                (joined.cost - other.cost - tree.cost, place, joined)
                for place, other in enumerate(self._trees)
                for joined in [self._nursery.joined(other, tree)]
            ]
            change, place, joined = min(choices, key=lambda each: each[:2], default=(0.0, 0, tree))
            if change >= 0:
                self._trees.append(tree)
                break
            self._trees.pop(place)
            tree = joined
        self._changed += abs(self.total - before)
        if self.drift > self._bound:
            self.rebuild()

    def _resample(self) -> None:
        """Positions on which the edges of all queries can be told; trees stay as they are."""
        self._nursery = Nursery(self.queries, self._rate, self._technique)
        self._trees = [self._nursery.tree(tree.queries) for tree in self._trees]

    def _check_fresh(self, query: WindowQuery) -> None:
        if query.name in self._queries:
            raise WindowError(
                f"a query named {query.name!r} runs already",
                hint="give every query a name of its own, or remove that one first",
            )


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
