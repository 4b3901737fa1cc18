"""The bucket that each tree without groups has its home in: grouped ones are spread by key."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from muntin.optimizer.costs import Technique, WindowQuery, tree_classes, tree_cost
from muntin.optimizer.placement_buckets import place_trees
from muntin.plan.nodes import Partials, SharedPlan


def with_homes(plan: SharedPlan, buckets: int, previous: SharedPlan | None = None) -> SharedPlan:
    """The plan with every tree without groups on one of so many buckets, none loaded in vain.

    A tree goes where the costliest bucket ends up cheapest (WG_I). One that runs already stays:
    what it has kept is in that bucket.

    >>> import pyarrow as pa
    >>> from muntin.plan import build_plan
    >>> from muntin.queries import queries
    >>> schema = pa.schema({"ts": pa.int64(), "v": pa.int64()})
    >>> sql = "SELECT sum(v) FROM s [RANGE 9 SLIDE 3]; SELECT sum(v) FROM s [RANGE 8 SLIDE 4]"
    >>> plan = build_plan(queries(sql), schema, "ts", strategy="unshared")
    >>> [node.home for node in with_homes(plan, 16).partials]
    [0, 1]
    """
    known = {node.number: node.home for node in (previous.partials if previous else ())}
    alone = [place for place, node in enumerate(plan.partials) if not node.grouping]
    placed = place_trees(
        {place: _cost(plan, place) for place in alone},
        [str(bucket) for bucket in range(buckets)],
        previous={
            place: str(home)
            for place in alone
            if (home := known.get(_kept_number(plan.partials[place]))) is not None
        },
        bound=inf,
    )
    nodes: list[Partials] = list(plan.partials)
    for place in alone:
        nodes[place] = replace(nodes[place], home=int(placed.node_of[place]))
    return replace(plan, partials=tuple(nodes))


def _kept_number(node: Partials) -> int:
    """The number, in the plan before, of the partials whose slices these go on with."""
    return node.number if node.origin is None else node.origin


def _cost(plan: SharedPlan, place: int) -> float:
    """Final operations per tick; what rows cost is spread over all tasks anyway."""
    finals = [final for final in plan.finals if final.partials == place]
    if not finals:
        return 0.0
    windows = [WindowQuery(w.range, w.period, w.phase) for w in (each.window for each in finals)]
    parts = [each.part for each in plan.partials[place].accumulators]
    inv = all(part.invertible for part in parts)
    technique: Technique = "slickdeque_inv" if inv else "slickdeque_noninv"
    # As if windows shared no edges but those of whole classes: to count the others takes most of
    # a second for a hundred windows, and trees are only to be told light from heavy.
    edges = min(1.0, sum(1 / slide for slide, _ in tree_classes(windows)))
    return tree_cost(windows, 0.0, technique, edges).final
