"""Variance and standard deviation, read off the exact count, sum and sum of squares."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, NamedTuple

import pyarrow as pa

from muntin.aggregates.algebra import BuiltIn, Part
from muntin.aggregates.exact.number import (
    DOUBLE_GRID,
    Exact,
    add,
    is_special,
    lift_exact,
    quotient,
    square,
    subtract,
)
from muntin.aggregates.types import require_number


class Moments(NamedTuple):
    """How many values, their exact sum, and the exact sum of their squares."""

    rows: int = 0
    total: Exact = Exact()
    squares: Exact = Exact()


class _Spread(BuiltIn):
    """The exact variance, rounded once: n times the sum of squares less the squared sum.

    Nothing cancels, because nothing is rounded before the division by `n * (n - ddof)`. NaN or an
    infinity among the values gives NaN.
    """

    invertible = True

    @property
    def identity(self) -> Moments:
        """No values."""
        return Moments()

    def lift(self, value: Any) -> Moments:
        """One value and its exact square."""
        exact = lift_exact(value, self.types[0])
        return Moments(1, exact, square(exact))

    def combine(self, a: Moments, b: Moments) -> Moments:
        """Add."""
        return Moments(a.rows + b.rows, add(a.total, b.total), add(a.squares, b.squares))

    def inverse(self, a: Moments, b: Moments) -> Moments:
        """Subtract."""
        return Moments(a.rows - b.rows, subtract(a.total, b.total), subtract(a.squares, b.squares))

    def lower(self, partial: Moments) -> float | None:
        """NULL for fewer values than the divisor needs."""
        if partial.rows <= self.ddof:
            return None
        return self.read(self.variance(partial))

    def variance(self, partial: Moments) -> float:
        """The variance as the nearest double."""
        if is_special(partial.total):
            return math.nan
        n = partial.rows
        numerator = n * partial.squares.units - partial.total.units**2
        return quotient(numerator, n * (n - self.ddof) * unit(self.types[0]) ** 2)

    @property
    @abstractmethod
    def ddof(self) -> int:
        """What is taken off the divisor: 1 for a sample, 0 for a population."""

    @abstractmethod
    def read(self, variance: float) -> float:
        """The answer from the variance."""

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """DOUBLE of numbers."""
        require_number(self.name, types[0])
        return pa.float64()

    @property
    def parts(self) -> tuple[Part, ...]:
        """The sum, the sum of squares and the count."""
        return Part("sum", self.types), Part("sum_squares", self.types), Part("count", self.types)


class VarPop(_Spread):
    """The variance of a population.

    >>> VarPop((pa.float64(),)).of([1e9 + 1, 1e9 + 2, 1e9 + 3, 1e9 + 4])
    1.25
    """

    name = "var_pop"
    ddof = 0

    def read(self, variance: float) -> float:
        """As it is."""
        return variance


class VarSamp(VarPop):
    """The variance of a sample; NULL for one value.

    >>> VarSamp((pa.int64(),)).of([1, 2, 3, 4]), VarSamp((pa.int64(),)).of([1])
    (1.6666666666666667, None)
    """

    name = "var_samp"
    aliases = ("variance",)
    ddof = 1


class StddevPop(_Spread):
    """The square root of `var_pop`.

    >>> StddevPop((pa.int64(),)).of([1, 1, 3, 3])
    1.0
    """

    name = "stddev_pop"
    ddof = 0

    def read(self, variance: float) -> float:
        """The square root."""
        return math.sqrt(variance)


class StddevSamp(StddevPop):
    """The square root of `var_samp`.

    >>> StddevSamp((pa.int64(),)).of([1, 3])
    1.4142135623730951
    """

    name = "stddev_samp"
    aliases = ("stddev", "std")
    ddof = 1


def unit(kind: pa.DataType) -> int:
    """How many units of the type's exact grid make 1."""
    if pa.types.is_decimal(kind):
        return int(10**kind.scale)
    return 2**DOUBLE_GRID if pa.types.is_floating(kind) else 1
