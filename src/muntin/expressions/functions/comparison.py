"""Comparisons. NaN equals NaN and is greater than every number; -0.0 equals 0.0."""

from __future__ import annotations

import polars as pl

from muntin.expressions import types as t
from muntin.expressions.binding.coercion import unify
from muntin.expressions.evaluation.parts import Part, either, physical, strict
from muntin.expressions.functions.logic import connective
from muntin.expressions.registry import Function
from muntin.expressions.tree import Call, Literal, Node

# polars orders floats exactly so, and strings by their UTF-8 bytes, as Spark does.
OPERATORS = {
    "=": pl.Expr.eq,
    "<>": pl.Expr.ne,
    "<": pl.Expr.lt,
    "<=": pl.Expr.le,
    ">": pl.Expr.gt,
    ">=": pl.Expr.ge,
}


def _bind(name: str, args: list[Node]) -> Node:
    return Call(name, tuple(unify(args)), t.BOOLEAN)


def _compare(call: Call, parts: list[Part]) -> Part:
    left, right = parts
    return strict(OPERATORS[call.function](left.value, right.value), parts)


def _null_safe_equal(call: Call, parts: list[Part]) -> Part:
    left, right = parts
    return Part(left.value.eq_missing(right.value), either([left.failed, right.failed]))


def _in(call: Call, parts: list[Part]) -> Part:
    """Membership; NULL when nothing matches and either side holds a NULL."""
    value, *listed = parts
    kind = call.args[0].type
    constants = [arg.value for arg in call.args[1:] if isinstance(arg, Literal)]
    if len(constants) < len(listed) or t.is_decimal(kind) or t.is_float(kind):
        equal = [Part(value.value.eq(item.value), item.failed) for item in listed]
        found = connective(equal, ends=True)
        behind = None if found.failed is None else found.failed & value.value.is_not_null()
        return Part(found.value, either([value.failed, behind]))
    known = pl.Series([c for c in constants if c is not None], dtype=physical(kind))
    member = value.value.is_in(known.implode())
    if None in constants:
        member = pl.when(member).then(pl.lit(value=True))
    return Part(member, value.failed)


FUNCTIONS = (
    *(Function(name, 2, 2, _bind, _compare) for name in OPERATORS),
    Function("<=>", 2, 2, _bind, _null_safe_equal),
    Function("in", 2, None, _bind, _in),
)
