"""Bound conditions taken apart, moved to other columns, and judged without rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TypeGuard

import pyarrow as pa

from muntin.expressions import Bound, Evaluator
from muntin.expressions.binding.render import render
from muntin.expressions.tree import Call, Column, Literal, Node, walk

COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">="})
# NULL for every NULL argument, whatever the others are.
_STRICT = COMPARISONS | {"+", "-", "*", "/", "%", "div", "cast", "like", "rlike"}
# What tells no two values apart that a join finds equal.
_BY_VALUE = COMPARISONS | {"and", "or", "not", "in"}


def conjuncts(bound: Bound | None) -> list[Bound]:
    """The conditions that must all hold.

    >>> from muntin.expressions import bind_text
    >>> [each.key for each in conjuncts(bind_text("a > 1 AND b < 2", pa.schema({"a": pa.int8(),
    ...                                                                        "b": pa.int8()})))]
    ['a > 1', 'b < 2']
    """
    found: list[Bound] = []
    pending = [] if bound is None else [bound.root]
    while pending:
        node = pending.pop(0)
        if isinstance(node, Call) and node.function == "and":
            pending = [*node.args, *pending]
        else:
            found.append(_condition(node))
    return found


def conjunction(bounds: Iterable[Bound]) -> Bound | None:
    """Conditions that must all hold, as one, each of them once; None if there are none."""
    roots = [each.root for each in dict.fromkeys(bounds)]
    if not roots:
        return None
    whole = roots[0]
    for root in roots[1:]:
        whole = Call("and", (whole, root), pa.bool_())
    return _condition(whole)


def _condition(root: Node) -> Bound:
    return Bound(render(root), pa.bool_(), root)


def moved(bound: Bound, values: Mapping[str, Node]) -> Bound | None:
    """An expression over other columns, by what each of its own is there; None if types differ."""
    root = _moved(bound.root, values)
    return None if root is None else Bound(render(root), bound.type, root)


def _moved(node: Node, values: Mapping[str, Node]) -> Node | None:
    if isinstance(node, Column):
        value = values[node.name]
        return value if value.type == node.type else None
    if isinstance(node, Literal):
        return node
    args = [_moved(each, values) for each in node.args]
    held = tuple(each for each in args if each is not None)
    return replace(node, args=held) if len(held) == len(args) else None


def is_cast(node: Node) -> TypeGuard[Call]:
    """Whether it is a value in another type: NULL where that is NULL, or cannot be converted."""
    return isinstance(node, Call) and node.function == "cast"


def is_by_value(bound: Bound) -> bool:
    """Whether it only compares one column with constants: values that are equal decide it alike."""
    if len(bound.columns) != 1:
        return False
    return all(
        not isinstance(each, Call) or each.function in _BY_VALUE for each in walk(bound.root)
    )


def verdict(bound: Bound, present: Collection[str] = ()) -> bool | None:
    """True if a condition holds for every row, False if for none, None if rows decide.

    Args:
        bound: The condition.
        present: The columns that are never NULL.

    >>> from muntin.expressions import bind_text
    >>> schema = pa.schema({"a": pa.int64(), "b": pa.int64()})
    >>> verdict(bind_text("a IS NULL", schema), {"a"}), verdict(bind_text("b > NULL", schema))
    (False, False)
    """
    return _verdict(bound.root, frozenset(present))


def _verdict(node: Node, present: frozenset[str]) -> bool | None:
    if not any(isinstance(each, Column) for each in walk(node)):
        return _constant(node)
    if not isinstance(node, Call):
        return None
    if node.function in ("and", "or"):
        parts = [_verdict(each, present) for each in node.args]
        decisive = node.function == "or"
        if decisive in parts:
            return decisive
        return None if None in parts else not decisive
    if node.function == "is null":
        return _nullness(node.args[0], present)
    if node.function == "not":
        (inner,) = node.args
        if isinstance(inner, Call) and inner.function == "is null":
            found = _nullness(inner.args[0], present)
            return None if found is None else not found
    return False if _nullness(node, present) else None


def _nullness(node: Node, present: frozenset[str]) -> bool | None:
    """True if always NULL, False if never, None if rows decide."""
    if isinstance(node, Column):
        return False if node.name in present else None
    if isinstance(node, Literal):
        return node.value is None
    if node.function in (*_STRICT, "not"):
        return True if any(_nullness(each, present) for each in node.args) else None
    return None


def _constant(node: Node) -> bool | None:
    """What a condition without columns is; None where it would have to be tried and may fail."""
    bound = _condition(node)
    if bound.can_fail:
        return None
    (found,) = Evaluator([bound])(pa.table({"": pa.nulls(1)}))
    (value,) = found.values.to_pylist()
    return value is True
