"""Exact numbers: integers on a grid fine enough for every value, plus counts of NaN and infinities.

Every DOUBLE is an integer multiple of 2**-1074, so sums and squares of doubles are integers on
that grid (or its square): nothing is lost before the answer is rounded. Integers keep their own
grid, and decimals that of their scale.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import pyarrow as pa

DOUBLE_GRID = 1074


class Exact(NamedTuple):
    """A sum without rounding: units of the grid, and how many NaN, +inf and -inf went in.

    >>> big, small = lift_exact(1e16, pa.float64()), lift_exact(1.0, pa.float64())
    >>> total = add(add(big, small), small)
    >>> to_double(subtract(total, big), DOUBLE_GRID)
    2.0
    """

    units: int = 0
    nans: int = 0
    ups: int = 0
    downs: int = 0


def lift_exact(value: Any, kind: pa.DataType) -> Exact:
    """The value of an Arrow type, in units of its grid."""
    if pa.types.is_decimal(kind):
        return Exact(int(Fraction(Decimal(value)) * 10**kind.scale))
    if not pa.types.is_floating(kind):
        return Exact(int(value))
    if math.isnan(value):
        return Exact(nans=1)
    if math.isinf(value):
        return Exact(ups=int(value > 0), downs=int(value < 0))
    return Exact(int(Fraction(value) * 2**DOUBLE_GRID))


def square(a: Exact) -> Exact:
    """The square, on the squared grid."""
    return Exact(a.units * a.units, a.nans, a.ups + a.downs, 0)


def multiplied(a: Exact, b: Exact) -> Exact:
    """The product of two values on the product of their grids; nothing of NaN and infinities."""
    return Exact() if is_special(a) or is_special(b) else Exact(a.units * b.units)


def add(a: Exact, b: Exact) -> Exact:
    """The sum of two sums."""
    return Exact(a.units + b.units, a.nans + b.nans, a.ups + b.ups, a.downs + b.downs)


def subtract(a: Exact, b: Exact) -> Exact:
    """The sum `a` without the values of `b`."""
    return Exact(a.units - b.units, a.nans - b.nans, a.ups - b.ups, a.downs - b.downs)


def is_special(a: Exact) -> bool:
    """Whether NaN or an infinity went in."""
    return bool(a.nans or a.ups or a.downs)


def to_double(a: Exact, grid: int = 0) -> float:
    """The nearest double, halves to even; `math.fsum` of the values, infinite where that overflows.

    A sum of negative zeros is 0.0, as it is for `math.fsum`.
    """
    if a.nans or (a.ups and a.downs):
        return math.nan
    if a.ups or a.downs:
        return math.inf if a.ups else -math.inf
    return quotient(a.units, 1 << grid)


def quotient(numerator: int, denominator: int) -> float:
    """The nearest double to a fraction with a positive denominator.

    >>> quotient(1, 3), quotient(10**400, 1)
    (0.3333333333333333, inf)
    """
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf
