"""Absences placed by cost: EXISTS, NOT EXISTS and IN above joins and DISTINCT, or below them.

What they show may end early, and who stands above them must take that. Low down they keep rows away
from joins, high up joins need no early ends. Both give the same rows with the same lifetimes, where
a condition of a row of one stream is concerned: anti-joins, never bag differences. Of EXCEPT ALL
each row that is taken away takes one other with it, and below a join it is not as many: with two
rows of a value in the first stream, three in the second and one in the third, three pairs of
(S1 - S3) and S2 are left, and five of (S1 and S2) - S3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product

import pyarrow as pa

from muntin.expressions.tree import Column as ColumnNode
from muntin.plan.operators import (
    Distinct,
    Exists,
    Join,
    Node,
    Rewriting,
    Select,
    inputs,
    leaves,
    with_inputs,
)
from muntin.planner.rows.rewritings.conditions import conjuncts
from muntin.planner.rows.rewritings.costs import Costs, NotWeighedError

PLACED, BELOW = "place_absences", "push_distinct_down"
# A plan must be this much cheaper than the one that was written: estimates are rough.
_WORTH = 0.9
# With more absences their order stays as it is.
_ORDERED = 3


@dataclass(frozen=True)
class _Absence:
    """One EXISTS, and the input of a join that it can stand above; None if it needs several."""

    node: Exists
    home: int | None


def place_absences(root: Node, costs: Costs) -> tuple[Node, list[Rewriting]]:
    """Each absence above or below the join under it, and several in the cheapest order."""
    told: list[Rewriting] = []
    return _placed(root, costs, told), told


def _placed(node: Node, costs: Costs, told: list[Rewriting]) -> Node:
    written = list(alternatives(node))
    if len(written) < 2:
        below = tuple(_placed(each, costs, told) for each in inputs(node))
        return with_inputs(node, below) if below != inputs(node) else node
    try:
        costs.check(node)
        weighed = [costs.cost(each) for each in written]
    except NotWeighedError as reason:
        told.append(Rewriting(PLACED, f"as written: {reason}", applied=False))
        return node
    before = costs.cost(node)
    best = min(range(len(written)), key=lambda each: weighed[each])
    others = [cost for place, cost in enumerate(weighed) if written[place] != node]
    if weighed[best] > _WORTH * before or written[best] == node:
        what = f"as written: {_shape(node)}"
        told.append(Rewriting(PLACED, what, applied=False, cost=before, instead=min(others)))
        return node
    what = f"{_shape(written[best])}, not {_shape(node)}"
    told.append(Rewriting(PLACED, what, cost=weighed[best], instead=before))
    return written[best]


def alternatives(node: Node) -> Iterator[Node]:
    """All plans of a join and its absences, or of absences over one input."""
    chain, base = _chain(node)
    if isinstance(base, Join):
        taken = [_chain(each) for each in base.inputs]
        if not chain and not any(own for own, _ in taken):
            return
        bare = tuple(below for _, below in taken)
        low = [_Absence(each, place) for place, (own, _) in enumerate(taken) for each in own]
        high = [_Absence(each, _home(each, bare)) for each in chain]
        absences = [*low, *high]
        if not all(_is_movable(each.node) for each in absences) or not _takes(base):
            return
        join = with_inputs(base, bare)
    else:
        absences = [_Absence(each, None) for each in chain]
        if len(absences) < 2 or not all(_is_movable(each.node) for each in absences):
            return
        join = base
    places = [(None,) if each.home is None else (None, each.home) for each in absences]
    orders = permutations(absences) if len(absences) <= _ORDERED else [tuple(absences)]
    seen: set[Node] = set()
    for order in orders:
        for chosen in product(*(places[absences.index(each)] for each in order)):
            made = _made(join, order, chosen)
            if made not in seen:
                seen.add(made)
                yield made


def _chain(node: Node) -> tuple[list[Exists], Node]:
    """The absences that stand on top of one another, lowest first, and what is below them."""
    found: list[Exists] = []
    while isinstance(node, Exists):
        found.insert(0, node)
        node = node.left
    return found, node


def _made(base: Node, order: Sequence[_Absence], places: Sequence[int | None]) -> Node:
    if isinstance(base, Join):
        below = list(base.inputs)
        for each, place in zip(order, places, strict=True):
            if place is not None:
                below[place] = _over(each.node, below[place])
        base = with_inputs(base, tuple(below))
    for each, place in zip(order, places, strict=True):
        if place is None:
            base = _over(each.node, base)
    return base


def _over(node: Exists, left: Node) -> Exists:
    """An absence over other rows, which have the columns that it compares."""
    names = [node.left.schema.names[place] for place in node.keys[0]]
    places = tuple(left.schema.get_field_index(name) for name in names)
    return replace(node, left=left, keys=(places, node.keys[1]))


def _home(node: Exists, sides: Sequence[Node]) -> int | None:
    """The one input of a join that has all columns that an absence reads of its left row."""
    names = _read(node)
    for place, each in enumerate(sides):
        if names and names <= set(each.schema.names):
            return place
    return None


def _read(node: Exists) -> set[str]:
    own = set(node.left.schema.names)
    names = {node.left.schema.names[place] for place in node.keys[0]}
    return names | {
        name for part in conjuncts(node.residual) for name in part.columns if name in own
    }


def _is_movable(node: Exists) -> bool:
    """Whether it is decided for each row by itself, instant by instant, and cannot fail."""
    return not node.whole and not any(each.can_fail for each in conjuncts(node.residual))


def _takes(join: Join) -> bool:
    """Whether a join may stand above early ends: one with a relation would need what is gone."""
    fallible = any(each.can_fail for each in conjuncts(join.residual))
    return not fallible and not any(leaf.retroactive for leaf in leaves(join))


def _shape(node: Node) -> str:
    """Where absences stand, in words."""
    chain, base = _chain(node)
    if not isinstance(base, Join):
        return " above ".join(_word(each) for each in reversed(chain))
    low = [_word(each) for side in base.inputs for each in _chain(side)[0]]
    high = [_word(each) for each in chain]
    parts = [f"{' and '.join(high)} above the join"] if high else []
    parts += [f"{' and '.join(low)} below the join"] if low else []
    return ", ".join(parts)


def _word(node: Exists) -> str:
    name = "IN" if node.null_aware else "EXISTS"
    right = ", ".join(dict.fromkeys(leaf.stream or "the stream" for leaf in leaves(node.right)))
    return f"{'NOT ' if node.negated else ''}{name} ({right})"


def push_distinct_down(root: Node, costs: Costs) -> tuple[Node, list[Rewriting]]:
    """DISTINCT below absences that only its values decide, where that is cheaper.

    Above them it would have to count rows that may end early; below, it keeps two rows per value
    at most, and absences see each value instead of each row.
    """
    told: list[Rewriting] = []
    found = lowered_distinct(root) if isinstance(root, Distinct) else None
    if found is None:
        return root, told
    try:
        costs.check(root)
        before, after = costs.cost(root), costs.cost(found)
    except NotWeighedError as reason:
        told.append(Rewriting(BELOW, f"as written: {reason}", applied=False))
        return root, told
    if after > _WORTH * before:
        what = "as written: DISTINCT above the absence"
        told.append(Rewriting(BELOW, what, applied=False, cost=before, instead=after))
        return root, told
    told.append(Rewriting(BELOW, "DISTINCT below the absence", cost=after, instead=before))
    return found, told


def lowered_distinct(node: Distinct) -> Node | None:
    """DISTINCT of a selection above absences, pushed below all of them; None if it cannot be."""
    select = node.input
    if not isinstance(select, Select) or select.where is not None:
        return None
    chain, base = _chain(select.input)
    if not chain or not all(_is_movable(each) and each.residual is None for each in chain):
        return None
    # Of 0.0 and -0.0, which are equal, another one could be shown.
    if any(each.value.can_fail or pa.types.is_floating(each.value.type) for each in select.columns):
        return None
    names: dict[str, str] = {}
    for each in select.columns:
        if isinstance(each.value.root, ColumnNode):
            names.setdefault(each.value.root.name, each.name)
    made: Node = Distinct(replace(select, input=base))
    for absence in chain:
        if not _read(absence) <= names.keys():
            return None
        if set(made.schema.names) & set(absence.right.schema.names):
            return None
        places = tuple(
            made.schema.get_field_index(names[absence.left.schema.names[place]])
            for place in absence.keys[0]
        )
        made = replace(absence, left=made, keys=(places, absence.keys[1]))
    return made
