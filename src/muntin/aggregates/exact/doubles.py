"""Loops that add doubles, and the exact squares of doubles, into exact accumulators."""

from __future__ import annotations

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.aggregates.exact.limbs import LOW32, ORIGIN, add_square

_HIDDEN_BIT = 1 << 52
_MANTISSA = _HIDDEN_BIT - 1
_INFINITE = 0x7FF
_SIZE = (1 << 63) - 1
_LAST_NORMAL = np.uint64(_INFINITE - 1)
_1U, _2U = np.uint64(1), np.uint64(2)


@compiled
def add_doubles(limbs: Ints, specials: Ints, base: int, cells: Ints, bits: Ints, first: int) -> int:
    """Add doubles, given as bits, to cells; -1 skips a row.

    Stops at a row whose exponent lies outside the window, or which is NaN or infinite while
    `specials` is empty, and returns it; otherwise returns the number of rows.
    """
    row = first
    while True:
        row = _add_normals(limbs, base, cells, bits, row)
        if row == len(cells) or not _add_rare(limbs, specials, base, cells[row], bits[row], 1):
            return row
        row += 1


@compiled
def add_double_squares(
    limbs: Ints, specials: Ints, base: int, cells: Ints, bits: Ints, first: int
) -> int:
    """Add the exact squares of doubles; stops and returns as `add_doubles`."""
    row = first
    while True:
        row = _add_normal_squares(limbs, base, cells, bits, row)
        if row == len(cells) or not _add_rare(limbs, specials, base, cells[row], bits[row], 2):
            return row
        row += 1


@compiled
def _add_normals(limbs: Ints, base: int, cells: Ints, bits: Ints, first: int) -> int:
    """Add doubles up to the first that is not normal or not within the window.

    The rare cases are left to the caller: without them the loop stays in registers.
    """
    width = limbs.shape[1]
    room = np.uint64(max(width - 2, 0))
    flat = limbs.reshape(-1)
    for i in range(first, len(cells)):
        cell = cells[i]
        if cell < 0:
            continue
        b = bits[i]
        exponent = (b >> 52) & _INFINITE
        # The mantissa's last bit weighs 2**(exponent - 1075).
        position = exponent + (ORIGIN - 1075)
        k = (position >> 5) - base
        # Unsigned, so that one comparison refuses both sides; it also spares the index its check.
        if np.uint64(k) >= room or np.uint64(exponent - 1) >= _LAST_NORMAL:
            return i
        sign = b >> 63
        mantissa = (((b & _MANTISSA) | _HIDDEN_BIT) ^ sign) - sign
        _add_signed(flat, np.uint64(cell * width + k), mantissa, position & 31)
    return len(cells)


@compiled
def _add_normal_squares(limbs: Ints, base: int, cells: Ints, bits: Ints, first: int) -> int:
    """Add squares of doubles up to the first that is not normal or not within the window."""
    width = limbs.shape[1]
    room = np.uint64(max(width - 4, 0))
    flat = limbs.reshape(-1)
    for i in range(first, len(cells)):
        cell = cells[i]
        if cell < 0:
            continue
        b = bits[i]
        exponent = (b >> 52) & _INFINITE
        position = 2 * exponent + (ORIGIN - 2 * 1075)
        k = (position >> 5) - base
        if np.uint64(k) >= room or np.uint64(exponent - 1) >= _LAST_NORMAL:
            return i
        size = np.uint64((b & _MANTISSA) | _HIDDEN_BIT)
        add_square(flat, np.uint64(cell * width + k), size, np.uint64(position & 31))
    return len(cells)


@compiled
def _add_rare(limbs: Ints, specials: Ints, base: int, cell: int, b: int, scale: int) -> bool:
    """Add a double, or its square for scale 2, that is zero, denormal, special or out of reach.

    False if the window or the specials have no place for it.
    """
    exponent, mantissa = (b >> 52) & _INFINITE, b & _MANTISSA
    if exponent == _INFINITE:
        if specials.shape[0] == 0:
            return False
        kind = 0 if mantissa else (2 if b < 0 and scale == 1 else 1)
        specials[cell, kind] += 1
        return True
    if exponent != 0:
        return False
    if mantissa == 0:
        return True
    position = scale * (1 - 1075) + ORIGIN
    k = (position >> 5) - base
    width = limbs.shape[1]
    if k < 0 or k >= width - (4 if scale == 2 else 2):
        return False
    at, flat = np.uint64(cell * width + k), limbs.reshape(-1)
    if scale == 2:
        add_square(flat, at, np.uint64(mantissa), np.uint64(position & 31))
    else:
        _add_signed(flat, at, -mantissa if b < 0 else mantissa, position & 31)
    return True


@compiled
def double_range(cells: Ints, bits: Ints, first: int, scale: int, reach: int) -> tuple[int, int]:
    """The limbs [low, high) that the finite doubles from row `first` on fall into.

    `scale` is 1 for the doubles themselves and 2 for their squares, which take `reach` limbs.
    """
    low, high = 1 << 40, -1
    for i in range(first, cells.shape[0]):
        exponent = (bits[i] >> 52) & _INFINITE
        zero = (bits[i] & _SIZE) == 0
        if cells[i] >= 0 and exponent != _INFINITE and not zero:
            k = (scale * (max(exponent, 1) - 1075) + ORIGIN) >> 5
            low = min(low, k)
            high = max(high, k + reach)
    return low, high


@compiled
def _add_signed(flat: Ints, at: np.uint64, mantissa: int, r: int) -> None:
    """Add a signed mantissa of 54 bits, shifted by r, to three limbs: only the last is signed."""
    low = (mantissa & LOW32) << r
    high = (mantissa >> 32) << r
    flat[at] += low & LOW32
    flat[at + _1U] += (low >> 32) | (high & LOW32)
    flat[at + _2U] += high >> 32
