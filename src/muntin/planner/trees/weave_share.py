"""WeaveShare: trees that each aggregate the stream, merged while that makes the plan cheaper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from muntin._typing import Ints
from muntin.planner.costs.formula import Technique, TreeCost, WindowQuery
from muntin.planner.trees.loom import Loom
from muntin.planner.trees.weaving import Weaving, as_weaving, no_share


def weave_share(queries: Sequence[WindowQuery], rate: float, technique: Technique) -> Weaving:
    """Queries in trees, by the cost C = mλ + Σ EᵢΩᵢ.

    Queries that cut the same edges share a tree from the start. Then the two trees whose merge
    takes most off the cost are merged, until no merge takes anything off. The plan is compared
    with one tree for all and a tree for each, and the cheapest is returned; so it costs no more
    than either.

    >>> slides = [WindowQuery(6, 2), WindowQuery(8, 4), WindowQuery(9, 3)]
    >>> weave_share(slides, rate=1, technique="panes").trees
    ((0, 1), (2,))
    >>> weave_share(slides, rate=10, technique="panes").trees
    ((0, 1, 2),)
    """
    loom = Loom(queries, rate, technique)
    one, one_cost = loom.one_tree()
    return replace(_cheapest(queries, loom, one, one_cost), shared=one_cost[0].total)


def _cheapest(
    queries: Sequence[WindowQuery], loom: Loom, one: list[Ints], one_cost: list[TreeCost]
) -> Weaving:
    if len(queries) == 1 or one_cost[0].total <= 2 * loom.rate:
        # Rows alone cost that much in two trees.
        return as_weaving("weave_share", loom, one, one_cost)
    # Moving groups from tree to tree never halves what a plan costs.
    trees, rates = loom.woven(loom.rate, limit=2 * one_cost[0].total)
    costs = [
        loom.tree_cost(members, edges, loom.rate)
        for members, edges in zip(trees, rates, strict=True)
    ]
    if one_cost[0].total < sum(cost.total for cost in costs):
        trees, costs = one, one_cost
    if loom.unshared < sum(cost.total for cost in costs):
        return replace(no_share(queries, loom.rate, loom.technique), method="weave_share")
    return as_weaving("weave_share", loom, trees, costs)
