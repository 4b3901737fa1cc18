"""Which Arrow types the aggregates take, and what they give back."""

from __future__ import annotations

import math
from typing import Any, TypeGuard

import pyarrow as pa

from muntin.errors import AggregateError

_ORDERED = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_boolean,
    pa.types.is_temporal,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
)


def is_number(kind: pa.DataType) -> bool:
    """Integers, floats and decimals.

    >>> is_number(pa.decimal128(10, 2)), is_number(pa.bool_())
    (True, False)
    """
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal128(kind)
    )


def is_ordered(kind: pa.DataType) -> bool:
    """Types with a total order that min and max may use.

    >>> is_ordered(pa.string()), is_ordered(pa.list_(pa.int64()))
    (True, False)
    """
    interval = pa.types.is_interval(kind)
    return not interval and any(check(kind) for check in _ORDERED)


def is_real(value: object) -> TypeGuard[int | float]:
    """Whether a constant is a number, which a truth is not.

    >>> is_real(0.5), is_real(True), is_real("1")
    (True, False, False)
    """
    return isinstance(value, int | float) and not isinstance(value, bool)


def require_number(name: str, kind: pa.DataType) -> None:
    """Refuse an argument that is not a number."""
    if not is_number(kind):
        raise AggregateError(
            f"{name} takes a number, not {kind}", hint="CAST the argument, for example to DOUBLE"
        )


def require_integer(name: str, kind: pa.DataType) -> None:
    """Refuse an argument that is not an integer."""
    if not pa.types.is_integer(kind):
        raise AggregateError(
            f"{name} takes an integer, not {kind}", hint="CAST the argument, for example to BIGINT"
        )


def require_ordered(name: str, kind: pa.DataType) -> None:
    """Refuse an argument that has no order."""
    if not is_ordered(kind):
        raise AggregateError(
            f"{name} takes a value with an order, not {kind}",
            hint="use a number, string, boolean, date or timestamp",
        )


def require_boolean(name: str, kind: pa.DataType) -> None:
    """Refuse an argument that is not a condition."""
    if not pa.types.is_boolean(kind):
        raise AggregateError(
            f"{name} takes a condition, not {kind}", hint="compare the argument: x > 0"
        )


def bounded_decimal(precision: int, scale: int) -> pa.DataType:
    """A decimal type cut to 38 digits, as Spark cuts it.

    >>> bounded_decimal(40, 6)
    Decimal128Type(decimal128(38, 6))
    """
    return pa.decimal128(min(precision, 38), min(scale, 38))


def sum_type(kind: pa.DataType) -> pa.DataType:
    """BIGINT for integers, DOUBLE for floats, ten more digits for decimals."""
    if pa.types.is_decimal(kind):
        return bounded_decimal(kind.precision + 10, kind.scale)
    return pa.float64() if pa.types.is_floating(kind) else pa.int64()


def rank(value: Any) -> Any:
    """A key that sorts values of one type as Spark sorts them, NULL first.

    NaN is greater than every number. -0.0 is less than 0.0, so that which of the two survives
    does not depend on the order of rows.

    >>> sorted([math.nan, 0.0, None, -0.0, math.inf], key=rank)
    [None, -0.0, 0.0, inf, nan]
    """
    if value is None:
        return (0,)
    if isinstance(value, float):
        if math.isnan(value):
            return (2,)
        return (1, value, math.copysign(1.0, value))
    return (1, value)
