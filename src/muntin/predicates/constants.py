"""Constant parts of expressions, computed once."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context

import pyarrow as pa

from muntin.expressions import Evaluator, subexpression
from muntin.expressions import types as t
from muntin.expressions.tree import Column, Literal, Node, walk

DIGITS = Context(prec=2 * t.MAX_DIGITS)


@dataclass(frozen=True)
class Folded:
    """The value of a constant expression, as in `Literal.value`; or that it fails."""

    value: object
    failed: bool = False


def fold(node: Node) -> Folded | None:
    """The value of an expression that reads no column, None for any other.

    >>> from muntin.expressions import bind_text
    >>> fold(bind_text("2 * 1000", pa.schema([])).root).value
    2000
    """
    if isinstance(node, Literal):
        return Folded(node.value)
    if any(isinstance(part, Column) for part in walk(node)):
        return None
    [result] = Evaluator([subexpression(node)])(pa.table({"": [None]}))
    if result.errors is not None:
        return Folded(None, failed=True)
    return Folded(_plain(result.values))


def _plain(values: pa.Array) -> object:
    kind = values.type
    if values.null_count:
        return None
    if kind == t.DATE:
        return values.view(pa.int32())[0].as_py()
    if t.is_time(kind):
        return values.view(pa.int64())[0].as_py()
    value = values[0].as_py()
    return int(DIGITS.scaleb(value, kind.scale)) if t.is_decimal(kind) else value
