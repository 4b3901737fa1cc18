"""CAST: which pairs of types convert, and when a value fails to."""

from __future__ import annotations

from muntin.expressions import types as t
from muntin.expressions.functions.conversions import CONVERSIONS, family
from muntin.expressions.parts import Part, strict_or_null
from muntin.expressions.problems import BindingError
from muntin.expressions.registry import Function
from muntin.expressions.tree import Call, Node


def _bind(name: str, args: list[Node]) -> Node:
    """The second argument only carries the target type."""
    source, target = args[0].type, args[1].type
    if source != target and (family(source), family(target)) not in CONVERSIONS:
        raise BindingError(
            f"CAST of {t.name_of(source)} to {t.name_of(target)} is not supported",
            hint=f"leave it a {t.name_of(source)}, and convert it outside of the query",
        )
    return Call(name, (args[0],), target)


def _cast(call: Call, parts: list[Part]) -> Part:
    source, target = call.args[0].type, call.type
    if source == target:
        return parts[0]
    convert, can_fail = CONVERSIONS[family(source), family(target)]
    value = convert(parts[0].value, source, target)
    if can_fail(source, target):
        return strict_or_null(value, parts)
    return Part(value, parts[0].failed)


def _try_cast(call: Call, parts: list[Part]) -> Part:
    return Part(_cast(call, parts).value, parts[0].failed)


FUNCTIONS = (
    Function("cast", 2, 2, _bind, _cast),
    Function("try_cast", 2, 2, _bind, _try_cast),
)
