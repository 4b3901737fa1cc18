"""HAVING over bounds: which groups may satisfy it."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from muntin._typing import Bools
from muntin.expressions import Bound
from muntin.expressions.tree import Call, Column, Literal, Node

Bounds = Mapping[str, tuple[pa.Array, pa.Array]]
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def may_hold(having: Bound, bounds: Bounds) -> Bools:
    """Whether a condition may hold for some values between bounds, row by row.

    Comparisons of an aggregate with a number are told, and what AND and OR make of them; all else
    may hold.

    >>> from muntin.expressions import bind_text
    >>> having = bind_text("n > 5", pa.schema({"n": pa.int64()}))
    >>> may_hold(having, {"n": (pa.array([1, 4]), pa.array([5, 6]))}).tolist()
    [False, True]
    """
    size = len(next(iter(bounds.values()))[0]) if bounds else 0
    return _may(having.root, bounds, size)


def _may(node: Node, bounds: Bounds, size: int) -> Bools:
    if isinstance(node, Call) and node.function in ("and", "or"):
        parts = [_may(arg, bounds, size) for arg in node.args]
        joined = np.logical_and if node.function == "and" else np.logical_or
        found: Bools = joined.reduce(parts)
        return found
    if isinstance(node, Call) and node.function in _MIRRORED:
        left, right = (_bare(arg) for arg in node.args)
        if isinstance(left, Column) and isinstance(right, Literal):
            return _compared(left, node.function, right, bounds, size)
        if isinstance(right, Column) and isinstance(left, Literal):
            return _compared(right, _MIRRORED[node.function], left, bounds, size)
    return np.ones(size, np.bool_)


def _bare(node: Node) -> Node:
    """A column without the conversion to a wider number that SQL implies."""
    while isinstance(node, Call) and node.function == "cast" and node.hidden:
        node = node.args[0]
    return node


def _compared(column: Column, sign: str, constant: Literal, bounds: Bounds, size: int) -> Bools:
    value = _number(constant)
    if column.name not in bounds or value is None:
        return np.ones(size, np.bool_)
    lows, highs = (each.to_pylist() for each in bounds[column.name])
    return np.array(
        [_one(low, high, sign, value) for low, high in zip(lows, highs, strict=True)], np.bool_
    )


def _number(constant: Literal) -> Any:
    if pa.types.is_decimal(constant.type) and isinstance(constant.value, int):
        return Decimal(constant.value).scaleb(-constant.type.scale)
    return constant.value if isinstance(constant.value, int | float) else None


def _one(low: Any, high: Any, sign: str, value: Any) -> bool:
    """Whether some number between two may compare so; one that is not known bounds nothing."""
    numbers = (int, float, Decimal)
    # NaN is above all numbers.
    above = not isinstance(high, numbers) or not high < value
    below = not isinstance(low, numbers) or low <= value
    if sign == "=":
        return above and below
    if sign in (">", ">="):
        return above and (sign == ">=" or high != value)
    return below and (sign == "<=" or low != value)
