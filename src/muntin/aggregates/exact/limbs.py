"""Loops that add numbers into exact accumulators.

An accumulator is a row of signed 64-bit limbs. Limb k of a column whose window starts at `base`
weighs 2**(32 * (base + k) - 2176), so that the squares of the least doubles, multiples of
2**-2148, have a place and 2**0 falls on a limb. A number adds less than 2**32 to each of a few
neighbouring limbs, which leaves 31 bits of room for carries that are settled later.

The idea of a long fixed-point accumulator is Kulisch's; small superaccumulators with delayed
carries are Neal's (Fast exact summation using small and large superaccumulators, 2015).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin._compiled import compiled
from muntin._typing import Ints

Digits = npt.NDArray[np.uint64]

ORIGIN = 2176
ONE_LIMB = ORIGIN // 32
LOW32 = 0xFFFFFFFF
_LOW32U = np.uint64(LOW32)
_1U, _2U, _3U, _4U, _32U = (np.uint64(k) for k in (1, 2, 3, 4, 32))


@compiled
def add_integers(limbs: Ints, at: int, cells: Ints, values: Ints) -> None:
    """Add 64-bit integers; `at` is the limb that weighs 1."""
    for i in range(cells.shape[0]):
        cell = cells[i]
        if cell >= 0:
            value = values[i]
            limbs[cell, at] += value & LOW32
            limbs[cell, at + 1] += value >> 32


@compiled
def add_integer_squares(limbs: Ints, at: int, cells: Ints, values: Ints) -> None:
    """Add the exact squares of 64-bit integers into five limbs."""
    width = limbs.shape[1]
    flat = limbs.reshape(-1)
    for i in range(cells.shape[0]):
        cell = cells[i]
        if cell >= 0:
            value = values[i]
            sign = value >> 63
            # The least integer is its own negative; as unsigned that is its size.
            size = np.uint64((value ^ sign) - sign)
            add_square(flat, np.uint64(cell * width + at), size, np.uint64(0))


@compiled
def add_decimals(limbs: Ints, at: int, cells: Ints, words: Ints) -> None:
    """Add 128-bit integers, given as pairs of words, low word first."""
    for i in range(cells.shape[0]):
        cell = cells[i]
        if cell >= 0:
            low, high = words[i, 0], words[i, 1]
            limbs[cell, at] += low & LOW32
            limbs[cell, at + 1] += (low >> 32) & LOW32
            limbs[cell, at + 2] += high & LOW32
            limbs[cell, at + 3] += high >> 32


@compiled
def add_decimal_squares(limbs: Ints, at: int, cells: Ints, words: Ints) -> None:
    """Add the exact squares of 128-bit integers into eight limbs."""
    digits = np.zeros(4, np.uint64)
    squares = np.zeros(8, np.uint64)
    for i in range(cells.shape[0]):
        cell = cells[i]
        if cell >= 0:
            _magnitude(words[i, 0], words[i, 1], digits)
            multiply(digits, 4, digits, 4, squares)
            for k in range(8):
                limbs[cell, at + k] += np.int64(squares[k])


@compiled
def add_limbs(limbs: Ints, at: int, cells: Ints, others: Ints) -> None:
    """Add whole accumulators; their first limb goes to limb `at`."""
    for i in range(cells.shape[0]):
        cell = cells[i]
        if cell >= 0:
            for k in range(others.shape[1]):
                limbs[cell, at + k] += others[i, k]


@compiled
def settle_carries(limbs: Ints) -> int:
    """Bring all limbs but the top one into [0, 2**32); returns the largest size of a top limb."""
    largest = 0
    last = limbs.shape[1] - 1
    for cell in range(limbs.shape[0]):
        carry = 0
        for k in range(last):
            total = limbs[cell, k] + carry
            limbs[cell, k] = total & LOW32
            carry = total >> 32
        limbs[cell, last] += carry
        top = limbs[cell, last]
        largest = max(largest, top ^ (top >> 63))
    return largest


def slide_sums(rows: Ints, starts: Ints, ends: Ints) -> Ints:
    """Sums of rows starts[i] to ends[i] - 1, none where the end is not after the start.

    Running totals may wrap around; their differences are right as long as each sum fits.
    """
    return differences(running_totals(rows), starts, np.maximum(starts, ends))


@compiled
def running_totals(rows: Ints) -> Ints:
    """Sums of all rows before each, and of all; they may wrap around."""
    width = rows.shape[1]
    totals = np.empty((rows.shape[0] + 1, width), np.int64)
    totals[0] = 0
    for i in range(rows.shape[0]):
        for k in range(width):
            totals[i + 1, k] = totals[i, k] + rows[i, k]
    return totals


@compiled
def differences(totals: Ints, starts: Ints, ends: Ints) -> Ints:
    """Sums of rows starts[i] to ends[i] - 1, from running totals."""
    width = totals.shape[1]
    out = np.empty((starts.shape[0], width), np.int64)
    for i in range(starts.shape[0]):
        for k in range(width):
            out[i, k] = totals[ends[i], k] - totals[starts[i], k]
    return out


@compiled
def roll_up_sums(rows: Ints, starts: Ints, ends: Ints, cells: Ints, size: int) -> Ints:
    """For each cell the sum of the runs of rows starts[i] to ends[i] - 1 with that cell."""
    width = rows.shape[1]
    totals = running_totals(rows)
    out = np.zeros((size, width), np.int64)
    for i in range(starts.shape[0]):
        for k in range(width):
            out[cells[i], k] += totals[ends[i], k] - totals[starts[i], k]
    return out


@compiled
def multiply(a: Digits, n: int, b: Digits, m: int, out: Digits) -> None:
    """The product of numbers of n and m base-2**32 digits, into n + m digits."""
    for k in range(n + m):
        out[k] = np.uint64(0)
    for i in range(n):
        carry = np.uint64(0)
        for j in range(m):
            total = a[i] * b[j] + out[i + j] + carry
            out[i + j] = total & _LOW32U
            carry = total >> _32U
        out[i + m] = carry


@compiled
def add_square(flat: Ints, at: np.uint64, size: np.uint64, r: np.uint64) -> None:
    """Add size**2 * 2**r, below 2**160, to five limbs."""
    low, high = size & _LOW32U, size >> _32U
    cross, squared = _2U * low * high, low * low
    d0 = squared & _LOW32U
    carry = (squared >> _32U) + (cross & _LOW32U)
    d1 = carry & _LOW32U
    squared = high * high
    carry = (carry >> _32U) + (cross >> _32U) + (squared & _LOW32U)
    d2 = carry & _LOW32U
    d3 = (carry >> _32U) + (squared >> _32U)
    d0, d1, d2, d3 = d0 << r, d1 << r, d2 << r, d3 << r
    flat[at] += np.int64(d0 & _LOW32U)
    flat[at + _1U] += np.int64((d1 & _LOW32U) | (d0 >> _32U))
    flat[at + _2U] += np.int64((d2 & _LOW32U) | (d1 >> _32U))
    flat[at + _3U] += np.int64((d3 & _LOW32U) | (d2 >> _32U))
    flat[at + _4U] += np.int64(d3 >> _32U)


@compiled
def _magnitude(low: int, high: int, digits: Digits) -> None:
    """The size of a 128-bit integer as four base-2**32 digits."""
    a, b = np.uint64(low), np.uint64(high)
    if high < 0:
        a, b = ~a, ~b
        a += np.uint64(1)
        if a == np.uint64(0):
            b += np.uint64(1)
    digits[0], digits[1] = a & _LOW32U, a >> _32U
    digits[2], digits[3] = b & _LOW32U, b >> _32U
