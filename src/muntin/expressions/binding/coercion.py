"""Coercions that SQL implies: constants change type at once, columns get a hidden CAST."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from muntin.expressions import types as t
from muntin.expressions.binding.literals import convert
from muntin.expressions.tree import BindingError, Call, Literal, Node
from muntin.expressions.zones import Zone

# What reads or makes local times: of a TIMESTAMP, and of what it is converted from or to.
ZONED = frozenset(["hour", "minute", "second", "date_trunc"])
CASTS = frozenset(["cast", "try_cast"])
LOCAL = (t.DATE, t.TIMESTAMP_NTZ, t.STRING)


def coerce(node: Node, kind: pa.DataType) -> Node:
    """The node as a value of `kind`, a type it safely converts to."""
    if node.type == kind:
        return node
    if isinstance(node, Literal) and not _reads_clock(node.type, kind):
        literal = convert(node, kind)
        if literal is not None:
            return literal
    return Call("cast", (node,), kind, hidden=True)


def unify(nodes: list[Node]) -> list[Node]:
    """All nodes in the type they have in common; string constants take the others' type.

    >>> from muntin.expressions.binding.literals import number, string
    >>> [node.value for node in unify([number("5"), string("7")])]
    [5, 7]
    """
    texts = [_is_text(node) for node in nodes]
    kinds = [node.type for node, is_text in zip(nodes, texts, strict=True) if not is_text]
    others = [kind for kind in kinds if kind not in (t.STRING, t.NULL)]
    if not others:
        return [coerce(node, t.common_types([n.type for n in nodes])) for node in nodes]
    common = t.common_types(kinds)
    if not any(texts):
        return [coerce(node, common) for node in nodes]
    # Spark reads a string beside any integer as BIGINT and beside any fraction as DOUBLE.
    as_number = t.BIGINT if t.is_integer(common) else t.DOUBLE
    reading = as_number if t.is_number(common) else common
    read = [
        coerce(node, reading) if is_text else node
        for node, is_text in zip(nodes, texts, strict=True)
    ]
    common = t.common_types([node.type for node in read])
    return [coerce(node, common) for node in read]


def in_zone(node: Node, zone: Zone) -> Node:
    """A call with the coercions that it implies, where local times are those of a zone."""
    if not isinstance(node, Call) or node.zone is not None:
        return node
    args = tuple(_implied(arg, zone) for arg in node.args)
    if any(new is not old for new, old in zip(args, node.args, strict=True)):
        node = replace(node, args=args)
    if node.function not in CASTS:
        depends = node.function in ZONED and any(arg.type == t.TIMESTAMP for arg in node.args)
        return replace(node, zone=zone) if depends else node
    [arg] = node.args
    if not _reads_clock(arg.type, node.type):
        return node
    literal = convert(arg, node.type, zone) if isinstance(arg, Literal) else None
    return literal or replace(node, zone=zone)


def _implied(node: Node, zone: Zone) -> Node:
    return in_zone(node, zone) if isinstance(node, Call) and node.hidden else node


def _reads_clock(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether a conversion depends on the zone."""
    times = source == t.TIMESTAMP, target == t.TIMESTAMP
    return (times[0] and target in LOCAL) or (times[1] and source in LOCAL)


def require(node: Node, kind: pa.DataType, function: str) -> Node:
    """The argument as `kind`; only NULL and narrower types of its family convert.

    >>> from muntin.expressions.binding.literals import number
    >>> require(number("2"), t.DOUBLE, "sqrt").value
    2.0
    """
    if node.type in (kind, t.NULL) or _widens(node.type, kind):
        return coerce(node, kind)
    raise BindingError(
        f"{function} wants {t.name_of(kind)}, not {t.name_of(node.type)}",
        hint=f"write CAST(... AS {t.name_of(kind)})",
    )


def _widens(source: pa.DataType, target: pa.DataType) -> bool:
    numbers = t.is_number(source) and t.is_number(target)
    times = t.is_time(source) and t.is_time(target)
    return (numbers or times) and bool(t.common_type(source, target) == target)


def _is_text(node: Node) -> bool:
    return isinstance(node, Literal) and node.type == t.STRING
