"""Join keys: the equalities that every stream of a join takes part in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from muntin.expressions import BindingError
from muntin.expressions.binding.coercion import in_zone, unify
from muntin.expressions.tree import Node as ExpressionNode
from muntin.planner.rows.scope import Leaf, Scope
from muntin.queries.sql.normalize import fold

COMMON_HINT = (
    "join all of them on one column, such as o.id = p.id AND o.id = q.id; or write two queries"
)


@dataclass(frozen=True)
class Side:
    """One side of an equality: an expression over one leaf."""

    scope: Scope
    leaf: Leaf
    node: exp.Expr

    @property
    def text(self) -> exp.Expr:
        """What makes two sides the same."""
        return fold(self.node)

    def value(self) -> ExpressionNode:
        """The side, typed."""
        return self.scope.value(self.node, self.leaf)


@dataclass(frozen=True)
class Equality:
    """A condition that says that expressions over two leaves are equal."""

    node: exp.Expr
    left: Side
    right: Side

    def typed(self) -> tuple[ExpressionNode, ExpressionNode]:
        """Both sides in the type that they are compared in."""
        scope = self.left.scope
        try:
            left, right = unify([self.left.value(), self.right.value()])
        except BindingError as error:
            hint = "CAST one side to the other's type"
            raise scope.error(self.node, f"cannot be compared: {error.message}", hint) from error
        return in_zone(left, scope.zone), in_zone(right, scope.zone)


def equality(
    node: exp.Expr, own: Scope, other: Scope, padded: Sequence[Leaf] | None = None
) -> Equality | None:
    """The equality that a resolved condition is, between a leaf of each scope; None if it is none.

    A leaf that an outer join has padded takes part with plain columns only: what is computed from
    NULLs need not be NULL. ``padded`` are those leaves; all that some join pads, if not given.
    """
    inner = node.unnest()
    if not isinstance(inner, exp.EQ):
        return None
    for left, right in ((inner.this, inner.expression), (inner.expression, inner.this)):
        first, second = _side(left, own, padded), _side(right, other, padded)
        if first is not None and second is not None and first.leaf is not second.leaf:
            return Equality(inner, first, second)
    return None


def _side(node: exp.Expr, scope: Scope, padded: Sequence[Leaf] | None) -> Side | None:
    leaves = scope.reads(node)
    if len(leaves) != 1 or not scope.is_own(node):
        return None
    has_nulls = leaves[0].nullable if padded is None else any(leaves[0] is each for each in padded)
    if has_nulls and not isinstance(node.unnest(), exp.Column):
        return None
    return Side(scope, leaves[0], node.unnest())


@dataclass
class KeyClass:
    """Expressions that are all equal, by the leaf they belong to."""

    sides: list[Side] = field(default_factory=list)
    equalities: list[Equality] = field(default_factory=list)

    def side(self, leaf: Leaf) -> Side | None:
        """The first expression over a leaf."""
        return next((side for side in self.sides if side.leaf is leaf), None)

    def spans(self, leaves: Sequence[Leaf]) -> bool:
        """Whether every leaf has an expression in it."""
        return all(self.side(leaf) is not None for leaf in leaves)

    def columns(self, leaves: Sequence[Leaf]) -> tuple[list[str], list[Equality]]:
        """The key column of each leaf, and the equalities that these do not imply.

        All sides are compared in one type; an equality that SQL compares in another is left.
        """
        sides = [side for leaf in leaves if (side := self.side(leaf)) is not None]
        scope = sides[0].scope
        try:
            roots = unify([side.value() for side in sides])
        except BindingError as error:
            node, hint = self.equalities[0].node, "CAST them to one type"
            raise scope.error(node, f"cannot be compared: {error.message}", hint) from error
        typed = [in_zone(root, scope.zone) for root in roots]
        names = [side.scope.key(side.leaf, root) for side, root in zip(sides, typed, strict=True)]
        chosen = {(id(side.leaf), side.text) for side in sides}
        left = [
            each
            for each in self.equalities
            if not {(id(side.leaf), side.text) for side in (each.left, each.right)} <= chosen
            or each.typed()[0].type != typed[0].type
        ]
        return names, left


def key_classes(equalities: Sequence[Equality]) -> list[KeyClass]:
    """Classes of expressions that some equalities make equal, in the order they were written."""
    classes: list[KeyClass] = []
    for each in equalities:
        sides = [each.left, each.right]
        met = [one for one in classes if any(_holds(one, side) for side in sides)]
        merged = met[0] if met else KeyClass()
        for other in met[1:]:
            merged.sides += other.sides
            merged.equalities += other.equalities
        merged.sides += [side for side in sides if not _holds(merged, side)]
        merged.equalities.append(each)
        gone = {id(one) for one in met}
        classes = [one for one in classes if id(one) not in gone] + [merged]
    return classes


def _holds(one: KeyClass, side: Side) -> bool:
    return any(other.leaf is side.leaf and other.text == side.text for other in one.sides)
