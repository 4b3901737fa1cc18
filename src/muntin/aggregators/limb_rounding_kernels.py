"""Loops that round sums of limbs to doubles, or hand them to the exact accumulators."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.aggregates.exact_kernels import LOW32, ORIGIN, Ints
from muntin.compiled import compiled

Doubles = npt.NDArray[np.float64]


@compiled
def round_pairs(sums: Ints, width: int, unit: float, last: float, out: Doubles) -> None:
    """Round sums of two limbs, of which the lower weighs `unit * last`."""
    scale = 2.0**width
    for i in range(len(sums)):
        out[i] = _rounded(sums[i, 0], sums[i, 1], width, scale, unit) * last


@compiled
def round_many(
    sums: Ints, count: int, width: int, units: Doubles, lasts: Doubles, out: Doubles
) -> None:
    """Round sums of `count` limbs, two or more, of which limb k weighs `units[k] * lasts[k]`."""
    scale = 2.0**width
    mask = (1 << width) - 1
    small = 1 << (61 - width)
    settled = np.empty(count, np.int64)
    for i in range(len(sums)):
        carry = 0
        for k in range(count - 1):
            total = sums[i, k] + carry
            settled[k] = total & mask
            carry = total >> width
        high, at = sums[i, count - 1] + carry, count - 1
        while at > 1 and -small < high < small:
            at -= 1
            high = (high << width) + settled[at]
        low = settled[at - 1]
        # The upper two have more bits than a double: of those below only counts whether all are 0.
        for k in range(at - 1):
            low |= np.int64(settled[k] != 0)
        out[i] = _rounded(low, high, width, scale, units[at - 1]) * lasts[at - 1]


@compiled
def _rounded(low: int, high: int, width: int, scale: float, unit: float) -> float:
    """The double nearest to (high * scale + low) * unit; halves go to even.

    Once the carry is settled both limbs are exact doubles, or nearly so, and the one addition of
    the hardware rounds correctly.
    """
    high += low >> width
    low &= (1 << width) - 1
    if -(1 << 53) <= high <= 1 << 53:
        return np.float64(high) * scale * unit + np.float64(low) * unit
    # The upper limb alone has more bits than a double. Whatever lies below its last two bits only
    # tells whether there is a rest, which the last bit of an odd number can say.
    shift = 2 if -(1 << 55) <= high <= 1 << 55 else 0
    high = (high << shift) | (low >> (width - shift))
    high |= int((low & ((1 << (width - shift)) - 1)) != 0)
    return np.float64(high) * (scale / (1 << shift) * unit)


@compiled
def gather_limbs(
    sums: Ints, column: int, count: int, base: int, width: int, out: Ints, first: int
) -> None:
    """Bring limbs onto the 32-bit limbs of the exact accumulators, from limb `first` on."""
    for k in range(count):
        position = base + k * width + ORIGIN
        # Below the grid all bits are zero.
        drop, position = max(-position, 0), max(position, 0)
        at, r = (position >> 5) - first, position & 31
        for i in range(len(sums)):
            limb = sums[i, column + k] >> drop
            low, high = (limb & LOW32) << r, (limb >> 32) << r
            out[i, at] += low & LOW32
            out[i, at + 1] += (low >> 32) + (high & LOW32)
            out[i, at + 2] += high >> 32
