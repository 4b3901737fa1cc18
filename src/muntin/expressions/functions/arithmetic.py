"""Arithmetic on numbers. Integer overflow and division by zero fail, also for DOUBLE."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pyarrow as pa

from muntin.expressions import types as t
from muntin.expressions.binding.coercion import coerce
from muntin.expressions.evaluation.parts import (
    FloatFunction,
    Part,
    constant,
    either,
    on_floats,
    physical,
    quotient,
    strict,
    strict_or_null,
    wide,
)
from muntin.expressions.functions import decimals
from muntin.expressions.registry import Function
from muntin.expressions.tree import BindingError, Call, Column, Literal, Node, walk

PLAIN: dict[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    "+": pl.Expr.add,
    "-": pl.Expr.sub,
    "*": pl.Expr.mul,
}

ON_ARRAYS: dict[str, FloatFunction] = {"+": np.add, "-": np.subtract, "*": np.multiply}


def numbers(name: str, args: list[Node]) -> list[Node]:
    """The arguments, refused unless all are numbers (or NULL, which becomes one)."""
    for arg in args:
        if not t.is_number(arg.type) and arg.type != t.NULL:
            raise BindingError(
                f"{name} wants numbers, not {t.name_of(arg.type)}", hint=_hint(arg, args)
            )
    known = [arg.type for arg in args if arg.type != t.NULL]
    return [
        coerce(arg, known[0] if known else t.DOUBLE) if arg.type == t.NULL else arg for arg in args
    ]


def _hint(arg: Node, args: list[Node]) -> str:
    if t.is_time(arg.type):
        return "compute with unix_micros(...), or with date_trunc and year, month, ..."
    others = [other.type for other in args if t.is_number(other.type)]
    return f"write CAST(... AS {t.name_of(others[0] if others else t.DOUBLE)})"


def _bind(name: str, args: list[Node]) -> Node:
    args = numbers(name, args)
    if decimals.applies(args):
        return decimals.bind(name, args)
    common = t.common_number(args[0].type, args[1].type)
    return Call(name, tuple(coerce(arg, common) for arg in args), common)


def _bind_divide(name: str, args: list[Node]) -> Node:
    args = numbers(name, args)
    if decimals.applies(args):
        return decimals.bind(name, args)
    return Call(name, tuple(coerce(arg, t.DOUBLE) for arg in args), t.DOUBLE)


def _bind_div(name: str, args: list[Node]) -> Node:
    args = numbers(name, args)
    if decimals.applies(args):
        return decimals.bind(name, args)
    if any(t.is_float(arg.type) for arg in args):
        raise BindingError("div wants integers", hint="write floor(a / b), or CAST to BIGINT")
    return Call(name, tuple(coerce(arg, t.BIGINT) for arg in args), t.BIGINT)


def _bind_same(name: str, args: list[Node]) -> Node:
    args = numbers(name, args)
    return Call(name, tuple(args), args[0].type)


def _add_like(call: Call, parts: list[Part]) -> Part:
    left, right = parts[0].value, parts[1].value
    operate = PLAIN[call.function]
    if t.is_decimal(call.type):
        return decimals.build(call, parts)
    if t.is_float(call.type):
        return strict(_float_sum(call, left, right), parts)
    if call.type == t.BIGINT and call.function != "*":
        return _wrapping(call, parts)
    return strict_or_null(_checked(operate, left, right, call), parts)


def _float_sum(call: Call, left: pl.Expr, right: pl.Expr) -> pl.Expr:
    """Also a product. Beside a constant zero polars takes shortcuts that lose the sign of 0.0."""
    if any(_may_be_constant_zero(arg) for arg in call.args):
        return on_floats(ON_ARRAYS[call.function], call.type, left, right)
    return PLAIN[call.function](left, right)


def _may_be_constant_zero(node: Node) -> bool:
    if isinstance(node, Literal):
        return node.value == 0
    return not any(isinstance(below, Column) for below in walk(node))


def _checked(
    operate: Callable[[pl.Expr, pl.Expr], pl.Expr], left: pl.Expr, right: pl.Expr, call: Call
) -> pl.Expr:
    """Computed in a wider type, where it cannot overflow; NULL if it does not fit back."""
    roomy = pl.Int128 if call.type == t.BIGINT else pl.Int64
    exact = operate(left.cast(roomy), right.cast(roomy))
    return exact.cast(physical(call.type), strict=False)


def _wrapping(call: Call, parts: list[Part]) -> Part:
    """BIGINT + and -: polars wraps around, which the signs give away.

    A sum overflows when both operands have the sign that the result has not; a difference when
    the operands' signs differ and the result has not that of the left one.
    """
    left, right = parts[0].value, parts[1].value
    result = PLAIN[call.function](left, right)
    if call.function == "+":
        flipped = (result ^ left) & (result ^ right)
    else:
        flipped = (left ^ right) & (left ^ result)
    return strict(result, parts, flipped < constant(0, t.BIGINT))


def _divide(call: Call, parts: list[Part]) -> Part:
    if t.is_decimal(call.type):
        return decimals.build(call, parts)
    value = quotient(parts[0].value, parts[1].value)
    return strict(value, parts[::-1], _by_zero(call, parts))


def _by_zero(call: Call, parts: list[Part]) -> pl.Expr | None:
    """Where a value is divided by zero; None for a constant divisor that is not."""
    divisor = call.args[1]
    if isinstance(divisor, Literal) and divisor.value != 0:
        return None
    return parts[0].value.is_not_null() & parts[1].value.eq(constant(0, divisor.type))


def _div(call: Call, parts: list[Part]) -> Part:
    if t.is_decimal(call.args[0].type):
        return decimals.build(call, parts)
    left, right = parts[0].value, parts[1].value
    floor, rest = left.floordiv(right), left.mod(right)
    inexact = rest.ne(0) & (left.lt(0) ^ right.lt(0))
    value = floor + inexact.cast(pl.Int64)
    divisor = call.args[1]
    overflow = None
    if not isinstance(divisor, Literal) or divisor.value == -1:
        overflow = left.eq(constant(t.BOUNDS[t.BIGINT][0], t.BIGINT)) & right.eq(-1)
    return strict(value, parts[::-1], either([_by_zero(call, parts), overflow]))


def _remainder(call: Call, parts: list[Part]) -> Part:
    """The remainder of truncating division: its sign is the dividend's."""
    if t.is_decimal(call.args[0].type):
        return decimals.build(call, parts)
    return strict(
        remainder(parts[0].value, parts[1].value, call.type), parts[::-1], _by_zero(call, parts)
    )


def remainder(left: pl.Expr, right: pl.Expr, kind: pa.DataType) -> pl.Expr:
    """The value of %, NULL where an integer divisor is zero."""
    if t.is_float(kind):
        # polars' own remainder of floats is rounded twice.
        return on_floats(np.fmod, kind, left, right)
    # polars' remainder has the divisor's sign.
    floored = left.mod(right)
    differ = floored.ne(0) & (left.lt(0) ^ right.lt(0))
    return pl.when(differ).then(floored - right).otherwise(floored)


def _positive_remainder(call: Call, parts: list[Part]) -> Part:
    """pmod: r = a % b, and (r + b) % b where r is negative.

    The sum wraps around as it does in Spark, which matters for extreme negative divisors only.
    """
    left, right = parts[0].value, parts[1].value
    if t.is_float(call.type):
        value = on_floats(_float_pmod, call.type, left, right)
    else:
        roomy = t.BIGINT if call.type == t.BIGINT else t.INT
        left, right = left.cast(physical(roomy)), right.cast(physical(roomy))
        rest = remainder(left, right, roomy)
        moved = remainder(rest + right, right, roomy)
        value = pl.when(rest.lt(0)).then(moved).otherwise(rest).cast(physical(call.type))
    return strict(value, parts[::-1], _by_zero(call, parts))


def _float_pmod(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    rest = np.fmod(left, right)
    moved: np.ndarray = np.where(rest < 0, np.fmod(rest + right, right), rest)
    return moved


def _negative(call: Call, parts: list[Part]) -> Part:
    value = parts[0].value
    if not t.is_integer(call.type):
        # polars has no minus sign for 128-bit integers.
        return Part(value * wide(-1) if t.is_decimal(call.type) else -value, parts[0].failed)
    return strict(-value, parts, value.eq(constant(t.BOUNDS[call.type][0], call.type)))


FUNCTIONS = (
    *(Function(name, 2, 2, _bind, _add_like) for name in PLAIN),
    Function("/", 2, 2, _bind_divide, _divide),
    Function("div", 2, 2, _bind_div, _div),
    Function("%", 2, 2, _bind, _remainder),
    Function("pmod", 2, 2, _bind, _positive_remainder),
    Function("negative", 1, 1, _bind_same, _negative),
)
