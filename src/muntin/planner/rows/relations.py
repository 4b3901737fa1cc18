"""Retroactive relations beside windowed streams: joined above them, as inputs of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from muntin.expressions import BindingError, Bound, bind, subexpression
from muntin.expressions.binding.coercion import in_zone, unify
from muntin.plan.operators import (
    Column,
    Exists,
    Join,
    Node,
    Select,
    StreamSchema,
    Windowed,
)
from muntin.planner.rows.scope import Leaf, Scope, conjunction
from muntin.queries import RowSource
from muntin.queries.query import Join as TableOfFrom
from muntin.queries.query import column


@dataclass
class RelationJoin:
    """A relation of FROM: its leaf, and the equalities that find its rows, resolved."""

    scope: Scope
    leaf: Leaf
    join: TableOfFrom
    on: list[tuple[exp.Expr, exp.Expr]]

    @classmethod
    def of(
        cls, join: TableOfFrom, scope: Scope, relations: Mapping[str, StreamSchema]
    ) -> RelationJoin | None:
        """The relation that a table of FROM is; None if it is none."""
        names = [name for name in relations if name.lower() == join.table.lower()]
        if not names:
            return None
        lefts = [scope.resolve(left) for left, _ in join.on]
        source = RowSource(names[0], join.alias, None, start=join.start)
        scope.add(source, names[0], relations[names[0]])
        # It is no stream: conditions of streams must not be pushed into it.
        leaf = scope.leaves.pop()
        leaf.nullable = join.kind == "left"
        rights = [scope.resolve(exp.column(right.name, join.alias)) for _, right in join.on]
        return cls(scope, leaf, join, list(zip(lefts, rights, strict=True)))

    def reads(self, node: exp.Expr) -> bool:
        """Whether a resolved expression has columns of the relation."""
        return any(
            self.scope.homes.get(part.name) is self.leaf for part in node.find_all(exp.Column)
        )

    def settle(self) -> None:
        """Lets leaves know the columns that it compares, before they are built."""
        self.scope.need(node for pair in self.on for node in pair)

    def above(self, node: Node) -> tuple[Join, Exists | None]:
        """The pairs of some rows and the relation's, and for LEFT the rows that have none."""
        right: Node = self._windowed()
        keys: tuple[list[int], list[int]] = ([], [])
        for number, (left_side, right_side) in enumerate(self.on):
            bound = self._alike(left_side, right_side, node, right)
            name = f"{self.leaf.prefix}.$key{number}"
            node, place = _with_column(node, f"{name}.left", bound[0])
            keys[0].append(place)
            right, place = _with_column(right, name, bound[1])
            keys[1].append(place)
        places = tuple(keys[0]), tuple(keys[1])
        joined = Join((node, right), places)
        alone = None if self.join.kind != "left" else Exists(node, right, places, negated=True)
        return joined, alone

    def _windowed(self) -> Windowed:
        leaf, scope = self.leaf, self.scope
        schema = leaf.stream.schema
        where = conjunction(leaf.where)
        condition = None if where is None else scope.condition(where, schema)
        columns = tuple(scope.passed(leaf))
        return Windowed(leaf.name, None, condition, columns, retroactive=True)

    def _alike(
        self, left: exp.Expr, right: exp.Expr, node: Node, relation: Node
    ) -> tuple[Bound, Bound]:
        """Both sides of an equality in the type that they are compared in."""
        scope = self.scope
        sides = scope.bound(left, node.schema), scope.bound(right, relation.schema)
        try:
            roots = unify([each.root for each in sides])
        except BindingError as error:
            hint = "CAST one side to the other's type"
            raise scope.error(left, f"cannot be compared: {error.message}", hint) from error
        one, other = (subexpression(in_zone(root, scope.zone)) for root in roots)
        return one, other


def _with_column(node: Node, name: str, value: Bound) -> tuple[Node, int]:
    """A node that has a column of some value, and the place of it."""
    for place, field in enumerate(node.schema):
        if bind(column(field.name), node.schema) == value:
            return node, place
    columns = tuple(
        Column(field.name, bind(column(field.name), node.schema)) for field in node.schema
    )
    return Select(node, None, (*columns, Column(name, value))), len(columns)
