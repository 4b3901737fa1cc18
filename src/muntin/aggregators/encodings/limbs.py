"""Exact numbers cut into limbs that add up without carries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from muntin._compiled import compiled
from muntin._typing import Floats, Ints
from muntin.aggregates.exact.limbs import LOW32


@dataclass(frozen=True)
class Limbs:
    """Where the limbs of a number lie: limb k weighs 2**(base + width * k).

    A number gives each limb less than 2**width, with the number's sign. `width` leaves room to add
    up a whole window of them in 64 bits, so carries wait until an answer is read. All numbers of a
    state share the limbs; wider ones are reached by adding limbs at either end, which leaves the
    limbs in place as they are.
    """

    width: int
    base: int
    count: int

    @classmethod
    def around(cls, width: int, low: int, high: int, spare: bool) -> Self:
        """The fewest limbs for bits `low` to `high`, exclusive.

        With `spare`, half of the bits left over lie below: the next batch may hold smaller numbers
        as well as larger ones.
        """
        count = max(-(-(high - low) // width), 1)
        free = count * width - (high - low)
        return cls(width, low - free // 2 if spare else low, count)

    @property
    def top(self) -> int:
        """The bit above the last limb."""
        return self.base + self.width * self.count

    def widened(self, low: int, high: int) -> Limbs:
        """As many limbs more at both ends as bits `low` to `high` need."""
        below = max(-(-(self.base - low) // self.width), 0)
        above = max(-(-(high - self.top) // self.width), 0)
        return Limbs(self.width, self.base - below * self.width, self.count + below + above)

    def split(self, units: int, grid: int) -> list[int]:
        """The limbs of `units * 2**-grid`.

        >>> Limbs(width=8, base=0, count=2).split(-0x1234, grid=0)
        [-52, -18]
        """
        shift = self.base + grid
        size = abs(units) >> shift if shift >= 0 else abs(units) << -shift
        sign = -1 if units < 0 else 1
        mask = (1 << self.width) - 1
        return [sign * ((size >> (self.width * k)) & mask) for k in range(self.count)]

    def joined(self, limbs: list[int], grid: int) -> int:
        """The units that the limbs add up to.

        >>> Limbs(width=8, base=0, count=2).joined([-52, -18], grid=0) == -0x1234
        True
        """
        units = sum(limb << (self.width * k) for k, limb in enumerate(limbs))
        shift = self.base + grid
        return units << shift if shift >= 0 else units >> -shift


def limb_width(window: int) -> int:
    """Bits a limb may take from one number, if `window` of them add up.

    Two bits to spare: a square enters as three numbers, and limbs cut by Python stand beside limbs
    that were added up. A limb without its carries is an exact double.
    """
    return min(60 - window.bit_length(), 53)


_LOW32U, _32U = np.uint64(LOW32), np.uint64(32)
_HIDDEN_BIT = 1 << 52
_MANTISSA = _HIDDEN_BIT - 1
_INFINITE = 0x7FF
_SIZE = (1 << 63) - 1
_LEAST_INFINITE = _INFINITE << 52


@compiled
def double_sizes(bits: Ints) -> tuple[int, int]:
    """The least and greatest size, as bits, of the doubles that are not zero."""
    least, greatest = _SIZE, 0
    for i in range(len(bits)):
        size = bits[i] & _SIZE
        least = min(least, size if size != 0 else _SIZE)
        greatest = max(greatest, size)
    return least, greatest


@compiled
def integer_bits(values: Ints) -> np.uint64:
    """A number with as many bits as the largest size among integers."""
    bits = 0
    for i in range(len(values)):
        # One more than its complement is the size of a negative number: 2**k takes k + 1 bits.
        bits |= values[i] ^ (values[i] >> 63)
        bits |= -values[i] & (values[i] >> 63)
    return np.uint64(bits)


@compiled
def greatest_finite(bits: Ints) -> int:
    """The greatest size, as bits, of the finite doubles."""
    greatest = 0
    for i in range(len(bits)):
        size = bits[i] & _SIZE
        if size < _LEAST_INFINITE:
            greatest = max(greatest, size)
    return greatest


@compiled
def lift_doubles(values: Floats, units: Floats, out: Ints, column: int) -> None:
    """Cut doubles into limbs by exact divisions; limb k weighs `units[k]`.

    What is left after each limb is made of bits of the double, so nothing is rounded as long as
    neither the units nor their inverses are out of range.
    """
    inverses = 1.0 / units
    count = len(units)
    if count == 2:
        high, over_low, over_high = units[1], inverses[0], inverses[1]
        for i in range(len(values)):
            whole = np.trunc(values[i] * over_high)
            out[i, column + 1] = np.int64(whole)
            out[i, column] = np.int64((values[i] - whole * high) * over_low)
        return
    # Limb by limb, not value by value: such loops run as vectors.
    rest = values.copy()
    for k in range(count - 1, -1, -1):
        unit, over = units[k], inverses[k]
        for i in range(len(values)):
            whole = np.trunc(rest[i] * over)
            out[i, column + k] = np.int64(whole)
            rest[i] -= whole * unit


@compiled
def lift_extreme_doubles(
    bits: Ints, base: int, width: int, out: Ints, column: int, count: int
) -> None:
    """The same by shifts, for doubles of any size."""
    mask = (1 << width) - 1
    for k in range(count):
        lowest = base + k * width + 1075
        for i in range(len(bits)):
            b = bits[i]
            exponent = (b >> 52) & _INFINITE
            normal = exponent != 0
            size = (b & _MANTISSA) | (np.int64(normal) << 52)
            # Denormal numbers lie where exponent 1 does.
            distance = lowest - exponent - np.int64(not normal)
            down = min(max(distance, 0), 63)
            up = min(max(-distance, 0), 63)
            piece = ((size >> down) << up) & mask
            sign = b >> 63
            out[i, column + k] = (piece ^ sign) - sign


@compiled
def lift_integers(values: Ints, width: int, out: Ints, column: int, count: int) -> None:
    """Cut integers into limbs, the first of which weighs 1."""
    for i in range(len(values)):
        value = values[i]
        sign = value >> 63
        size = np.uint64((value ^ sign) - sign)
        out[i, column : column + count] = 0
        _spread(out, i, column, count, width, size, 0, sign)


@compiled
def lift_double_squares(
    bits: Ints, base: int, width: int, out: Ints, column: int, count: int
) -> None:
    """Cut the exact squares of doubles into limbs; NaN and infinities are left zero."""
    for i in range(len(bits)):
        b = bits[i]
        exponent = (b >> 52) & _INFINITE
        out[i, column : column + count] = 0
        if exponent == _INFINITE:
            continue
        size = b & _MANTISSA
        if exponent != 0:
            size |= _HIDDEN_BIT
        position = 2 * (max(exponent, 1) - 1075) - base
        _spread_square(out, i, column, count, width, np.uint64(size), position)


@compiled
def lift_integer_squares(values: Ints, width: int, out: Ints, column: int, count: int) -> None:
    """Cut the exact squares of integers into limbs."""
    for i in range(len(values)):
        value = values[i]
        sign = value >> 63
        size = np.uint64((value ^ sign) - sign)
        out[i, column : column + count] = 0
        _spread_square(out, i, column, count, width, size, 0)


@compiled
def _spread_square(
    out: Ints, row: int, column: int, count: int, width: int, size: np.uint64, position: int
) -> None:
    """Add size**2 * 2**position: three products of halves."""
    low, high = size & _LOW32U, size >> _32U
    _spread(out, row, column, count, width, low * low, position, 0)
    _spread(out, row, column, count, width, low * high, position + 33, 0)
    _spread(out, row, column, count, width, high * high, position + 64, 0)


@compiled
def _spread(
    out: Ints,
    row: int,
    column: int,
    count: int,
    width: int,
    size: np.uint64,
    position: int,
    sign: int,
) -> None:
    """Add size * 2**position to the limbs, with the sign of `sign`."""
    mask = np.uint64((1 << width) - 1)
    for k in range(count):
        distance = k * width - position
        if -width < distance < 64:
            down, up = np.uint64(max(distance, 0)), np.uint64(max(-distance, 0))
            piece = np.int64(((size >> down) << up) & mask)
            out[row, column + k] += (piece ^ sign) - sign


@compiled
def mark_doubles(bits: Ints, valid: npt.NDArray[np.bool_], out: Ints, column: int) -> None:
    """Count rows, NaN, +inf and -inf in four lanes; clear the limbs where there is no number."""
    for i in range(len(bits)):
        size = bits[i] & _SIZE
        out[i, column:] = 0
        if not valid[i] or size >= _LEAST_INFINITE:
            out[i, :column] = 0
        if not valid[i]:
            continue
        out[i, column] = 1
        if size > _LEAST_INFINITE:
            out[i, column + 1] = 1
        elif size == _LEAST_INFINITE:
            out[i, column + (2 if bits[i] > 0 else 3)] = 1
