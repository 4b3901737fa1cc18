"""Loops that add exact products and powers of numbers into exact accumulators.

A number is a size of up to 128 bits, a sign, and the place of its last bit. Products of up to four
such numbers take up to sixteen digits; they are added to limbs like any other number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from muntin._compiled import compiled
from muntin._typing import Bools, Ints
from muntin.aggregates.exact.limbs import LOW32, ORIGIN, Digits, multiply

# Digits of the largest power: the fourth, of 128 bits.
_MOST = 16
_ZERO, _ONE, _32U = np.uint64(0), np.uint64(1), np.uint64(32)
_LOW32U = np.uint64(LOW32)


class Numbers(NamedTuple):
    """Numbers: `(highs * 2**64 + lows) * 2**places`, and which of them are negative."""

    lows: npt.NDArray[np.uint64]
    highs: npt.NDArray[np.uint64]
    places: Ints
    negative: Bools


@compiled
def _digits_of(numbers: Numbers, row: int, digits: Digits) -> int:
    """The size of one number in base 2**32; returns how many digits it has."""
    low, high = numbers.lows[row], numbers.highs[row]
    digits[0], digits[1] = low & _LOW32U, low >> _32U
    digits[2], digits[3] = high & _LOW32U, high >> _32U
    size = 4
    while size > 0 and digits[size - 1] == _ZERO:
        size -= 1
    return size


@compiled
def limb_range(cells: Ints, a: Numbers, b: Numbers, power: int) -> tuple[int, int]:
    """The least and the greatest limb that the first digits of products or powers fall into."""
    low, high = 1 << 40, -(1 << 40)
    for i in range(cells.shape[0]):
        if cells[i] >= 0 and (a.lows[i] | a.highs[i]) != _ZERO:
            place = power * a.places[i] if power else a.places[i] + b.places[i]
            low = min(low, (place + ORIGIN) >> 5)
            high = max(high, (place + ORIGIN) >> 5)
    return low, high


@compiled
def add_products(limbs: Ints, base: int, cells: Ints, a: Numbers, b: Numbers, power: int) -> None:
    """Add `a * b`, or `a**power` for a power of 3 or 4, to cells; -1 skips a row.

    The limbs must reach as far as `limb_range` says, and the digits of a product further.
    """
    x, y = np.zeros(4, np.uint64), np.zeros(4, np.uint64)
    p, q = np.zeros(_MOST, np.uint64), np.zeros(_MOST, np.uint64)
    for i in range(cells.shape[0]):
        cell = cells[i]
        n = _digits_of(a, i, x) if cell >= 0 else 0
        if n == 0:
            continue
        negative, place = a.negative[i], a.places[i]
        if power == 0:
            m = _digits_of(b, i, y)
            multiply(x, n, y, m, q)
            size = n + m
            negative, place = negative != b.negative[i], place + b.places[i]
        else:
            multiply(x, n, x, n, p)
            if power == 3:
                multiply(p, 2 * n, x, n, q)
            else:
                multiply(p, 2 * n, p, 2 * n, q)
                negative = False
            size, place = power * n, power * place
        while size > 0 and q[size - 1] == _ZERO:
            size -= 1
        _add_digits(limbs, cell, place + ORIGIN, base, q, size, negative)


@compiled
def _add_digits(
    limbs: Ints, cell: int, position: int, base: int, digits: Digits, size: int, negative: bool
) -> None:
    """Add digits from a bit of the grid on; each limb gets less than 2**32."""
    at, r = (position >> 5) - base, np.uint64(position & 31)
    carry = _ZERO
    for k in range(size):
        shifted = digits[k] << r
        part = np.int64((shifted & _LOW32U) | carry)
        limbs[cell, at + k] += -part if negative else part
        carry = shifted >> _32U
    if carry != _ZERO:
        limbs[cell, at + size] += -np.int64(carry) if negative else np.int64(carry)
