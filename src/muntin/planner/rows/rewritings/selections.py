"""Selections pushed down: the weakest operators first, so that all above them see fewer rows.

A condition passes unions, joins, the left side of EXISTS and windows of time. It would not pass a
window of rows, whose length counts rows before any condition; row queries have none. Conditions and
columns that may fail stay where they were written: elsewhere they would fail for other rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from muntin.expressions import Bound, bind
from muntin.expressions.tree import Column as ColumnNode
from muntin.expressions.tree import Node as ExpressionNode
from muntin.plan.operators import (
    Column,
    Exists,
    Join,
    Node,
    Rewriting,
    Select,
    Union,
    Windowed,
    inputs,
    leaves,
    with_inputs,
)
from muntin.planner.rows.rewritings.conditions import (
    conjunction,
    conjuncts,
    is_by_value,
    is_cast,
    moved,
    verdict,
)
from muntin.queries.query import column

PUSHED, DROPPED, PASSED, SELECTED = (
    "push_selections_down",
    "drop_empty_parts",
    "pass_conditions_on_keys",
    "select_before_exists",
)


def push_selections_down(root: Node) -> tuple[Node, list[Rewriting]]:
    """Conditions above joins and unions moved into what they filter.

    Parts of a union that no row of can satisfy them are dropped: with WHERE p.amount > 5 a LEFT
    JOIN is a JOIN, whose ends are known when rows are born, and with WHERE p.id IS NULL on the key
    it is the anti-join alone.
    """
    told: list[Rewriting] = []
    return _without_selections(root, told), told


def _without_selections(node: Node, told: list[Rewriting]) -> Node:
    below = tuple(_without_selections(each, told) for each in inputs(node))
    node = with_inputs(node, below) if below != inputs(node) else node
    if not isinstance(node, Select) or node.where is None or isinstance(node.input, Windowed):
        return node
    parts = conjuncts(node.where)
    if any(each.can_fail for each in parts):
        return node
    push = _Push()
    found = push.into(node.input, parts)
    if found is None or not push.told:
        # Without a row that satisfies it, the query as it stands says so best.
        return node
    told += push.told
    return _selection(found, node)


class _Push:
    """One WHERE on its way down."""

    def __init__(self) -> None:
        self.told: list[Rewriting] = []

    def into(self, node: Node, parts: Sequence[Bound]) -> Node | None:
        """The rows of a node that satisfy conditions; None if it can have none."""
        if not parts:
            return node
        if isinstance(node, Windowed):
            return self._leaf(node, parts)
        if isinstance(node, Select):
            return self._select(node, parts)
        if isinstance(node, Union):
            return self._union(node, parts)
        if isinstance(node, Join):
            return self._join(node, parts)
        if isinstance(node, Exists):
            if any(each.can_fail for each in conjuncts(node.residual)):
                return _filtered(node, parts)
            left = self.into(node.left, parts)
            return None if left is None else replace(node, left=left)
        return _filtered(node, parts)

    def _leaf(self, leaf: Windowed, parts: Sequence[Bound]) -> Node:
        found = filtered_leaf(leaf, parts)
        if found is None:
            return _filtered(leaf, parts)
        self._tell(PUSHED, f"{_text(parts)} at {leaf.stream or 'the stream'}")
        return found

    def _select(self, node: Select, parts: Sequence[Bound]) -> Node | None:
        values = {each.name: each.value.root for each in node.columns}
        found = [moved(each, values) for each in parts]
        below = [each for each in found if each is not None]
        # What a condition is computed from may fail, and so may what it stands beside.
        fallible = (*below, *(each.value for each in node.columns), *conjuncts(node.where))
        if len(below) < len(parts) or any(each.can_fail for each in fallible):
            return _filtered(node, parts)
        rest = []
        for each in [*conjuncts(node.where), *below]:
            known = verdict(each)
            if known is False:
                return None
            if known is None:
                rest.append(each)
        input_ = self.into(node.input, rest)
        if input_ is None:
            return None
        return _selection(input_, node)

    def _union(self, node: Union, parts: Sequence[Bound]) -> Node | None:
        names = node.schema.names
        kept: list[Node] = []
        for each in node.inputs:
            own: Mapping[str, ExpressionNode] = {
                name: bind(column(field.name), each.schema).root
                for name, field in zip(names, each.schema, strict=True)
            }
            there = [moved(part, own) for part in parts]
            held = [part for part in there if part is not None]
            if len(held) < len(parts):
                return _filtered(node, parts)
            found = self.into(each, held)
            if found is not None:
                kept.append(found)
            else:
                self._tell(DROPPED, f"the {_part(each)}, where {_text(held)} never holds")
        if not kept:
            return None
        kept[0] = _renamed(kept[0], names)
        return kept[0] if len(kept) == 1 else Union(tuple(kept))

    def _join(self, node: Join, parts: Sequence[Bound]) -> Node | None:
        present = {
            name
            for each, places in zip(node.inputs, node.keys, strict=True)
            for name in _present(each, places)
        }
        verdicts = [verdict(part, present) for part in parts]
        if False in verdicts:
            return None
        if any(leaf.retroactive for leaf in leaves(node)) or any(
            each.can_fail for each in conjuncts(node.residual)
        ):
            return _filtered(node, parts)
        left = [part for part, known in zip(parts, verdicts, strict=True) if known is None]
        found: list[Node] = []
        for each in node.inputs:
            own = [part for part in left if part.columns <= set(each.schema.names)]
            input_ = self.into(each, own)
            if input_ is None:
                return None
            found.append(input_)
            left = [part for part in left if part not in own]
        if left:
            self._tell(PUSHED, f"{_text(left)} as a condition of the join")
        residual = conjunction([*conjuncts(node.residual), *left])
        return Join(tuple(found), node.keys, residual)

    def _tell(self, rule: str, what: str) -> None:
        self.told.append(Rewriting(rule, what))


def filtered_leaf(leaf: Windowed, parts: Sequence[Bound]) -> Windowed | None:
    """A leaf whose rows satisfy conditions over its columns; None where that is not the same."""
    if leaf.retroactive or any(each.value.can_fail for each in leaf.columns):
        return None
    values = {each.name: each.value.root for each in leaf.columns}
    own = [moved(each, values) for each in parts]
    held = [each for each in own if each is not None]
    kept = conjuncts(leaf.where)
    if len(held) < len(parts) or any(each.can_fail for each in (*held, *kept)):
        return None
    return replace(leaf, where=conjunction([*kept, *held]))


def pass_conditions_on_keys(root: Node) -> tuple[Node, list[Rewriting]]:
    """What holds for a key on one side holds for the partners that have it on the other.

    With ``o.id = p.order_id AND o.id < 5``, no other payments are kept, or sent to a bucket.
    """
    told: list[Rewriting] = []
    return _passed(root, told), told


def _passed(node: Node, told: list[Rewriting]) -> Node:
    below = tuple(_passed(each, told) for each in inputs(node))
    node = with_inputs(node, below) if below != inputs(node) else node
    if isinstance(node, Join):
        sides, keys, takes = list(node.inputs), node.keys, [True] * len(node.inputs)
    elif isinstance(node, Exists) and not (node.null_aware and node.negated):
        # A left row without partners is in the answer of NOT EXISTS: only its partners are picked.
        sides, keys = [node.left, node.right], node.keys
        takes = [not node.negated, True]
    else:
        return node
    given = list(sides)
    for places in zip(*keys, strict=True):
        for giver, place in zip(given, places, strict=True):
            for condition in _of_key(giver, place):
                for number, other in enumerate(places):
                    if sides[number] is not giver and takes[number]:
                        sides[number] = _taken(sides[number], other, condition, told)
    return node if sides == given else with_inputs(node, tuple(sides))


def _of_key(node: Node, place: int) -> list[tuple[str, Bound]]:
    """The conditions of a leaf on one plain column of it alone, with the column's name."""
    if not isinstance(node, Windowed):
        return []
    root = node.columns[place].value.root
    if not isinstance(root, ColumnNode):
        return []
    return [
        (root.name, each)
        for each in conjuncts(node.where)
        if each.columns == {root.name} and is_by_value(each)
    ]


def _taken(node: Node, place: int, given: tuple[str, Bound], told: list[Rewriting]) -> Node:
    if not isinstance(node, Windowed) or node.retroactive or node.relation is not None:
        return node
    name, condition = given
    own = moved(condition, {name: node.columns[place].value.root})
    held = conjuncts(node.where)
    fallible = [*(each.value for each in node.columns), *held]
    if own is None or own in held or any(each.can_fail for each in (*fallible, own)):
        return node
    told.append(Rewriting(PASSED, f"{own.key} at {node.stream or 'the stream'}"))
    return replace(node, where=conjunction([*held, own]))


def select_before_exists(root: Node) -> tuple[Node, list[Rewriting]]:
    """Conditions of EXISTS that its left row decides alone, as selections below it.

    What is left of the condition may be nothing, and then no pairs are made. NOT EXISTS keeps
    them: a row that does not satisfy them has no partner, and is in the answer.
    """
    told: list[Rewriting] = []
    return _selected(root, told), told


def _selected(node: Node, told: list[Rewriting]) -> Node:
    below = tuple(_selected(each, told) for each in inputs(node))
    node = with_inputs(node, below) if below != inputs(node) else node
    if not isinstance(node, Exists) or node.negated or node.residual is None:
        return node
    parts = conjuncts(node.residual)
    names = set(node.left.schema.names)
    own = [each for each in parts if each.columns <= names]
    if not own or any(each.can_fail for each in parts):
        return node
    left = _Push().into(node.left, own)
    if left is None:
        return node
    told.append(Rewriting(SELECTED, f"{_text(own)} below EXISTS"))
    rest = conjunction([each for each in parts if each not in own])
    return replace(node, left=left, residual=rest)


def _present(node: Node, places: Sequence[int]) -> set[str]:
    """The columns that are not NULL where a key is not: the key's, and those it is cast from."""
    names = {node.schema.names[place] for place in places}
    if not isinstance(node, Windowed):
        return names
    roots = [node.columns[place].value.root for place in places]
    sources = {each.args[0] if is_cast(each) else each for each in roots}
    return names | {each.name for each in node.columns if each.value.root in sources}


def _filtered(node: Node, parts: Iterable[Bound]) -> Select:
    return Select(node, conjunction(parts), _columns(node, node.schema.names))


def _selection(found: Node, like: Select) -> Select:
    """The columns of a selection over what its input became; two selections in a row are one."""
    above = Select(found, None, like.columns)
    if not isinstance(found, Select) or any(each.value.can_fail for each in found.columns):
        return above
    values = {each.name: each.value.root for each in found.columns}
    columns = []
    for each in like.columns:
        value = moved(each.value, values)
        if value is None:
            return above
        columns.append(Column(each.name, value))
    return Select(found.input, found.where, tuple(columns))


def _columns(node: Node, names: Sequence[str]) -> tuple[Column, ...]:
    held = set(node.schema.names)
    return tuple(Column(name, bind(column(name), node.schema)) for name in names if name in held)


def _renamed(node: Node, names: Sequence[str]) -> Node:
    """A node whose columns have the names that those above it know."""
    own = node.schema.names
    if own == list(names):
        return node
    pairs = zip(names, own, strict=True)
    return Select(
        node, None, tuple(Column(name, bind(column(each), node.schema)) for name, each in pairs)
    )


def _part(node: Node) -> str:
    """What a part of a union is: of an outer join, its pairs or its padded rows."""
    if isinstance(node, Join):
        return "pairs of an outer join"
    if isinstance(node, Select) and isinstance(node.input, Exists):
        return "rows without a partner"
    return "part of a union"


def _text(parts: Iterable[Bound]) -> str:
    return " AND ".join(each.key for each in parts)
