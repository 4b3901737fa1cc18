"""Weavings: queries put into trees, with what that costs; and the two that decide nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from muntin.planner.costs.formula import Technique, TreeCost, WindowQuery
from muntin.planner.trees.loom import Loom


@dataclass(frozen=True)
class Weaving:
    """Which queries share a tree, and the cost of that in operations per time unit.

    Attributes:
        method: Who decided.
        technique: What computes the final answers.
        rate: λ, rows per time unit.
        trees: The queries of each tree by their number, in order of the first.
        costs: The cost of each tree.
        combined: What is spent once for all trees: λ where partials are made in common.
        unshared: The cost with a tree for every query.
        shared: The cost with one tree for all, where that was asked.
    """

    method: str
    technique: Technique
    rate: float
    trees: tuple[tuple[int, ...], ...]
    costs: tuple[TreeCost, ...]
    combined: float
    unshared: float
    shared: float | None = None

    @property
    def total(self) -> float:
        """The cost of the plan."""
        return self.combined + sum(cost.total for cost in self.costs)

    @property
    def saving(self) -> float:
        """What sharing takes off the cost."""
        return self.unshared - self.total


def no_share(queries: Sequence[WindowQuery], rate: float, technique: Technique) -> Weaving:
    """A tree for every query, even for those with equal windows.

    >>> no_share([WindowQuery(6, 2), WindowQuery(8, 4)], rate=10, technique="panes").total
    22.0
    """
    loom = Loom(queries, rate, technique)
    edges, omegas = loom.alone()
    costs = [
        TreeCost(loom.rate, *pair) for pair in zip(edges.tolist(), omegas.tolist(), strict=True)
    ]
    return Weaving(
        method="no_share",
        technique=technique,
        rate=loom.rate,
        trees=tuple((query,) for query in range(len(queries))),
        costs=tuple(costs[each] for each in loom.groups.window.tolist()),
        combined=0.0,
        unshared=loom.unshared,
    )


def all_share(queries: Sequence[WindowQuery], rate: float, technique: Technique) -> Weaving:
    """One tree for all queries.

    >>> plan = all_share([WindowQuery(6, 2), WindowQuery(8, 4)], rate=10, technique="panes")
    >>> plan.trees, plan.total, plan.saving
    (((0, 1),), 12.5, 9.5)
    """
    loom = Loom(queries, rate, technique)
    return as_weaving("all_share", loom, *loom.one_tree())


def as_weaving(
    method: str, loom: Loom, trees: Sequence[np.ndarray], costs: Sequence[TreeCost],
    combined: float = 0.0,
) -> Weaving:  # fmt: skip
    """Trees of groups as trees of queries."""
    return Weaving(
        method=method,
        technique=loom.technique,
        rate=loom.rate,
        trees=loom.queries_of(trees),
        costs=tuple(costs),
        combined=combined,
        unshared=loom.unshared,
    )
