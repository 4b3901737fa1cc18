"""Exact numbers of a few words: made from values and from columns of partials, and widened.

A number of a bank counts units of 2**(32 * unit - 2176), the grid of the exact sums, in as many
64-bit words as the sum of a window may need.
"""

from __future__ import annotations

import math

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Floats, Ints, Words
from muntin.aggregates.exact.limbs import LOW32, ORIGIN
from muntin.aggregators.banks.intrinsics import leading_zeros

_HIDDEN_BIT = 1 << 52
_MANTISSA = _HIDDEN_BIT - 1
_INFINITE = 0x7FF
_SIZE = (1 << 63) - 1
_ZERO, _ONE = np.uint64(0), np.uint64(1)
_32U, _64U = np.uint64(32), np.uint64(64)


@compiled
def double_extent(bits: Ints) -> tuple[int, int, bool]:
    """The least and the largest exponent of doubles other than zero, and whether any is special.

    Without such a double the least is above the largest.
    """
    least, largest, special = _INFINITE, 0, False
    for i in range(len(bits)):
        exponent = (bits[i] >> 52) & _INFINITE
        if exponent == _INFINITE:
            special = True
        elif bits[i] & _SIZE:
            least = min(least, max(exponent, 1))
            largest = max(largest, exponent, 1)
    return least, largest, special


@compiled
def put_doubles(bits: Ints, unit: int, out: Words, first: int, width: int, specials: int) -> None:
    """Write doubles as numbers; `specials` is where counts of NaN, inf and -inf go, if not -1."""
    for i in range(len(bits)):
        b = bits[i]
        exponent, mantissa = (b >> 52) & _INFINITE, b & _MANTISSA
        for k in range(width):
            out[i, first + k] = _ZERO
        if exponent == _INFINITE:
            out[i, specials + (0 if mantissa else (2 if b < 0 else 1))] = _ONE
            continue
        if exponent == 0:
            if mantissa == 0:
                continue
            exponent = 1
        else:
            mantissa |= _HIDDEN_BIT
        position = exponent - 1075 + ORIGIN - 32 * unit
        word, shift = first + (position >> 6), np.uint64(position & 63)
        out[i, word] = np.uint64(mantissa) << shift
        if position >> 6 < width - 1:
            out[i, word + 1] = (np.uint64(mantissa) >> _ONE) >> (np.uint64(63) - shift)
        if b < 0:
            _negate(out[i], first, width)


@compiled
def _negate(row: Words, first: int, width: int) -> None:
    carry = _ONE
    for k in range(first, first + width):
        row[k] = ~row[k] + carry
        carry = carry if row[k] == _ZERO else _ZERO


@compiled
def put_integers(values: Ints, out: Words, first: int, width: int) -> None:
    """Write integers as numbers whose unit is 1."""
    for i in range(len(values)):
        out[i, first] = np.uint64(values[i])
        for k in range(1, width):
            out[i, first + k] = np.uint64(values[i] >> 63)


@compiled
def limbs_extent(limbs: Ints) -> tuple[int, int]:
    """The limbs [low, high) that settled accumulators need; low is not below high if all are 0.

    The last limb of an accumulator is signed, the others lie in [0, 2**32).
    """
    width = limbs.shape[1]
    low, high = width, 0
    for i in range(limbs.shape[0]):
        fill = LOW32 if limbs[i, width - 1] < 0 else 0
        k = 0
        while k < low and limbs[i, k] == 0:
            k += 1
        low = k
        k = width
        # The last limb may exceed 32 bits: one more stands for what is above them.
        top = limbs[i, width - 1]
        if top >= 2**31 or top < -(2**31):
            k = width + 1
        else:
            while k > high and (limbs[i, k - 1] & LOW32) == fill:
                k -= 1
        high = max(high, k)
    return low, high


@compiled
def put_limbs(limbs: Ints, shift: int, out: Words, first: int, width: int) -> None:
    """Write settled accumulators as numbers; limb 0 goes `shift` limbs up, which may be down."""
    last = limbs.shape[1] - 1
    for i in range(limbs.shape[0]):
        top = limbs[i, last]
        for half in range(2 * width):
            k = half - shift
            if k < 0:
                value = 0
            elif k < last:
                value = limbs[i, k]
            else:
                value = top >> min(32 * (k - last), 63)
            digit = np.uint64(value & LOW32)
            if half & 1:
                out[i, first + (half >> 1)] |= digit << _32U
            else:
                out[i, first + (half >> 1)] = digit


@compiled
def rebase(
    old: Words, clocks: Ints, at: int, width: int, new: Words, to: int, wider: int, shift: int
) -> None:
    """Copy a number's running totals into more words, `shift` limbs up.

    Totals may have wrapped around, so what is copied is their distance to the newest one, which
    is the sum of a window and fits. Dimensions are (group, slot, word).
    """
    capacity = old.shape[1]
    difference = np.zeros(width, np.uint64)
    for group in range(old.shape[0]):
        newest = (clocks[group] - 1) % capacity
        for slot in range(capacity):
            borrow = _ZERO
            for k in range(width):
                part = old[group, newest, at + k] + borrow
                borrow = _ONE if part < borrow else _ZERO
                difference[k] = old[group, slot, at + k] - part
                borrow |= _ONE if old[group, slot, at + k] < part else _ZERO
            fill = _ZERO - (difference[width - 1] >> np.uint64(63))
            for half in range(2 * wider):
                k = half - shift
                word = difference[k >> 1] if 0 <= k < 2 * width else (fill if k >= 0 else _ZERO)
                digit = (word >> (_32U * np.uint64(k & 1))) & np.uint64(LOW32)
                if half & 1:
                    new[group, slot, to + (half >> 1)] |= digit << _32U
                else:
                    new[group, slot, to + (half >> 1)] = digit


@compiled
def put_counts(clocks: Ints, new: Words, to: int) -> None:
    """Running counts of partials that were one row each."""
    capacity = new.shape[1]
    for group in range(new.shape[0]):
        held = min(clocks[group], capacity)
        newest = (clocks[group] - 1) % capacity
        for slot in range(capacity):
            age = (newest - slot) % capacity
            new[group, slot, to] = np.uint64(max(held - age, 0))


_ZERO_WORD, _ONE_WORD, _63U = np.uint64(0), np.uint64(1), np.uint64(63)

# Powers of two up to that of a word; a product with one is exact.
POWERS: Floats = np.ldexp(1.0, np.arange(65))


def scales(exponent: int) -> Floats:
    """Two doubles whose product is 2**exponent, also where no one double is."""
    first = max(exponent, -1022)
    both: Floats = np.ldexp(1.0, np.array([first, exponent - first]))
    return both


@compiled
def round_pair(low: np.uint64, high: np.uint64, powers: Floats, scales: Floats) -> float:
    """The double nearest to a number of two words, halves to even.

    The product with the scales loses nothing: where a double has fewer bits to keep, the number,
    a sum of doubles, has no more of them.
    """
    negative = high >> _63U
    if negative != _ZERO_WORD:
        low = ~low + _ONE_WORD
        high = ~high + (_ONE_WORD if low == _ZERO_WORD else _ZERO_WORD)
    size: float = round_size(low, high, powers) * scales[0] * scales[1]
    return -size if negative != _ZERO_WORD else size


@compiled
def round_size(low: np.uint64, high: np.uint64, powers: Floats) -> float:
    """The double nearest to two words that have no sign."""
    if high == _ZERO_WORD:
        return np.float64(low)
    shift = leading_zeros(high)
    word = (high << shift) | ((low >> _ONE_WORD) >> (_63U - shift))
    # What is cut off matters only in that it is there: it decides halves.
    word |= _ONE_WORD if (low << shift) != _ZERO_WORD else _ZERO_WORD
    size: float = np.float64(word) * powers[np.uint64(64) - shift]
    return size


@compiled
def round_numbers(
    words: Words, first: int, width: int, exponent: int, powers: Floats, out: Floats
) -> None:
    """Round `width` words from `first` on in every row; the lowest bit weighs 2**exponent."""
    number = np.zeros(width + 1, np.uint64)
    for i in range(len(words)):
        negative = words[i, first + width - 1] >> _63U
        carry, top = negative, 0
        for k in range(width):
            word = words[i, first + k]
            number[k] = word if negative == _ZERO_WORD else ~word + carry
            carry = carry if number[k] == _ZERO_WORD else _ZERO_WORD
            top = k if number[k] != _ZERO_WORD else top
        low = max(top - 1, 0)
        below = _ZERO_WORD
        for k in range(low):
            below |= number[k]
        # A bit far below those that are kept stands for all that is cut off.
        sticky = _ONE_WORD if below != _ZERO_WORD else _ZERO_WORD
        size = round_size(number[low] | sticky, number[low + 1], powers)
        size = math.ldexp(size, exponent + 64 * low)
        out[i] = -size if negative != _ZERO_WORD else size
