"""What stays the same from plan to plan while queries come and go."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from muntin.plan.bind import BoundQuery
from muntin.plan.cells import Kept
from muntin.plan.nodes import Partials, SharedPlan, Slicing
from muntin.plan.relations import Relation
from muntin.plan.selection import Cells, Mask
from muntin.plan.strategies import Tree


def number_trees(
    trees: Sequence[Tree], slicings: Mapping[Hashable, Slicing], previous: SharedPlan | None
) -> list[int]:
    """The numbers of the partials: trees that were there before go on with theirs."""
    known: dict[Hashable, int] = {}
    following = 0
    if previous is not None:
        following = max((node.number for node in previous.partials), default=-1) + 1
        known = {
            _identity(
                previous.slicings[node.slicing], previous.relations[node.relation], node
            ): node.number
            for node in previous.partials
        }
    numbers = []
    for tree in trees:
        number = tree.number
        if number is None and not isinstance(tree.selection, Cells):
            number = known.get(_identity(slicings[tree.slicing], tree.relation, tree))
        if number is None:
            number, following = following, following + 1
        numbers.append(number)
    return numbers


def kept_trees(bound: Sequence[BoundQuery], previous: SharedPlan | None) -> dict[str, Kept]:
    """For queries that stay, the tree of cells that they were in."""
    kept: dict[str, Kept] = {}
    if previous is None:
        return kept
    asked = {query.query.name: query.query for query in bound}
    for final in previous.finals:
        node = previous.partials[final.partials]
        if asked.get(final.name) == final.query and isinstance(node.selection, Cells):
            dimensions = frozenset(each.key for each in node.selection.bounds)
            finer = None if node.finer is None else previous.partials[node.finer].number
            kept[final.name] = Kept(node.number, dimensions, finer)
    return kept


def _identity(slicing: Slicing, relation: Relation, node: Partials | Tree) -> Hashable:
    """What partials must have in common with a tree for it to go on with them."""
    predicate = node.selection.predicate if isinstance(node.selection, Mask) else None
    kind = type(node.selection).__name__
    return slicing.identity, relation, node.grouping, kind, predicate
