"""Typed expressions: what binding makes of SQL, small enough to pickle and compare."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlglot import exp

from muntin.errors import ExpressionError
from muntin.expressions.zones import Zone


@dataclass(frozen=True)
class Column:
    """A column of the input, by the schema's own spelling."""

    name: str
    type: pa.DataType


@dataclass(frozen=True)
class Literal:
    """A constant.

    `value` is a plain Python value: int for integers, the unscaled int for decimals, float, str,
    bytes, bool, days for dates, microseconds for timestamps, None for NULL. `text` is how the
    user wrote it, in canonical spelling: it survives the coercion of the value to another type.
    """

    value: int | float | str | bytes | None
    type: pa.DataType
    text: str


@dataclass(frozen=True)
class Call:
    """A function or operator of the registry, applied to arguments of the types it wants.

    A `hidden` call is a coercion that SQL implies, or groups arguments of the call above it: it
    is evaluated, but not written out. `zone` is where local time is asked for; None where it
    makes no difference.
    """

    function: str
    args: tuple[Node, ...]
    type: pa.DataType
    hidden: bool = False
    zone: Zone | None = None


Node = Column | Literal | Call


def walk(node: Node, ends: Callable[[Node], bool] | None = None) -> Iterator[Node]:
    """The node and all below it, without recursion; not below what is an end."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        if isinstance(current, Call) and not (ends is not None and ends(current)):
            pending.extend(current.args)


def structure(node: exp.Expr) -> Hashable:
    """What a node is made of, whatever its place in a text: equal where two are the same.

    Told apart are all spellings that a parser tells apart; so equal structures mean the same.

    >>> from sqlglot import parse_one
    >>> structure(parse_one("a + 1")) == structure(parse_one(" a  +  1"))
    True
    """
    key: list[Any] = [type(node)]
    for name, value in node.args.items():
        key.append(name)
        if isinstance(value, exp.Expr):
            key.append(structure(value))
        elif type(value) is list:
            items = [structure(item) if isinstance(item, exp.Expr) else item for item in value]
            key.append(tuple(items))
        else:
            key.append(value)
    return tuple(key)


class BindingError(ExpressionError):
    """An expression that cannot be bound.

    `node` is the innermost SQL node at fault; its identifiers and literals know their position
    (`node.meta`: line, col, start, end).
    """

    def __init__(
        self, message: str, *, hint: str | None = None, node: exp.Expr | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.node = node
