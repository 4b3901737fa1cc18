"""Base-2 logarithms to 96 fractional bits, and back: the same bits on every machine.

No library's logarithm is used: its last bits differ from platform to platform, and sums of them
would not be the same on two workers.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.aggregates.exact.limbs import LOW32, Digits
from muntin.aggregates.exact.rounding import round_word, spread_carries

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


ZEROS, NEGATIVES, NANS, INFINITIES = range(4)

_LOGS = [log2_ratio(128 + j, 128, 96) for j in range(129)]
_LOG_LIMBS = np.array([[log >> 64, (log >> 32) & LOW32, log & LOW32] for log in _LOGS])
_POWERS = np.array([double_double(exp2_ratio(j, 6)) for j in range(64)])
_INVERSE_FACTORIALS = np.array([double_double(Fraction(1, math.factorial(k))) for k in range(14)])
_LN2, _LN2_LOW = double_double(Fraction(LN2, 1 << BITS))
_TWICE_LOG2E, _TWICE_LOG2E_LOW = double_double(Fraction(2 << BITS, LN2))
_THIRD, _THIRD_LOW = double_double(Fraction(1, 3))
_FIFTH, _FIFTH_LOW = double_double(Fraction(1, 5))
_TWO32 = 2.0**32
_HIDDEN_BIT = 1 << 52
_INFINITE = 0x7FF
_TOP_BIT = np.uint64(1 << 63)
_ONE = np.uint64(1)


@compiled
def log2_limbs(bits: int) -> tuple[int, int, int, int]:
    """log2|x| of a finite x that is not zero: the integer part and three limbs of 32 bits.

    x = 2**e * m, with m near one of 129 table points c, and the logarithm of m / c from the
    series of the inverse hyperbolic tangent. Limbs are signed and below 2**33; their value lies
    within one unit of the last limb of the logarithm, and is exact for powers of two.
    """
    exponent = (bits >> 52) & _INFINITE
    mantissa = bits & (_HIDDEN_BIT - 1)
    if exponent == 0:
        exponent = 1
        while mantissa < _HIDDEN_BIT:
            mantissa <<= 1
            exponent -= 1
    else:
        mantissa |= _HIDDEN_BIT
    j = (mantissa - _HIDDEN_BIT + (1 << 44)) >> 45
    high, low = _log2_near(mantissa / 2.0**52, 1.0 + j / 128.0)
    # Nearest integers: what each leaves is again a double, exactly.
    first = np.rint(high * _TWO32)
    high, low = two_sum(high * _TWO32 - first, low * _TWO32)
    second = np.rint(high * _TWO32)
    high, low = two_sum(high * _TWO32 - second, low * _TWO32)
    third = np.rint(high * _TWO32)
    return (
        exponent - 1023,
        _LOG_LIMBS[j, 0] + np.int64(first),
        _LOG_LIMBS[j, 1] + np.int64(second),
        _LOG_LIMBS[j, 2] + np.int64(third),
    )


@compiled
def _log2_near(m: float, c: float) -> tuple[float, float]:
    """log2(m / c) for |m - c| up to 2**-8, as a pair of doubles."""
    total, total_low = two_sum(m, c)
    s, s_low = divide(m - c, total, total_low)
    q, q_low = multiply(s, s_low, s, s_low)
    tail = q * (1.0 / 7.0 + q * (1.0 / 9.0 + q * (1.0 / 11.0 + q * (1.0 / 13.0))))
    u, u_low = add(_FIFTH, _FIFTH_LOW, tail, 0.0)
    u, u_low = multiply(u, u_low, q, q_low)
    u, u_low = add(_THIRD, _THIRD_LOW, u, u_low)
    u, u_low = multiply(u, u_low, q, q_low)
    u, u_low = add(1.0, 0.0, u, u_low)
    u, u_low = multiply(u, u_low, s, s_low)
    return multiply(u, u_low, _TWICE_LOG2E, _TWICE_LOG2E_LOW)


@compiled
def exp2_bits(whole: int, high: int, mid: int, low: int) -> np.uint64:
    """2**(whole + fraction), rounded once, as the bits of a double; the fraction in three limbs."""
    if whole > 1100 or whole < -1200:
        return round_word(_TOP_BIT, 2000 if whole > 0 else -2000, False)
    j = high >> 26
    g, g_low = two_sum((high & ((1 << 26) - 1)) / _TWO32, mid / _TWO32 / _TWO32)
    g_low += low / _TWO32 / _TWO32 / _TWO32
    y, y_low = multiply(g, g_low, _LN2, _LN2_LOW)
    tail = _INVERSE_FACTORIALS[13, 0]
    for k in range(12, 7, -1):
        tail = _INVERSE_FACTORIALS[k, 0] + y * tail
    u, u_low = tail, 0.0
    for k in range(7, -1, -1):
        u, u_low = multiply(u, u_low, y, y_low)
        u, u_low = add(_INVERSE_FACTORIALS[k, 0], _INVERSE_FACTORIALS[k, 1], u, u_low)
    u, u_low = multiply(u, u_low, _POWERS[j, 0], _POWERS[j, 1])
    # The pair as an integer in units of 2**-62: its high part has 53 bits.
    rest = u_low * 2.0**62
    floor = np.floor(rest)
    word = np.uint64((np.int64(u * 2.0**52) << 10) + np.int64(floor))
    exponent = whole - 62
    while word < _TOP_BIT:
        word <<= _ONE
        exponent -= 1
    return round_word(word, exponent, rest != floor)


@compiled
def add_logs(limbs: Ints, marks: Ints, cells: Ints, bits: Ints, first: int) -> int:
    """Add log2|x| to cells, and count zeros, negatives, NaN and infinities in `marks`.

    Stops at a row that needs a mark while `marks` is empty, and returns it; otherwise returns
    the number of rows.
    """
    for i in range(first, cells.shape[0]):
        cell = cells[i]
        if cell < 0:
            continue
        b = bits[i]
        size = b & ((1 << 63) - 1)
        plain = 0 < size < (_INFINITE << 52)
        if b < 0 or not plain:
            if marks.shape[0] == 0:
                return i
            _mark(marks, cell, b, size)
        if plain:
            whole, high, mid, low = log2_limbs(b)
            limbs[cell, 0] += low
            limbs[cell, 1] += mid
            limbs[cell, 2] += high
            limbs[cell, 3] += whole
    return len(cells)


@compiled
def _mark(marks: Ints, cell: int, bits: int, size: int) -> None:
    if size == 0:
        marks[cell, ZEROS] += 1
    elif size > (_INFINITE << 52):
        marks[cell, NANS] += 1
    else:
        if size == (_INFINITE << 52):
            marks[cell, INFINITIES] += 1
        if bits < 0:
            marks[cell, NEGATIVES] += 1


@compiled
def powers(limbs: Ints, counts: Ints, mean: bool) -> Digits:
    """Two to each sum of logarithms, or to their mean, as the bits of doubles."""
    out = np.zeros(limbs.shape[0], np.uint64)
    digits = np.zeros(limbs.shape[1] + 2, np.uint64)
    for cell in range(limbs.shape[0]):
        spread_carries(limbs[cell], digits, False)
        whole = int(np.int64(digits[3] | (digits[4] << np.uint64(32))))
        high, mid, low = (
            int(np.int64(digits[2])),
            int(np.int64(digits[1])),
            int(np.int64(digits[0])),
        )
        if mean and 1 < counts[cell] < (1 << 31):
            n = counts[cell]
            whole, rest = whole // n, whole % n
            high, rest = ((rest << 32) + high) // n, ((rest << 32) + high) % n
            mid, rest = ((rest << 32) + mid) // n, ((rest << 32) + mid) % n
            low = ((rest << 32) + low) // n
        out[cell] = exp2_bits(whole, high, mid, low)
    return out
