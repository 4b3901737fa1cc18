"""Numbers of several words rounded once to the nearest double."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from muntin.aggregators.bank_intrinsics import leading_zeros
from muntin.compiled import compiled

Words = npt.NDArray[np.uint64]
Doubles = npt.NDArray[np.float64]

_ZERO, _ONE, _63U = np.uint64(0), np.uint64(1), np.uint64(63)

# Powers of two up to that of a word; a product with one is exact.
POWERS: Doubles = np.ldexp(1.0, np.arange(65))


def scales(exponent: int) -> Doubles:
    """Two doubles whose product is 2**exponent, also where no one double is."""
    first = max(exponent, -1022)
    both: Doubles = np.ldexp(1.0, np.array([first, exponent - first]))
    return both


@compiled
def round_pair(low: np.uint64, high: np.uint64, powers: Doubles, scales: Doubles) -> float:
    """The double nearest to a number of two words, halves to even.

    The product with the scales loses nothing: where a double has fewer bits to keep, the number,
    a sum of doubles, has no more of them.
    """
    negative = high >> _63U
    if negative != _ZERO:
        low = ~low + _ONE
        high = ~high + (_ONE if low == _ZERO else _ZERO)
    size: float = round_size(low, high, powers) * scales[0] * scales[1]
    return -size if negative != _ZERO else size


@compiled
def round_size(low: np.uint64, high: np.uint64, powers: Doubles) -> float:
    """The double nearest to two words that have no sign."""
    if high == _ZERO:
        return np.float64(low)
    shift = leading_zeros(high)
    word = (high << shift) | ((low >> _ONE) >> (_63U - shift))
    # What is cut off matters only in that it is there: it decides halves.
    word |= _ONE if (low << shift) != _ZERO else _ZERO
    size: float = np.float64(word) * powers[np.uint64(64) - shift]
    return size


@compiled
def round_numbers(
    words: Words, first: int, width: int, exponent: int, powers: Doubles, out: Doubles
) -> None:
    """Round `width` words from `first` on in every row; the lowest bit weighs 2**exponent."""
    number = np.zeros(width + 1, np.uint64)
    for i in range(len(words)):
        negative = words[i, first + width - 1] >> _63U
        carry, top = negative, 0
        for k in range(width):
            word = words[i, first + k]
            number[k] = word if negative == _ZERO else ~word + carry
            carry = carry if number[k] == _ZERO else _ZERO
            top = k if number[k] != _ZERO else top
        low = max(top - 1, 0)
        below = _ZERO
        for k in range(low):
            below |= number[k]
        # A bit far below those that are kept stands for all that is cut off.
        sticky = _ONE if below != _ZERO else _ZERO
        size = round_size(number[low] | sticky, number[low + 1], powers)
        size = math.ldexp(size, exponent + 64 * low)
        out[i] = -size if negative != _ZERO else size
