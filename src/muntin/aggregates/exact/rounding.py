"""Loops that read exact accumulators: rounded once to double, or checked as integers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.aggregates.exact.limbs import LOW32, ONE_LIMB, ORIGIN, Digits

_ZERO, _ONE = np.uint64(0), np.uint64(1)
_32U, _52U, _63U = np.uint64(32), np.uint64(52), np.uint64(63)
_LOW32U = np.uint64(LOW32)
_INFINITY = np.uint64(0x7FF << 52)


@compiled
def to_digits(row: Ints, digits: Digits) -> tuple[int, bool]:
    """The size of one accumulator in base 2**32, how many digits it has, and whether it is < 0.

    `digits` holds two more digits than the row has limbs, for its carries.
    """
    negative = spread_carries(row, digits, False)
    if negative:
        spread_carries(row, digits, True)
    size = row.shape[0] + 2
    while size > 0 and digits[size - 1] == _ZERO:
        size -= 1
    return size, negative


@compiled
def spread_carries(row: Ints, digits: Digits, negate: bool) -> bool:
    """Spread carries upwards; true if what is left above the last digit is negative."""
    carry = 0
    for k in range(row.shape[0]):
        # Half a limb at a time: the limb itself may not have room for its carry.
        limb = -row[k] if negate else row[k]
        total = (limb & LOW32) + (carry & LOW32)
        digits[k] = np.uint64(total & LOW32)
        carry = (limb >> 32) + (carry >> 32) + (total >> 32)
    for k in range(row.shape[0], row.shape[0] + 2):
        digits[k] = np.uint64(carry & LOW32)
        carry >>= 32
    return carry < 0


@compiled
def round_digits(digits: Digits, size: int, exponent: int, sticky: bool) -> np.uint64:
    """The double nearest to digits * 2**exponent, as bits without sign; halves go to even.

    `sticky` says that a positive amount below the last digit was left out.
    """
    if size == 0:
        return _ZERO
    top = digits[size - 1]
    word = top << _32U
    if size > 1:
        word |= digits[size - 2]
    third = digits[size - 3] if size > 2 else _ZERO
    # The exponent of the top digit as a double, which holds it exactly, counts its bits.
    bits = (np.float64(top).view(np.int64) >> 52) - 1023
    shift = np.uint64(31 - bits)
    word = (word << shift) | (third >> (_32U - shift))
    third = (third << shift) & _LOW32U
    rest = sticky or third != _ZERO
    k = size - 4
    while not rest and k >= 0:
        rest = digits[k] != _ZERO
        k -= 1
    return round_word(word, exponent + 32 * (size - 2) - int(shift), rest)


@compiled
def round_word(word: np.uint64, exponent: int, sticky: bool) -> np.uint64:
    """The double nearest to word * 2**exponent, as bits; the word's top bit is set."""
    leading = exponent + 63
    if leading > 1023:
        return _INFINITY
    # Below the least normal exponent fewer bits are kept.
    dropped = 11 if leading >= -1022 else 11 - 1022 - leading
    if dropped > 64:
        return _ZERO
    half = _ONE << np.uint64(dropped - 1)
    kept = word >> np.uint64(dropped) if dropped < 64 else _ZERO
    left = word - (kept << np.uint64(dropped)) if dropped < 64 else word
    if left > half or (left == half and (sticky or (kept & _ONE) != _ZERO)):
        kept += _ONE
    if leading < -1022:
        return kept
    # A mantissa that rounds up to 2**53 carries into the exponent, and so to infinity.
    return (np.uint64(leading + 1022) << _52U) + kept


@compiled
def to_doubles(limbs: Ints, base: int) -> Digits:
    """Each accumulator rounded to the nearest double, as bits."""
    out = np.zeros(limbs.shape[0], np.uint64)
    digits = np.zeros(limbs.shape[1] + 2, np.uint64)
    exponent = 32 * base - ORIGIN
    for cell in range(limbs.shape[0]):
        size, negative = to_digits(limbs[cell], digits)
        out[cell] = round_digits(digits, size, exponent, False)
        if negative:
            out[cell] |= _ONE << _63U
    return out


@compiled
def to_words(limbs: Ints, base: int, words: Ints) -> npt.NDArray[np.bool_]:
    """Each accumulator as a 128-bit integer, low word first; true where it does not fit.

    What lies below the limb that weighs 1 is zero, because only integers were added.
    """
    failed = np.zeros(limbs.shape[0], np.bool_)
    digits = np.zeros(limbs.shape[1] + 2, np.uint64)
    for cell in range(limbs.shape[0]):
        size, negative = to_digits(limbs[cell], digits)
        low, high = _ZERO, _ZERO
        for k in range(size):
            place = base + k - ONE_LIMB
            if place >= 4:
                failed[cell] |= digits[k] != _ZERO
            elif place >= 2:
                high |= digits[k] << np.uint64(32 * (place - 2))
            elif place >= 0:
                low |= digits[k] << np.uint64(32 * place)
        failed[cell] |= (high >> _63U) != _ZERO
        if negative:
            low = ~low + _ONE
            high = ~high + (_ONE if low == _ZERO else _ZERO)
        words[cell, 0], words[cell, 1] = np.int64(low), np.int64(high)
    return failed
