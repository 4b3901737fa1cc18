"""Conversions that keep the order of values, undone: the constant moves, the column stays."""

from __future__ import annotations

import math
from collections.abc import Callable

import pyarrow as pa

from muntin.expressions import types as t
from muntin.expressions.tree import Call, Node
from muntin.predicates.order import Code, double_of

EXACT = 2.0**53

PullBack = Callable[[Code], Code]


def unconverted(node: Node) -> tuple[Node, tuple[PullBack, ...]]:
    """The expression under conversions that keep order, and how a cut moves down through each.

    `CAST(x AS DECIMAL(11,1)) > 1.5` for an integer x is `x > 1`; without this, one column
    compared with constants of several types would be several dimensions.
    """
    moves: list[PullBack] = []
    while isinstance(node, Call) and node.function == "cast":
        move = pull_back(node.args[0].type, node.type)
        if move is None:
            break
        moves.append(move)
        node = node.args[0]
    return node, tuple(moves)


def pull_back(source: pa.DataType, target: pa.DataType) -> PullBack | None:
    """From a cut of `target` to the first `source` code whose conversion lies at it or after it.

    None where the conversion can fail or rounds in ways of its own.

    >>> to_integer = pull_back(pa.int32(), pa.decimal128(11, 1))
    >>> to_integer(15), to_integer(20)
    (2, 2)
    """
    if source == target or (source == t.FLOAT and target == t.DOUBLE):
        return _same
    if t.is_integer(source) and t.is_integer(target):
        return _same if t.INTEGERS.index(source) < t.INTEGERS.index(target) else None
    if t.is_integer(source) and target == t.DOUBLE:
        return lambda cut: _first_integer(cut, source)
    if t.is_decimal(target) and (t.is_integer(source) or t.is_decimal(source)):
        return _decimal(t.as_decimal(source), target)
    return None


def _same(cut: Code) -> Code:
    return cut


def _decimal(source: pa.DataType, target: pa.DataType) -> PullBack | None:
    added = target.scale - source.scale
    if added < 0 or target.precision - target.scale < source.precision - source.scale:
        return None
    unit = 10**added
    return lambda cut: -(-_integer(cut) // unit)


def _first_integer(cut: Code, kind: pa.DataType) -> int:
    """The first integer that converts to a double at the cut or after it."""
    low, high = t.BOUNDS[kind]
    limit = double_of(_integer(cut))
    if not limit <= float(high):
        return high + 1
    if abs(limit) <= EXACT:
        return math.ceil(limit)
    # Large integers round to a double: its order tells where the first one is.
    while low < high:
        middle = (low + high) // 2
        if float(middle) >= limit:
            high = middle
        else:
            low = middle + 1
    return low


def _integer(cut: Code) -> int:
    assert isinstance(cut, int)
    return cut
