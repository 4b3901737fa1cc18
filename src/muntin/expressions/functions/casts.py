"""CAST: which pairs of types convert, and when a value fails to."""

from __future__ import annotations

from muntin.expressions import types as t
from muntin.expressions.functions.conversions import CONVERSIONS, IN_ZONE, family
from muntin.expressions.parts import Part, strict_or_null
from muntin.expressions.problems import BindingError
from muntin.expressions.registry import Function
from muntin.expressions.tree import Call, Node


def _bind(name: str, args: list[Node]) -> Node:
    """The second argument only carries the target type."""
    source, target = args[0].type, args[1].type
    pair = family(source), family(target)
    if source != target and pair not in CONVERSIONS and pair not in IN_ZONE:
        raise BindingError(
            f"CAST of {t.name_of(source)} to {t.name_of(target)} is not supported",
            hint=f"leave it a {t.name_of(source)}, and convert it outside of the query",
        )
    return Call(name, (args[0],), target)


def _cast(call: Call, parts: list[Part]) -> Part:
    source, target = call.args[0].type, call.type
    if source == target:
        return parts[0]
    pair = family(source), family(target)
    if pair in IN_ZONE:
        assert call.zone is not None, "a conversion that was bound without a zone"
        there, fails_there = IN_ZONE[pair]
        value, fails = there(parts[0].value, call.zone), fails_there(call.zone)
    else:
        convert, can_fail = CONVERSIONS[pair]
        value, fails = convert(parts[0].value, source, target), can_fail(source, target)
    return strict_or_null(value, parts) if fails else Part(value, parts[0].failed)


def _try_cast(call: Call, parts: list[Part]) -> Part:
    return Part(_cast(call, parts).value, parts[0].failed)


FUNCTIONS = (
    Function("cast", 2, 2, _bind, _cast),
    Function("try_cast", 2, 2, _bind, _try_cast),
)
