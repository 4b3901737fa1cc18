"""Counts, sums, extremes, bits, picks by time or key, and products."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from functools import reduce
from operator import and_, or_, xor
from typing import Any

import pyarrow as pa

from muntin.testing.aggregates.meaning import Rows, aggregate, exact_sum, given, order, to_float


@aggregate("count")
def _count(rows: Rows, _type: pa.DataType) -> int:
    return sum(all(value is not None for value in row[1:]) for row in rows)


@aggregate("count_if")
def _count_if(rows: Rows, _type: pa.DataType) -> int:
    return sum(row[1] is True for row in rows)


@aggregate("sum")
def sum_of(rows: Rows, type_: pa.DataType) -> Any:
    """The exact sum, as a value of the type; NULL where it does not fit."""
    values = given(rows)
    if not values:
        return None
    if pa.types.is_floating(type_):
        return exact_sum(values)
    if pa.types.is_decimal(type_):
        with localcontext(prec=80):
            total = sum(values, Decimal(0))
        return total if abs(total) < Decimal(10) ** (type_.precision - type_.scale) else None
    total = sum(values)
    return total if -(2**63) <= total < 2**63 else None


@aggregate("avg")
def average_of(rows: Rows, type_: pa.DataType) -> Any:
    """The exact sum, divided by the count."""
    values = given(rows)
    if not values:
        return None
    if pa.types.is_decimal(type_):
        with localcontext(prec=80):
            mean = sum(values, Decimal(0)) / len(values)
            return mean.quantize(Decimal(1).scaleb(-type_.scale), ROUND_HALF_UP)
    if isinstance(values[0], int):
        return to_float(sum(values)) / len(values)
    return exact_sum(values) / len(values)


@aggregate("min")
def _min(rows: Rows, _type: pa.DataType) -> Any:
    return min(given(rows), key=order, default=None)


@aggregate("max")
def _max(rows: Rows, _type: pa.DataType) -> Any:
    return max(given(rows), key=order, default=None)


@aggregate("value_range")
def _value_range(rows: Rows, type_: pa.DataType) -> Any:
    if not given(rows):
        return None
    spread = _max(rows, type_) - _min(rows, type_)
    if pa.types.is_integer(type_) and not -(2**63) <= spread < 2**63:
        return None
    return spread


@aggregate("bool_and")
def _bool_and(rows: Rows, _type: pa.DataType) -> Any:
    return all(given(rows)) if given(rows) else None


@aggregate("bool_or")
def _bool_or(rows: Rows, _type: pa.DataType) -> Any:
    return any(given(rows)) if given(rows) else None


@aggregate("any_value")
def _any_value(rows: Rows, type_: pa.DataType) -> Any:
    return _min(rows, type_)


@aggregate("bit_and")
def _bit_and(rows: Rows, _type: pa.DataType) -> Any:
    return reduce(and_, given(rows)) if given(rows) else None


@aggregate("bit_or")
def _bit_or(rows: Rows, _type: pa.DataType) -> Any:
    return reduce(or_, given(rows)) if given(rows) else None


@aggregate("bit_xor")
def _bit_xor(rows: Rows, _type: pa.DataType) -> Any:
    return reduce(xor, given(rows)) if given(rows) else None


@aggregate("first")
def _first(rows: Rows, _type: pa.DataType) -> Any:
    return min(rows, key=lambda row: (row[0], order(row[1])))[1] if rows else None


@aggregate("last")
def _last(rows: Rows, _type: pa.DataType) -> Any:
    return max(rows, key=lambda row: (row[0], order(row[1])))[1] if rows else None


@aggregate("min_by")
def _min_by(rows: Rows, _type: pa.DataType) -> Any:
    ordered = [row for row in rows if row[2] is not None]
    return min(ordered, key=lambda row: (order(row[2]), order(row[1])))[1] if ordered else None


@aggregate("max_by")
def _max_by(rows: Rows, _type: pa.DataType) -> Any:
    ordered = [row for row in rows if row[2] is not None]
    return max(ordered, key=lambda row: (order(row[2]), order(row[1])))[1] if ordered else None


@aggregate("product")
def _product(rows: Rows, _type: pa.DataType) -> float | None:
    values = given(rows)
    if not values:
        return None
    if not all(math.isfinite(value) for value in values):
        # Of finite factors only the sign matters, and zero: their product must not underflow.
        return math.prod(
            value if value == 0 or not math.isfinite(value) else math.copysign(1, value)
            for value in values
        )
    return to_float(math.prod(map(Fraction, values)))


@aggregate("geo_mean")
def _geo_mean(rows: Rows, _type: pa.DataType) -> float | None:
    values = given(rows)
    if not values:
        return None
    if any(math.isnan(value) or value < 0 for value in values):
        return math.nan
    if 0 in values:
        return math.nan if math.inf in values else 0.0
    return math.exp(math.fsum(math.log(value) for value in values) / len(values))
