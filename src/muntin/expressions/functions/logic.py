"""AND, OR, NOT and the tests that are never NULL, evaluated as lazily as Spark does."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from muntin.expressions import types as t
from muntin.expressions.binding.coercion import require
from muntin.expressions.evaluation.parts import Part, either
from muntin.expressions.registry import Function
from muntin.expressions.tree import Call, Node

GROUP = 16


def _bind(name: str, args: list[Node]) -> Node:
    return Call(name, tuple(require(arg, t.BOOLEAN, name.upper()) for arg in args), t.BOOLEAN)


def _bind_chain(name: str, args: list[Node]) -> Node:
    """Chains are flat: a AND (b AND c) is a AND b AND c."""
    flat: list[Node] = []
    for arg in args:
        flat.extend(arg.args if isinstance(arg, Call) and arg.function == name else [arg])
    return _bind(name, flat)


def _bind_any(name: str, args: list[Node]) -> Node:
    return Call(name, tuple(args), t.BOOLEAN)


def balanced(operands: list[pl.Expr], join: Callable[[pl.Expr, pl.Expr], pl.Expr]) -> pl.Expr:
    """Operands joined as a balanced tree: a thousand terms are ten levels deep."""
    while len(operands) > 1:
        pairs = zip(operands[::2], operands[1::2], strict=False)
        rest = operands[len(operands) - len(operands) % 2 :]
        operands = [join(left, right) for left, right in pairs] + rest
    return operands[0]


def connective(parts: list[Part], *, ends: bool) -> Part:
    """AND (`ends` False) or OR (`ends` True): the first operand that equals `ends` decides.

    Operands behind it are not evaluated, so they cannot fail; a NULL decides nothing.
    """
    if len(parts) > GROUP and any(part.failed is not None for part in parts):
        groups = [parts[start : start + GROUP] for start in range(0, len(parts), GROUP)]
        return connective([connective(group, ends=ends) for group in groups], ends=ends)
    values = [part.value for part in parts]
    value = balanced(values, (lambda a, b: a | b) if ends else (lambda a, b: a & b))
    failed = None
    for part in reversed(parts):
        if failed is not None:
            failed = (
                pl.when(part.value.eq_missing(pl.lit(ends)))
                .then(pl.lit(value=False))
                .otherwise(failed)
            )
        failed = either([part.failed, failed])
    return Part(value, failed)


def _and(call: Call, parts: list[Part]) -> Part:
    return connective(parts, ends=False)


def _or(call: Call, parts: list[Part]) -> Part:
    return connective(parts, ends=True)


def _not(call: Call, parts: list[Part]) -> Part:
    return Part(~parts[0].value, parts[0].failed)


def _is_null(call: Call, parts: list[Part]) -> Part:
    return Part(parts[0].value.is_null(), parts[0].failed)


def _is_true(call: Call, parts: list[Part]) -> Part:
    return Part(parts[0].value.eq_missing(pl.lit(value=True)), parts[0].failed)


def _is_false(call: Call, parts: list[Part]) -> Part:
    return Part(parts[0].value.eq_missing(pl.lit(value=False)), parts[0].failed)


FUNCTIONS = (
    Function("and", 2, None, _bind_chain, _and),
    Function("or", 2, None, _bind_chain, _or),
    Function("not", 1, 1, _bind, _not),
    Function("is null", 1, 1, _bind_any, _is_null),
    Function("is true", 1, 1, _bind, _is_true),
    Function("is false", 1, 1, _bind, _is_false),
)
