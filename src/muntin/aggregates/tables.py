"""Logarithms and powers of two for the kernels' tables, from integer arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

BITS = 220


def ln_ratio(numerator: int, denominator: int) -> int:
    """ln(numerator / denominator) in units of 2**-220, within a few hundred units.

    The ratio is taken from [1, 2]; the series is that of the inverse hyperbolic tangent.

    >>> abs(ln_ratio(2, 1) / 2**220 - math.log(2)) < 1e-15
    True
    """
    x = ((numerator - denominator) << BITS) // (numerator + denominator)
    squared = (x * x) >> BITS
    total, power, k = 0, x, 1
    while power:
        total += power // k
        power = (power * squared) >> BITS
        k += 2
    return 2 * total


LN2 = ln_ratio(2, 1)


def log2_ratio(numerator: int, denominator: int, bits: int) -> int:
    """log2(numerator / denominator) in units of 2**-bits, to the nearest unit.

    >>> log2_ratio(2, 1, 96) == 1 << 96
    True
    """
    return (2 * (ln_ratio(numerator, denominator) << bits) // LN2 + 1) >> 1


def exp2_ratio(numerator: int, root: int) -> Fraction:
    """2**(numerator / 2**root) to 220 bits, by square roots.

    >>> float(exp2_ratio(1, 1))
    1.4142135623730951
    """
    value = 1 << (BITS + numerator)
    for _ in range(root):
        value = math.isqrt(value << BITS)
    return Fraction(value, 1 << BITS)


def double_double(value: Fraction) -> tuple[float, float]:
    """The nearest double, and the nearest double to what that leaves.

    >>> double_double(Fraction(1, 3))
    (0.3333333333333333, 1.850371707708594e-17)
    """
    high = float(value)
    return high, float(value - Fraction(high))
