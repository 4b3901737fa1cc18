"""Loops over exact sums that fit 128 bits: a pair of words, low word first, in two's complement.

Most columns of limbs hold numbers of a narrow range of exponents, so that their sums fit. Pairs
are added, subtracted and rounded in registers, without a loop over limbs.
"""

from __future__ import annotations

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Floats, Ints
from muntin.aggregates.exact.limbs import LOW32, ONE_LIMB, ORIGIN, Digits

# The high word of a sum lies within 2**61 of zero, so that 63 bits are dropped at most.
_HIGH_LIMIT = 2**61
_SHIFTS = np.arange(64)
_ZERO, _ONE, _64U = np.uint64(0), np.uint64(1), np.uint64(64)
# The exponents between which no sum of a pair is too small or too large for a normal double.
_LEAST, _MOST = -1022, 1023 - 127


def scales(base: int) -> Floats | None:
    """What a pair whose first limb is `base` is worth by the bits dropped; None out of range.

    >>> from muntin.aggregates.exact.limbs import ONE_LIMB
    >>> factors = scales(ONE_LIMB)
    >>> factors[:3]
    array([1., 2., 4.])
    >>> round_pair(np.uint64(5), np.int64(1), factors) == 2.0**64 + 5
    True
    """
    exponent = 32 * base - ORIGIN
    if not _LEAST <= exponent <= _MOST:
        return None
    factors: Floats = np.ldexp(1.0, exponent + _SHIFTS)
    return factors


def pairs_of(limbs: Ints, base: int, *, whole: bool) -> tuple[Digits, int] | None:
    """Accumulators as pairs, and the limb of the grid that their unit is.

    Sums of any of them fit a pair too; None where that is not sure. The unit is 1 if all are
    ``whole`` numbers, else as large as they allow.
    """
    at = ONE_LIMB - base if whole else lowest_limb(limbs)
    pairs = np.empty((len(limbs), 2), np.uint64)
    largest = pair_limbs(limbs, at, pairs)
    if largest < 0 or (largest + 1) * len(limbs) > _HIGH_LIMIT:
        return None
    return pairs, base + at


@compiled
def lowest_limb(limbs: Ints) -> int:
    """The first limb that is not zero in some accumulator; the number of limbs if none is."""
    k = 0
    while k < limbs.shape[1]:
        for i in range(limbs.shape[0]):
            if limbs[i, k] != 0:
                return k
        k += 1
    return k


@compiled
def pair_limbs(limbs: Ints, at: int, pairs: Digits) -> int:
    """Write accumulators as pairs in units of limb `at`, the limbs below it being zero.

    Returns the largest size of a high word, or -1 where an accumulator does not fit.
    """
    largest = 0
    for i in range(limbs.shape[0]):
        low, high, fits = to_pair(limbs[i], at)
        if not fits:
            return -1
        pairs[i, 0], pairs[i, 1] = low, np.uint64(high)
        largest = max(largest, int(high ^ (high >> 63)))
    return largest


@compiled
def to_pair(row: Ints, at: int) -> tuple[np.uint64, np.int64, bool]:
    """One accumulator from limb `at` on: its low word, its high one, and whether they hold it."""
    low, high = _ZERO, _ZERO
    carry = 0
    fits = True
    for place in range(max(row.shape[0] - at, 4)):
        limb = row[at + place] if at + place < row.shape[0] else 0
        # Half a limb at a time: the limb itself may not have room for its carry.
        total = (limb & LOW32) + (carry & LOW32)
        carry = (limb >> 32) + (carry >> 32) + (total >> 32)
        digit = np.uint64(total & LOW32)
        if place < 2:
            low |= digit << np.uint64(32 * place)
        elif place < 4:
            high |= digit << np.uint64(32 * (place - 2))
        else:
            fits &= digit == np.uint64((np.int64(high) >> 63) & LOW32)
    return low, np.int64(high), bool(fits and carry == np.int64(high) >> 63)


@compiled
def round_pair(low: np.uint64, high: np.int64, factors: Floats) -> np.float64:
    """The double nearest to a pair, halves to even; its high word is within 2**61 of zero.

    The top 62 bits or more are kept, and the last of them is set if anything below is: the
    processor then rounds the word as it would round the whole.
    """
    if high == np.int64(low) >> 63:
        return np.float64(np.float64(np.int64(low)) * factors[0])
    # The exponent of the high word as a double counts its bits, or says one more.
    bits = np.float64(high ^ (high >> 63)).view(np.int64) >> 52
    dropped = np.uint64(bits - 1021 if bits > 1021 else 1)
    word = (np.uint64(high) << (_64U - dropped)) | (low >> dropped)
    if low << (_64U - dropped) != _ZERO:
        word |= _ONE
    return np.float64(np.float64(np.int64(word)) * factors[dropped])
