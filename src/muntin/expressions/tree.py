"""Typed expressions: what binding makes of SQL, small enough to pickle and compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

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
