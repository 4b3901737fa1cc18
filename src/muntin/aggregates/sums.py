"""Exact sums and averages of integers, doubles and decimals."""

from __future__ import annotations

from abc import abstractmethod
from decimal import Context, Decimal
from typing import Any, NamedTuple

import pyarrow as pa

from muntin.aggregates.algebra import BuiltIn, Part
from muntin.aggregates.exact.number import DOUBLE_GRID, Exact, add, lift_exact, subtract, to_double
from muntin.aggregates.types import bounded_decimal, require_number, sum_type

# The default context would round to 28 digits; no SQL decimal has more than 38.
_WIDE = Context(prec=40)


class Total(NamedTuple):
    """How many values, and their exact sum."""

    rows: int = 0
    total: Exact = Exact()


class _Summing(BuiltIn):
    """Count and exact sum: a partial that adds and subtracts without rounding."""

    invertible = True

    @property
    def identity(self) -> Total:
        """No values."""
        return Total()

    def lift(self, value: Any) -> Total:
        """One value."""
        return Total(1, lift_exact(value, self.types[0]))

    def combine(self, a: Total, b: Total) -> Total:
        """Add."""
        return Total(a.rows + b.rows, add(a.total, b.total))

    def inverse(self, a: Total, b: Total) -> Total:
        """Subtract."""
        return Total(a.rows - b.rows, subtract(a.total, b.total))

    def lower(self, partial: Total) -> Any:
        """NULL for no values."""
        return self.read(partial) if partial.rows else None

    @abstractmethod
    def read(self, partial: Total) -> Any:
        """The answer for at least one value."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """The sum, and the count that tells an empty sum from zero."""
        return Part("sum", self.types), Part("count", self.types)


class Sum(_Summing):
    """The sum: BIGINT of integers, DOUBLE of floats, a decimal of decimals.

    A sum of doubles is exact and rounded once, so it equals `math.fsum` in any order. A sum of
    integers is range-checked when it is read.

    >>> Sum((pa.float64(),)).of([1e16, 1.0, 1.0, -1e16])
    2.0
    >>> Sum((pa.int64(),)).of([2**63 - 1, 1, -1])
    9223372036854775807
    """

    name = "sum"

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """As Spark's sum."""
        require_number(self.name, types[0])
        return sum_type(types[0])

    def read(self, partial: Total) -> Any:
        """Round, or check the range."""
        if pa.types.is_floating(self.type):
            return to_double(partial.total, DOUBLE_GRID)
        units = partial.total.units
        if pa.types.is_decimal(self.type):
            return decimal_of(units, self.type)
        if not -(2**63) <= units < 2**63:
            raise OverflowError(f"{self.name} {units} is outside BIGINT")
        return units


class Avg(_Summing):
    """The exactly rounded sum divided by the count; of decimals, rounded half up.

    >>> Avg((pa.int64(),)).of([1, 2])
    1.5
    >>> Avg((pa.decimal128(4, 2),)).of([Decimal("0.01"), Decimal("0.02"), Decimal("0.02")])
    Decimal('0.016667')
    """

    name = "avg"
    aliases = ("mean",)

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """DOUBLE, or a decimal with four more digits."""
        require_number(self.name, types[0])
        if pa.types.is_decimal(types[0]):
            return bounded_decimal(types[0].precision + 4, types[0].scale + 4)
        return pa.float64()

    def read(self, partial: Total) -> Any:
        """Divide by the count."""
        kind = self.types[0]
        if pa.types.is_decimal(kind):
            return decimal_avg(partial.total.units, partial.rows, kind.scale, self.type)
        grid = DOUBLE_GRID if pa.types.is_floating(kind) else 0
        return to_double(partial.total, grid) / partial.rows


def decimal_of(units: int, kind: pa.DataType) -> Decimal:
    """A decimal from its unscaled integer; OverflowError beyond the type's precision."""
    if abs(units) >= 10**kind.precision:
        raise OverflowError(f"{units}e-{kind.scale} is outside {kind}")
    return Decimal(units).scaleb(-kind.scale, _WIDE)


def decimal_avg(units: int, count: int, scale: int, kind: pa.DataType) -> Decimal:
    """`units / 10**scale / count`, rounded half up to the scale of `kind`."""
    shift = kind.scale - scale
    rounded = (2 * abs(units) * 10**shift + count) // (2 * count)
    return decimal_of(-rounded if units < 0 else rounded, kind)
