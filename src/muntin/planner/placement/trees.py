"""Trees on the way to a placement: what they cost, and what two would cost woven together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from muntin.planner.costs.formula import Technique, WindowQuery, check_rate, omega
from muntin.planner.costs.omega import check_technique
from muntin.planner.edges.estimate import estimate_edge_rate
from muntin.windows.edges import EdgeClass, reduce_classes

Edges: TypeAlias = Callable[[tuple[EdgeClass, ...]], float]


@dataclass(frozen=True, slots=True)
class Tree:
    """Queries that share partials, by number, with what their cost is made of.

    `windows` has a bit for each distinct window; `kind` numbers the set of edge classes.
    """

    queries: tuple[int, ...]
    windows: int
    kind: int
    omega: float
    cost: float


class Weaver(Protocol):
    """What the methods of placement ask about trees."""

    def tree(self, query: int) -> Tree:
        """The tree of one query."""

    def woven(self, a: Tree, b: Tree) -> float:
        """What two trees cost as one."""

    def weave(self, a: Tree, b: Tree) -> Tree:
        """Two trees as one."""


class WovenCosts:
    """Costs of equation 7.1 for trees that grow by weaving, each step from the one before.

    A trial of two trees costs a few look-ups where Ω is a sum over distinct windows (panes,
    FlatFIT), and a pass over their ranges otherwise. Edge rates are kept for every set of edge
    classes that was met.

    >>> costs = WovenCosts([WindowQuery(6, 2), WindowQuery(8, 4)], rate=10, technique="panes")
    >>> a, b = costs.tree(0), costs.tree(1)
    >>> a.cost, b.cost, costs.woven(a, b), costs.weave(a, b).queries
    (11.5, 10.5, 12.5, (0, 1))
    """

    def __init__(
        self,
        queries: Sequence[WindowQuery],
        rate: float,
        technique: Technique,
        edges: Edges | None = None,
    ) -> None:
        check_rate(rate)
        check_technique(technique)
        self.rate = float(rate)
        self.technique = technique
        self._edges = edges or edges_of
        numbers = {window: i for i, window in enumerate(dict.fromkeys(q.window for q in queries))}
        self._bits = [numbers[query.window] for query in queries]
        distinct = dict(zip(self._bits, queries, strict=True))
        self._ranges = np.array([distinct[i].range for i in range(len(distinct))], dtype=float)
        self._overlaps = [distinct[i].overlap for i in range(len(distinct))]
        # What a distinct window adds to Ω; None where Ω is no such sum.
        self._terms = {"panes": self._overlaps, "flatfit": [3.0] * len(distinct)}.get(technique)
        self._kinds: dict[tuple[EdgeClass, ...], int] = {}
        self._classes: list[tuple[EdgeClass, ...]] = []
        self._rates: list[float] = []
        self._unions: dict[tuple[int, int], int] = {}
        self._singles = [self._kind(query.classes) for query in queries]

    def tree(self, query: int) -> Tree:
        """The tree of one query."""
        windows, kind = 1 << self._bits[query], self._singles[query]
        each = self._omega(windows, kind)
        return Tree((query,), windows, kind, each, self.rate + self._rates[kind] * each)

    def woven(self, a: Tree, b: Tree) -> float:
        """What two trees cost as one."""
        kind = self._union(a.kind, b.kind)
        return self.rate + self._rates[kind] * self._joint(a, b, kind)

    def weave(self, a: Tree, b: Tree) -> Tree:
        """Two trees as one."""
        kind = self._union(a.kind, b.kind)
        each = self._joint(a, b, kind)
        cost = self.rate + self._rates[kind] * each
        return Tree(a.queries + b.queries, a.windows | b.windows, kind, each, cost)

    def _joint(self, a: Tree, b: Tree, kind: int) -> float:
        if self._terms is None:
            return self._omega(a.windows | b.windows, kind)
        joint, shared = a.omega + b.omega, a.windows & b.windows
        for place in _places(shared):
            joint -= self._terms[place]
        return joint

    def _omega(self, windows: int, kind: int) -> float:
        places = _places(windows)
        partials = self._ranges[places] * self._rates[kind]
        return omega(self.technique, partials, [self._overlaps[place] for place in places])

    def _union(self, a: int, b: int) -> int:
        if a == b:
            return a
        key = (a, b) if a < b else (b, a)
        found = self._unions.get(key)
        if found is None:
            found = self._unions[key] = self._kind(self._classes[a] + self._classes[b])
        return found

    def _kind(self, classes: tuple[EdgeClass, ...]) -> int:
        """The number of a set of edge classes."""
        reduced = reduce_classes(classes)
        number = self._kinds.setdefault(reduced, len(self._kinds))
        if number == len(self._classes):
            self._classes.append(reduced)
            self._rates.append(self._edges(reduced))
        return number


def edges_of(classes: tuple[EdgeClass, ...]) -> float:
    """Edges per time unit, counted where that is cheap and within 1% otherwise."""
    return estimate_edge_rate(classes).rate


def _places(bits: int) -> list[int]:
    """Which bits are set, lowest first."""
    places = []
    while bits:
        low = bits & -bits
        places.append(low.bit_length() - 1)
        bits ^= low
    return places
