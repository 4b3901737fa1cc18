"""Products and geometric means over an exact sum of logarithms."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from muntin.aggregates.algebra import BuiltIn, Part
from muntin.aggregates.types import require_number


class Logs(NamedTuple):
    """The sum of log2|x| in units of 2**-96, and how many values there were of each kind.

    Zeros, NaN and infinities have no logarithm and are only counted. Each logarithm is rounded to
    the grid when lifted; from there on everything is integers, so partials add and subtract
    without rounding and in any order.
    """

    units: int = 0
    rows: int = 0
    zeros: int = 0
    negatives: int = 0
    nans: int = 0
    infinities: int = 0


class _Logarithmic(BuiltIn):
    """A sum of logarithms; arguments are cast to DOUBLE first."""

    invertible = True

    @property
    def identity(self) -> Logs:
        """No values."""
        return Logs()

    def lift(self, value: Any) -> Logs:
        """One value."""
        x = float(value)
        if math.isnan(x):
            return Logs(rows=1, nans=1)
        negative = int(x < 0)
        if x == 0 or math.isinf(x):
            return Logs(0, 1, int(x == 0), negative, 0, int(x != 0))
        return Logs(log2_units(x), 1, negatives=negative)

    def combine(self, a: Logs, b: Logs) -> Logs:
        """Add."""
        return Logs(*(x + y for x, y in zip(a, b, strict=True)))

    def inverse(self, a: Logs, b: Logs) -> Logs:
        """Subtract."""
        return Logs(*(x - y for x, y in zip(a, b, strict=True)))

    def lower(self, partial: Logs) -> float | None:
        """NULL for no values."""
        return self.read(partial) if partial.rows else None

    @abstractmethod
    def read(self, partial: Logs) -> float:
        """The answer for at least one value."""

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """DOUBLE of numbers."""
        require_number(self.name, types[0])
        return pa.float64()

    @property
    def parts(self) -> tuple[Part, ...]:
        """The sum of logarithms and the count."""
        return Part("log_sum", self.types), Part("count", self.types)


class Product(_Logarithmic):
    """The product, within one unit in the last place of the true one.

    Small products of integers come out exact. Overflow is infinite, zero times infinity is NaN,
    a product that is zero is 0.0.

    >>> Product((pa.int64(),)).of([2, -3, 7])
    -42.0
    """

    name = "product"

    def read(self, partial: Logs) -> float:
        """Two to the sum, with the sign of the product."""
        if partial.nans or (partial.zeros and partial.infinities):
            return math.nan
        if partial.zeros:
            return 0.0
        size = math.inf if partial.infinities else exp2_units(partial.units)
        return -size if partial.negatives % 2 else size


class GeoMean(_Logarithmic):
    """The n-th root of the product of n values; NaN if one is negative.

    >>> GeoMean((pa.int64(),)).of([3, 12])
    6.0
    """

    name = "geo_mean"
    aliases = ("geomean", "geometric_mean")

    def read(self, partial: Logs) -> float:
        """Two to the mean logarithm."""
        if partial.nans or partial.negatives or (partial.zeros and partial.infinities):
            return math.nan
        if partial.zeros:
            return 0.0
        return math.inf if partial.infinities else exp2_units(partial.units // partial.rows)


def log2_units(x: float) -> int:
    """log2|x| of a finite value that is not zero, in units of 2**-96, within one unit.

    >>> log2_units(8.0) == 3 << 96
    True
    """
    # Deferred: the kernels bring numba, which the algebra alone does not need.
    from muntin.aggregates.exact import logarithms  # noqa: PLC0415

    whole, high, mid, low = logarithms.log2_limbs(int(np.float64(x).view(np.int64)))
    return (int(whole) << 96) + (int(high) << 64) + (int(mid) << 32) + int(low)


def exp2_units(units: int) -> float:
    """Two to `units` of 2**-96, rounded once; infinite or zero beyond the range of doubles."""
    from muntin.aggregates.exact import logarithms  # noqa: PLC0415

    whole = min(max(units >> 96, -5000), 5000)
    high, mid, low = (units >> 64) & 0xFFFFFFFF, (units >> 32) & 0xFFFFFFFF, units & 0xFFFFFFFF
    bits = np.uint64(logarithms.exp2_bits(whole, high, mid, low))
    return float(bits.view(np.float64))
