"""CASE, COALESCE and the choices among values; only what Spark evaluates can fail."""

from __future__ import annotations

import polars as pl

from muntin.expressions import types as t
from muntin.expressions.binding.coercion import require, unify
from muntin.expressions.evaluation.parts import Part, either
from muntin.expressions.functions.arithmetic import numbers
from muntin.expressions.registry import Function
from muntin.expressions.tree import Call, Node

BRANCHES = 2 * 25


def _bind_case(name: str, args: list[Node]) -> Node:
    """Arguments are condition, value, condition, value, ..., and the value of ELSE."""
    conditions = [require(arg, t.BOOLEAN, "WHEN") for arg in args[:-1:2]]
    values = unify([*args[1::2], args[-1]])
    flat = [arg for pair in zip(conditions, values, strict=False) for arg in pair]
    # Long lists of branches are nested in ELSE: polars takes time quadratic in their number.
    rest, kind = values[-1], values[-1].type
    while len(flat) > BRANCHES:
        start = (len(flat) - 1) // BRANCHES * BRANCHES
        rest = Call(name, (*flat[start:], rest), kind, hidden=True)
        flat = flat[:start]
    return Call(name, (*flat, rest), kind)


def _case(call: Call, parts: list[Part]) -> Part:
    """The value of the first condition that holds; conditions are evaluated up to that one."""
    value, failed = parts[-1].value, parts[-1].failed
    conditions, values = parts[:-1:2], parts[1::2]
    chosen = pl.when(conditions[0].value).then(values[0].value)
    for condition, then in zip(conditions[1:], values[1:], strict=True):
        chosen = chosen.when(condition.value).then(then.value)  # type: ignore[assignment]
    if not any(part.failed is not None for part in parts):
        return Part(chosen.otherwise(value))
    no = pl.lit(value=False)
    for condition, then in zip(conditions[::-1], values[::-1], strict=True):
        taken = condition.value.fill_null(value=False)
        later = no if failed is None else failed
        inside = no if then.failed is None else then.failed
        failed = either([condition.failed, pl.when(taken).then(inside).otherwise(later)])
    return Part(chosen.otherwise(value), failed)


def _bind_pairs(name: str, args: list[Node]) -> Node:
    """A chain of many arguments as a balanced tree of pairs, which means the same."""
    nodes = unify(args)
    kind = nodes[0].type
    while len(nodes) > 2:
        rest = nodes[len(nodes) - len(nodes) % 2 :]
        pairs = zip(nodes[::2], nodes[1::2], strict=False)
        nodes = [Call(name, pair, kind, hidden=True) for pair in pairs] + rest
    return Call(name, tuple(nodes), kind) if len(nodes) == 2 else nodes[0]


def _coalesce(call: Call, parts: list[Part]) -> Part:
    """The first value that is not NULL; what is behind it is not evaluated."""
    left, right = parts
    behind = None if right.failed is None else left.value.is_null() & right.failed
    # Not pl.coalesce: of a constant and a column it may make one row.
    value = pl.when(left.value.is_not_null()).then(left.value).otherwise(right.value)
    return Part(value, either([left.failed, behind]))


def _greatest(call: Call, parts: list[Part]) -> Part:
    left, right = parts[0].value, parts[1].value
    return _choose(left.ge(right) | right.is_null(), parts)


def _least(call: Call, parts: list[Part]) -> Part:
    left, right = parts[0].value, parts[1].value
    return _choose(left.le(right) | right.is_null(), parts)


def _choose(keep_left: pl.Expr, parts: list[Part]) -> Part:
    """The left operand, also of equals; NULL is skipped, and both are always evaluated."""
    chosen = pl.when(keep_left).then(parts[0].value).otherwise(parts[1].value)
    return Part(chosen, either([parts[0].failed, parts[1].failed]))


def _bind_isnan(name: str, args: list[Node]) -> Node:
    [arg] = numbers(name, args)
    return Call(name, (arg if t.is_float(arg.type) else require(arg, t.DOUBLE, name),), t.BOOLEAN)


def _isnan(call: Call, parts: list[Part]) -> Part:
    return Part(parts[0].value.is_nan().fill_null(value=False), parts[0].failed)


def _bind_nanvl(name: str, args: list[Node]) -> Node:
    args = numbers(name, args)
    kind = t.FLOAT if all(arg.type == t.FLOAT for arg in args) else t.DOUBLE
    return Call(name, tuple(require(arg, kind, name) for arg in args), kind)


def _nanvl(call: Call, parts: list[Part]) -> Part:
    nan = parts[0].value.is_nan().fill_null(value=False)
    behind = None if parts[1].failed is None else nan & parts[1].failed
    value = pl.when(nan).then(parts[1].value).otherwise(parts[0].value)
    return Part(value, either([parts[0].failed, behind]))


FUNCTIONS = (
    Function("case", 3, None, _bind_case, _case),
    Function("coalesce", 1, None, _bind_pairs, _coalesce),
    Function("greatest", 2, None, _bind_pairs, _greatest),
    Function("least", 2, None, _bind_pairs, _least),
    Function("isnan", 1, 1, _bind_isnan, _isnan),
    Function("nanvl", 2, 2, _bind_nanvl, _nanvl),
)
