"""Variance, standard deviation, skewness and kurtosis, read off exact sums of powers."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from muntin.aggregates.algebra import BuiltIn, Part
from muntin.aggregates.exact.number import (
    DOUBLE_GRID,
    Exact,
    add,
    is_special,
    lift_exact,
    multiplied,
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


class Powers(NamedTuple):
    """How many values, and the exact sums of their first four powers."""

    rows: int = 0
    total: Exact = Exact()
    squares: Exact = Exact()
    cubes: Exact = Exact()
    fourths: Exact = Exact()


class _Shape(BuiltIn):
    """The shape of a distribution: NULL where all values are equal, NaN for NaN and infinities."""

    invertible = True
    powers = 4

    @property
    def identity(self) -> Powers:
        """No values."""
        return Powers()

    def lift(self, value: Any) -> Powers:
        """One value and its exact powers."""
        exact = lift_exact(value, self.types[0])
        squared = multiplied(exact, exact)
        cubed, fourth = multiplied(squared, exact), multiplied(squared, squared)
        return Powers(1, exact, square(exact), cubed, fourth)

    def combine(self, a: Powers, b: Powers) -> Powers:
        """Add."""
        return Powers(a.rows + b.rows, *map(add, a[1:], b[1:]))

    def inverse(self, a: Powers, b: Powers) -> Powers:
        """Subtract."""
        return Powers(a.rows - b.rows, *map(subtract, a[1:], b[1:]))

    def lower(self, partial: Powers) -> float | None:
        """NULL for no values."""
        one = grid(self.types[0])
        sums = [(each.units, power * one) for power, each in enumerate(partial[1:], 1)]
        if not partial.rows:
            return None
        special = is_special(partial.total)
        return read_form(self.name, [(partial.rows, 0), *sums[: self.powers]], special, special)

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """DOUBLE of numbers."""
        require_number(self.name, types[0])
        return pa.float64()

    @property
    def parts(self) -> tuple[Part, ...]:
        """The count, and sums of powers; the first two are those of the variance."""
        kinds = ("count", "sum", "sum_squares", "sum_cubes", "sum_fourths")
        return tuple(Part(kind, self.types) for kind in kinds[: 1 + self.powers])


class Skewness(_Shape):
    """How far a population leans to one side: its third moment over its deviation cubed.

    >>> Skewness((pa.int64(),)).of([1, 1, 4]), Skewness((pa.int64(),)).of([1, 1])
    (0.7071067811865476, None)
    """

    name = "skewness"
    powers = 3


class Kurtosis(_Shape):
    """How heavy a population's tails are: its fourth moment over its squared variance, less 3.

    >>> Kurtosis((pa.int64(),)).of([1, 2, 3, 4])
    -1.36
    """

    name = "kurtosis"
    aliases = ("kurtosis_pop",)


def read_form(
    name: str, variables: Sequence[tuple[int, int]], special: bool, unknown: bool
) -> float | None:
    """The answer of an aggregate that is a quotient of polynomials in these sums.

    Each variable is a whole number of units, of which `2**grid` make 1. A `special` value gives
    NaN, but NULL where the divisor is zero and is not `unknown` for such a value.
    """
    # Deferred: the kernels bring numba, which the algebra alone does not need.
    from muntin.aggregates.exact import forms  # noqa: PLC0415

    form: forms.Form = getattr(forms, name.upper())
    values, absent = forms.answers(form, [forms.on_grid(*each) for each in variables])
    if absent[0] and not unknown:
        return None
    return math.nan if special else float(values[0])


def grid(kind: pa.DataType) -> int:
    """The exponent of the type's exact grid: units of `2**-grid`, or of 1."""
    return DOUBLE_GRID if pa.types.is_floating(kind) else 0


def ten(kind: pa.DataType) -> int:
    """How many units of a decimal make 1; 1 for other types."""
    return int(10**kind.scale) if pa.types.is_decimal(kind) else 1


def unit(kind: pa.DataType) -> int:
    """How many units of the type's exact grid make 1."""
    if pa.types.is_decimal(kind):
        return int(10**kind.scale)
    return 2**DOUBLE_GRID if pa.types.is_floating(kind) else 1
