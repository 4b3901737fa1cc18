"""Arithmetic on pairs of doubles (high, low), about 105 bits, without fused operations.

The error-free sum is Knuth's, the split and product are Dekker's (A floating-point technique for
extending the available precision, 1971). Plain IEEE operations in a fixed order give the same
bits on every machine.
"""

from __future__ import annotations

from muntin.compiled import compiled

Pair = tuple[float, float]

_SPLITTER = 2.0**27 + 1


@compiled
def two_sum(a: float, b: float) -> Pair:
    """The rounded sum, and exactly what rounding left out."""
    total = a + b
    shadow = total - a
    return total, (a - (total - shadow)) + (b - shadow)


@compiled
def two_product(a: float, b: float) -> Pair:
    """The rounded product, and exactly what rounding left out."""
    product = a * b
    t = _SPLITTER * a
    a_high = t - (t - a)
    a_low = a - a_high
    t = _SPLITTER * b
    b_high = t - (t - b)
    b_low = b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@compiled
def add(a: float, a_low: float, b: float, b_low: float) -> Pair:
    """The sum of two pairs."""
    high, rest = two_sum(a, b)
    low, least = two_sum(a_low, b_low)
    high, rest = two_sum(high, rest + low)
    return two_sum(high, rest + least)


@compiled
def multiply(a: float, a_low: float, b: float, b_low: float) -> Pair:
    """The product of two pairs."""
    high, rest = two_product(a, b)
    return two_sum(high, rest + (a * b_low + a_low * b))


@compiled
def divide(a: float, b: float, b_low: float) -> Pair:
    """A double divided by a pair."""
    first = a / b
    rest, rest_low = multiply(first, 0.0, -b, -b_low)
    rest, rest_low = add(a, 0.0, rest, rest_low)
    second = rest / b
    again, again_low = multiply(second, 0.0, -b, -b_low)
    rest, rest_low = add(rest, rest_low, again, again_low)
    high, low = two_sum(first, second)
    return two_sum(high, low + rest / b)
