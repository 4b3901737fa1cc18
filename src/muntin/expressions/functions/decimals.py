"""Exact decimal arithmetic on unscaled 128-bit integers, with Spark's result types.

Where Spark would have to drop digits (more than 38), the expression is refused, so that nothing
here ever rounds except division, which Spark rounds half up.
"""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from muntin.expressions import types as t
from muntin.expressions.binding.coercion import coerce
from muntin.expressions.binding.literals import is_written
from muntin.expressions.evaluation.parts import Part, physical, strict, strict_or_null, wide
from muntin.expressions.tree import BindingError, Call, Literal, Node

MIN_DIVISION_SCALE = 6


def applies(args: list[Node]) -> bool:
    """Whether an operation on these numbers is a decimal one: a DECIMAL, and no FLOAT or DOUBLE."""
    kinds = [arg.type for arg in args]
    return any(map(t.is_decimal, kinds)) and not any(map(t.is_float, kinds))


def bind(name: str, args: list[Node]) -> Call:
    """The typed call; integers become the decimals that hold them, constants the tightest."""
    left, right = (coerce(arg, _tightest(arg)) for arg in args)
    if name not in RESULTS:
        raise BindingError(f"{name} is not supported on DECIMAL", hint="CAST to DOUBLE or BIGINT")
    return Call(name, (left, right), RESULTS[name](left.type, right.type))


def _tightest(arg: Node) -> pa.DataType:
    # Spark counts the digits of a written SMALLINT, INT and BIGINT, but not of a TINYINT.
    counted = t.is_integer(arg.type) and arg.type != t.TINYINT
    if isinstance(arg, Literal) and counted and is_written(arg):
        return pa.decimal128(len(str(abs(int(arg.value or 0)))), 0)
    return t.as_decimal(arg.type)


def _sum_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    wider = t.wider_decimal(left, right)
    return t.decimal(wider.precision + 1, wider.scale)


def _product_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    return t.decimal(left.precision + right.precision + 1, left.scale + right.scale)


def _quotient_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    scale = max(MIN_DIVISION_SCALE, left.scale + right.precision + 1)
    return t.decimal(left.precision - left.scale + right.scale + scale, scale)


def _remainder_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    scale = max(left.scale, right.scale)
    whole = min(left.precision - left.scale, right.precision - right.scale)
    t.wider_decimal(left, right)
    return t.decimal(whole + scale, scale)


def _div_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    t.wider_decimal(left, right)
    return t.BIGINT


RESULTS = {
    "+": _sum_type,
    "-": _sum_type,
    "*": _product_type,
    "/": _quotient_type,
    "%": _remainder_type,
    "div": _div_type,
}


def scaled_up(value: pl.Expr, digits: int) -> pl.Expr:
    """Times a power of ten."""
    return value * wide(10**digits) if digits else value


def truncated(value: pl.Expr, by: pl.Expr) -> pl.Expr:
    """Division that rounds towards zero; NULL where `by` is zero."""
    floor, rest = value.floordiv(by), value.mod(by)
    return floor + (rest.ne(wide(0)) & (value.lt(wide(0)) ^ by.lt(wide(0)))).cast(pl.Int128)


def rounded(value: pl.Expr, by: pl.Expr) -> pl.Expr:
    """Division that rounds half away from zero, for a dividend below 10**38."""
    size, unit = value.abs(), by.abs()
    # Not (size + unit / 2) / unit, nor 2 * rest >= unit: these could overflow.
    rest = size.mod(unit)
    up = (rest - unit + rest >= wide(0)).cast(pl.Int128)
    negative = value.lt(wide(0)) ^ by.lt(wide(0))
    magnitude = size.floordiv(unit) + up
    return pl.when(negative).then(magnitude * wide(-1)).otherwise(magnitude)


def build(call: Call, parts: list[Part]) -> Part:
    """Compile a call that `bind` made."""
    left, right = parts[0].value, parts[1].value
    first, second = call.args[0].type, call.args[1].type
    if call.function == "*":
        return strict(left * right, parts)
    if call.function in ("+", "-"):
        left = scaled_up(left, call.type.scale - first.scale)
        right = scaled_up(right, call.type.scale - second.scale)
        return strict(left + right if call.function == "+" else left - right, parts)
    zero = left.is_not_null() & right.eq(wide(0))
    if call.function == "/":
        dividend = scaled_up(left, call.type.scale - first.scale + second.scale)
        return strict(rounded(dividend, right), parts[::-1], zero)
    scale = max(first.scale, second.scale)
    left, right = scaled_up(left, scale - first.scale), scaled_up(right, scale - second.scale)
    quotient = truncated(left, right)
    if call.function == "%":
        return strict(left - quotient * right, parts[::-1], zero)
    return strict_or_null(quotient.cast(physical(t.BIGINT), strict=False), parts[::-1])
