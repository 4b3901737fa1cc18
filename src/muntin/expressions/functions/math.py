"""Mathematical functions.

abs, sign, ceil, floor, round and sqrt are exact. Logarithms, exp and power agree with Spark to
the last two digits: Java's library and ours round the last bit differently.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa

from muntin.expressions import types as t
from muntin.expressions.binding.coercion import coerce, require
from muntin.expressions.evaluation.parts import (
    Part,
    constant,
    on_floats,
    physical,
    quotient,
    strict,
    strict_or_null,
    wide,
)
from muntin.expressions.functions.arithmetic import numbers
from muntin.expressions.functions.decimals import rounded, scaled_up
from muntin.expressions.registry import Function
from muntin.expressions.tree import BindingError, Call, Literal, Node

MAX_DOUBLE_DIGITS = 15


def _bind_same(name: str, args: list[Node]) -> Node:
    [arg] = numbers(name, args)
    return Call(name, (arg,), arg.type)


def _bind_double(name: str, args: list[Node]) -> Node:
    args = [require(arg, t.DOUBLE, name) for arg in numbers(name, args)]
    return Call(name, tuple(args), t.DOUBLE)


def _bind_whole(name: str, args: list[Node]) -> Node:
    """Whole numbers are BIGINT, but a DECIMAL without fraction of a DECIMAL."""
    [arg] = numbers(name, args)
    if t.is_decimal(arg.type):
        digits = arg.type.precision - arg.type.scale + 1 if arg.type.scale else arg.type.precision
        return Call(name, (arg,), t.decimal(digits, 0))
    if isinstance(arg, Literal) and t.is_integer(arg.type):
        # No longer a number as it is written, which Spark would type by its digits.
        return Literal(arg.value, t.BIGINT, f"CAST({arg.text} AS BIGINT)")
    if t.is_integer(arg.type):
        return coerce(arg, t.BIGINT)
    return Call(name, (require(arg, t.DOUBLE, name),), t.BIGINT)


def _bind_round(name: str, args: list[Node]) -> Node:
    [value] = numbers(name, args[:1])
    digits = args[1] if len(args) > 1 else Literal(0, t.INT, "0")
    if not isinstance(digits, Literal) or not isinstance(digits.value, int):
        raise BindingError("round wants a constant number of digits", hint="write round(x, 2)")
    most = MAX_DOUBLE_DIGITS if value.type == t.DOUBLE else 0
    if t.is_float(value.type) and not 0 <= digits.value <= most:
        raise BindingError(
            f"round of a {t.name_of(value.type)} to {digits.value} digits is not supported",
            hint=f"0 to {MAX_DOUBLE_DIGITS} digits of a DOUBLE",
        )
    return Call(name, (value, digits), _rounded_type(value.type, digits.value))


def _rounded_type(kind: pa.DataType, digits: int) -> pa.DataType:
    if not t.is_decimal(kind):
        return kind
    if digits < 0:
        raise BindingError("round of a DECIMAL before the point is not supported", hint="CAST it")
    scale = min(kind.scale, digits)
    return t.decimal(kind.precision - kind.scale + 1 + scale, scale)


def _abs(call: Call, parts: list[Part]) -> Part:
    value = parts[0].value
    if not t.is_integer(call.type):
        return Part(value.abs(), parts[0].failed)
    lowest = constant(t.BOUNDS[call.type][0], call.type)
    return strict(pl.when(value.ne(lowest)).then(value.abs()), parts, value.eq(lowest))


def _sign(call: Call, parts: list[Part]) -> Part:
    return Part(parts[0].value.sign(), parts[0].failed)


def _whole(call: Call, parts: list[Part]) -> Part:
    value = parts[0].value
    if t.is_decimal(call.type):
        unit = wide(10 ** call.args[0].type.scale)
        floor = value.floordiv(unit)
        up = value.mod(unit).ne(wide(0)).cast(pl.Int128)
        return Part(floor if call.function == "floor" else floor + up, parts[0].failed)
    whole = value.floor() if call.function == "floor" else value.ceil()
    # NaN is 0, as in Java; what is out of range fails.
    known = pl.when(whole.is_nan()).then(pl.lit(0.0)).otherwise(whole)
    return strict_or_null(known.cast(pl.Int64, strict=False), parts)


def _round(call: Call, parts: list[Part]) -> Part:
    value, kind = parts[0].value, call.args[0].type
    assert isinstance(call.args[1], Literal)
    digits = int(call.args[1].value or 0)
    if t.is_decimal(kind):
        dropped = kind.scale - call.type.scale
        return Part(rounded(value, wide(10**dropped)) if dropped else value, parts[0].failed)
    if t.is_float(kind):
        result = half_up(value, digits, physical(kind))
        return Part(result, parts[0].failed)
    if digits >= 0:
        return parts[0]
    unit = 10 ** min(-digits, 37)
    exact = scaled_up(rounded(value.cast(pl.Int128), wide(unit)), min(-digits, 37))
    return strict_or_null(exact.cast(physical(kind), strict=False), [parts[0]])


def _sqrt(call: Call, parts: list[Part]) -> Part:
    return Part(parts[0].value.sqrt(), parts[0].failed)


def _exp(call: Call, parts: list[Part]) -> Part:
    return Part(parts[0].value.exp(), parts[0].failed)


def _positive(value: pl.Expr) -> pl.Expr:
    """Logarithms of zero and below are NULL in Spark."""
    return pl.when(value > 0.0).then(value)


def _ln(call: Call, parts: list[Part]) -> Part:
    return Part(_positive(parts[0].value).log(), parts[0].failed)


def _log(call: Call, parts: list[Part]) -> Part:
    base, value = (_positive(part.value) for part in parts)
    known = call.args[0]
    if isinstance(known, Literal) and known.value == 10.0:
        # polars' log10 divides logarithms: it would make log10(0.1) more than -1.
        digits = value.map_batches(_log10, return_dtype=pl.Float64, is_elementwise=True)
        return strict(pl.when(value.is_not_null()).then(digits), parts)
    return strict(quotient(value.log(), base.log()), parts)


def _log10(column: pl.Series) -> pl.Series:
    return pl.Series(np.log10(column.to_numpy()))


def _power(call: Call, parts: list[Part]) -> Part:
    return strict(on_floats(_java_power, t.DOUBLE, parts[0].value, parts[1].value), parts)


def _java_power(base: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """Where C and Java differ, as Java: 1 to the NaN, and ±1 to an infinity, are NaN."""
    odd = (base == 1) & np.isnan(exponent) | (np.abs(base) == 1) & np.isinf(exponent)
    result = np.where(odd, np.nan, np.power(base, exponent))
    # numpy takes the square root for 0.5, which differs from a power for -0.0 and -infinity.
    special = (exponent == 0.5) & ((base == 0) | np.isneginf(base))
    rooted: np.ndarray = np.where(special, np.abs(base), result)
    return rooted


FUNCTIONS = (
    Function("abs", 1, 1, _bind_same, _abs),
    Function("sign", 1, 1, _bind_double, _sign),
    Function("ceil", 1, 1, _bind_whole, _whole),
    Function("floor", 1, 1, _bind_whole, _whole),
    Function("round", 1, 2, _bind_round, _round),
    Function("sqrt", 1, 1, _bind_double, _sqrt),
    Function("exp", 1, 1, _bind_double, _exp),
    Function("ln", 1, 1, _bind_double, _ln),
    Function("log", 2, 2, _bind_double, _log),
    Function("power", 2, 2, _bind_double, _power),
)


# Decimals of up to 15 digits are told apart by a DOUBLE; the halfway points need one more digit.
SAFE = 10.0**14
# From here on neighbours are at least one unit of the last kept digit apart.
LARGE = 2.0**53


def half_up(value: pl.Expr, digits: int, dtype: pl.DataType) -> pl.Expr:
    """Rounded to so many digits behind the point."""

    def compute(column: pl.Series) -> pl.Series:
        numbers = column.to_numpy().astype(np.float64)
        return pl.Series(_round_value(numbers, digits), dtype=dtype)

    computed = value.map_batches(compute, return_dtype=dtype, is_elementwise=True)
    return pl.when(value.is_not_null()).then(computed)


def _round_value(numbers: np.ndarray, digits: int) -> np.ndarray:
    unit = 10.0**digits
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.abs(numbers)
        near = np.rint(size * unit)
        # Both halfway points around the candidate are correctly rounded quotients of integers.
        near = near - (size < (2 * near - 1) / (2 * unit)) + (size >= (2 * near + 1) / (2 * unit))
        result = np.copysign(near / unit, numbers)
        scaled = size * unit
    result = np.where(near == 0, 0.0, result)
    result = np.where((scaled < LARGE) & np.isfinite(numbers), result, numbers)
    close = (scaled >= SAFE) & (scaled < LARGE)
    if close.any():
        result[close] = _by_text(numbers[close], digits)
    return result


def _by_text(numbers: np.ndarray, digits: int) -> np.ndarray:
    """The few numbers with too many digits for the comparisons above, through their text."""
    exact = pl.Series(np.abs(numbers)).cast(pl.String).str.to_decimal(scale=18)
    unit = pl.lit(10 ** (18 - digits), dtype=pl.Int128)
    unscaled = exact.to_physical().rename("x").to_frame()
    whole = unscaled.select((pl.col("x") + unit // 2).floordiv(unit)).to_series()
    text = whole.cast(pl.String) + f"e-{digits}"
    result: np.ndarray = np.copysign(text.cast(pl.Float64).to_numpy(), numbers)
    return result
