"""TriWeave: the stream is aggregated once, and trees take ready partials from there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from muntin._typing import Ints
from muntin.planner.costs.formula import Technique, WindowQuery
from muntin.planner.trees.loom import Loom
from muntin.planner.trees.weave_share import weave_share
from muntin.planner.trees.weaving import Weaving, as_weaving


def tri_weave(queries: Sequence[WindowQuery], rate: float, technique: Technique) -> Weaving:
    """Queries in trees over combined partials, by the cost C = λ + Σ (E - Eᵢ) + Σ EᵢΩᵢ.

    One composite slide with the E edges of all queries aggregates every row, once: λ. Tree i has
    Eᵢ of these edges; its slice between two of them is put together from the partials of the
    composite slide, one combine for every composite edge that the tree does not have: E - Eᵢ.
    So a further tree costs edges instead of rows, which pays where rows outnumber edges. With
    one tree both costs are the same, λ + EΩ.

    The merge is that of WeaveShare: a tree costs E whatever is in it, plus Eᵢ (Ωᵢ - 1). One tree
    for all is taken if it is cheaper than what the merge ends with; and where edges outnumber
    rows, partials may be cheaper to make in every tree: then the plan is WeaveShare's.

    >>> plan = tri_weave([WindowQuery(6, 2), WindowQuery(9, 3)], rate=10, technique="panes")
    >>> plan.trees, round(plan.total, 3), plan.combined
    (((0,), (1,)), 13.0, 10.0)
    """
    loom = Loom(queries, rate, technique)
    common = loom.common_rate
    trees, rates = loom.woven(common, free=1.0)
    one: tuple[list[Ints], list[float]] = loom.one_tree()[0], [common]
    plans = [
        (
            members,
            [
                loom.tree_cost(tree, min(edges, common), max(0.0, common - edges))
                for tree, edges in zip(members, per_tree, strict=True)
            ],
        )
        for members, per_tree in ((trees, rates), one)
    ]
    shared = loom.rate + sum(cost.total for cost in plans[1][1])
    trees, costs = min(plans, key=lambda plan: sum(cost.total for cost in plan[1]))
    combined = as_weaving("tri_weave", loom, trees, costs, combined=loom.rate)
    combined = replace(combined, shared=shared)
    if common <= loom.rate:
        return combined
    separate = weave_share(queries, rate, technique)
    return combined if combined.total <= separate.total else replace(separate, method="tri_weave")
