"""How two numbers go together: covariance, correlation and linear regression."""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow as pa

from muntin.aggregates.algebra import BuiltIn, Part
from muntin.aggregates.exact.number import (
    Exact,
    add,
    is_special,
    lift_exact,
    multiplied,
    square,
    subtract,
)
from muntin.aggregates.moments import grid, read_form, ten
from muntin.aggregates.types import require_number


class Together(NamedTuple):
    """How many rows, and the exact sums of y, x, x * y, and the squares of x and y."""

    rows: int = 0
    y: Exact = Exact()
    x: Exact = Exact()
    products: Exact = Exact()
    x_squares: Exact = Exact()
    y_squares: Exact = Exact()


class _Pair(BuiltIn):
    """A number read off the exact sums of rows where neither argument is NULL.

    The first argument is y, the second x. NaN or an infinity in one of them gives NaN, and a
    division by zero NULL.
    """

    arity = (2, 2)
    invertible = True
    # How many rows it takes, how many of the sums, and whether x alone decides the divisor.
    least = 1
    sums = 3
    divides_by_x = False

    @property
    def identity(self) -> Together:
        """No rows."""
        return Together()

    def lift(self, value: tuple[Any, Any]) -> Together:
        """One row."""
        y, x = (lift_exact(each, kind) for each, kind in zip(value, self.types, strict=True))
        return Together(1, y, x, multiplied(x, y), square(x), square(y))

    def combine(self, a: Together, b: Together) -> Together:
        """Add."""
        return Together(a.rows + b.rows, *map(add, a[1:], b[1:]))

    def inverse(self, a: Together, b: Together) -> Together:
        """Subtract."""
        return Together(a.rows - b.rows, *map(subtract, a[1:], b[1:]))

    def lower(self, partial: Together) -> float | None:
        """NULL for too few rows."""
        y, x = (grid(kind) for kind in self.types)
        grids = (y, x, x + y, 2 * x, 2 * y)
        sums = [(each.units, at) for each, at in zip(partial[1:], grids, strict=True)]
        if partial.rows < self.least:
            return None
        special = is_special(partial.y) or is_special(partial.x)
        unknown = is_special(partial.x) if self.divides_by_x else special
        tens = [(ten(kind), 0) for kind in self.types]
        variables = [(partial.rows, 0), *tens, *sums[: self.sums]]
        return read_form(self.name, variables, special, unknown)

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """DOUBLE of two numbers."""
        for kind in types:
            require_number(self.name, kind)
        return pa.float64()

    @property
    def parts(self) -> tuple[Part, ...]:
        """The count of rows, and sums of what both arguments have."""
        y, x = self.types
        return (
            Part("count", (y, x), (0, 1)),
            Part("sum_given", (y, x), (0, 1)),
            Part("sum_given", (x, y), (1, 0)),
            Part("sum_products", (y, x), (0, 1)),
            Part("squares_given", (x, y), (1, 0)),
            Part("squares_given", (y, x), (0, 1)),
        )[: 1 + self.sums]


class CovarPop(_Pair):
    """The covariance of a population.

    >>> CovarPop((pa.int64(), pa.int64())).of([(1, 2), (3, 4), (5, None)])
    1.0
    """

    name = "covar_pop"


class CovarSamp(_Pair):
    """The covariance of a sample; NULL for one row.

    >>> CovarSamp((pa.int64(), pa.int64())).of([(1, 2), (3, 4)])
    2.0
    """

    name = "covar_samp"
    least = 2


class Corr(_Pair):
    """Pearson's correlation; NULL where one argument has a single value.

    >>> Corr((pa.int64(), pa.int64())).of([(1, 9), (2, 8), (3, 7)])
    -1.0
    """

    name = "corr"
    least = 2
    sums = 5


class RegrSlope(_Pair):
    """The slope of the line of y over x with the least squares; NULL where x has one value.

    >>> RegrSlope((pa.int64(), pa.int64())).of([(1, 0), (3, 1), (5, 2)])
    2.0
    """

    name = "regr_slope"
    least = 2
    sums = 4
    divides_by_x = True


class RegrIntercept(_Pair):
    """Where the line of y over x with the least squares meets x = 0.

    >>> RegrIntercept((pa.int64(), pa.int64())).of([(1, 0), (3, 1), (5, 2)])
    1.0
    """

    name = "regr_intercept"
    least = 2
    sums = 4
    divides_by_x = True


class RegrR2(_Pair):
    """How much of y's variance the line explains: 1 where y has one value, NULL where x has.

    >>> RegrR2((pa.int64(), pa.int64())).of([(1, 0), (3, 1), (5, 2)])
    1.0
    """

    name = "regr_r2"
    least = 2
    sums = 5
    divides_by_x = True
