"""The least and the greatest: min, max, any_value, value_range, bool_and, bool_or."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from muntin.aggregates.algebra import BuiltIn, Part
from muntin.aggregates.exact.number import lift_exact
from muntin.aggregates.sums import decimal_of
from muntin.aggregates.types import (
    bounded_decimal,
    rank,
    require_boolean,
    require_number,
    require_ordered,
    sum_type,
)


def least(a: Any, b: Any) -> Any:
    """The smaller of two values, None standing for no value."""
    if a is None or b is None:
        return b if a is None else a
    return b if rank(b) < rank(a) else a


def greatest(a: Any, b: Any) -> Any:
    """The greater of two values, None standing for no value."""
    if a is None or b is None:
        return b if a is None else a
    return b if rank(b) > rank(a) else a


class _Extreme(BuiltIn):
    """A value that is one of the values: NULL for none."""

    selective = True
    duplicate_insensitive = True

    @property
    def identity(self) -> None:
        """No value."""
        return

    def lift(self, value: Any) -> Any:
        """The value itself."""
        return value

    def lower(self, partial: Any) -> Any:
        """The value itself."""
        return partial

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """The argument's type."""
        require_ordered(self.name, types[0])
        return types[0]


class Min(_Extreme):
    """The least value; NaN counts as greater than every number.

    >>> Min((pa.float64(),)).of([float("nan"), 2.0, None])
    2.0
    """

    name = "min"

    def combine(self, a: Any, b: Any) -> Any:
        """The smaller."""
        return least(a, b)

    @property
    def parts(self) -> tuple[Part, ...]:
        """One minimum."""
        return (Part("min", self.types),)


class AnyValue(Min):
    """Some value: the least one, so that neither order nor arrival decides which.

    NULL only where there is no other value, with or without IGNORE NULLS.

    >>> AnyValue((pa.string(),)).of([None, "sash", "muntin"])
    'muntin'
    """

    name = "any_value"
    aliases = ("arbitrary",)


class Max(_Extreme):
    """The greatest value.

    >>> Max((pa.string(),)).of(["muntin", "sash", None])
    'sash'
    """

    name = "max"

    def combine(self, a: Any, b: Any) -> Any:
        """The greater."""
        return greatest(a, b)

    @property
    def parts(self) -> tuple[Part, ...]:
        """One maximum."""
        return (Part("max", self.types),)


class BoolAnd(Min):
    """Whether the condition is true in every row; false is less than true.

    >>> BoolAnd((pa.bool_(),)).of([True, None, False])
    False
    """

    name = "bool_and"
    aliases = ("every",)

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """BOOLEAN of a condition."""
        require_boolean(self.name, types[0])
        return pa.bool_()


class BoolOr(Max):
    """Whether the condition is true in some row.

    >>> BoolOr((pa.bool_(),)).of([None, None]) is None
    True
    """

    name = "bool_or"
    aliases = ("some", "any")

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """BOOLEAN of a condition."""
        require_boolean(self.name, types[0])
        return pa.bool_()


class ValueRange(BuiltIn):
    """The greatest less the least value.

    >>> ValueRange((pa.int64(),)).of([3, 9, 4])
    6
    """

    name = "value_range"
    duplicate_insensitive = True

    @property
    def identity(self) -> tuple[None, None]:
        """No value."""
        return None, None

    def lift(self, value: Any) -> tuple[Any, Any]:
        """The value is both ends."""
        return value, value

    def combine(self, a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
        """The wider of both."""
        return least(a[0], b[0]), greatest(a[1], b[1])

    def lower(self, partial: tuple[Any, Any]) -> Any:
        """The difference; NULL for no value."""
        low, high = partial
        if low is None:
            return None
        if pa.types.is_decimal(self.type):
            kind = self.types[0]
            return decimal_of(lift_exact(high, kind).units - lift_exact(low, kind).units, self.type)
        if pa.types.is_integer(self.type) and high - low >= 2**63:
            raise OverflowError(f"{self.name} {high - low} is outside BIGINT")
        return high - low

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """BIGINT of integers, DOUBLE of floats, a decimal with one more digit of decimals."""
        require_number(self.name, types[0])
        if pa.types.is_decimal(types[0]):
            return bounded_decimal(types[0].precision + 1, types[0].scale)
        return sum_type(types[0])

    @property
    def parts(self) -> tuple[Part, ...]:
        """A minimum and a maximum."""
        return Part("min", self.types), Part("max", self.types)
