"""Exact sums of products, cubes and fourth powers as a column of integer limbs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from muntin._typing import Bools, Ints
from muntin.aggregates.columns.arrow_views import (
    buffer_view,
    decimal_words,
    double_bits,
    integers,
    live_cells,
)
from muntin.aggregates.columns.sums import SumColumn
from muntin.aggregates.exact.powers import Numbers, add_products, limb_range

# Zero stands for the product of two arguments.
_POWERS = {"sum_products": 0, "sum_cubes": 3, "sum_fourths": 4}
_MANTISSA, _INFINITE = (1 << 52) - 1, 0x7FF


class PowerColumn(SumColumn):
    """An exact sum of products or powers a cell.

    Rows with NaN or an infinity are left out: the sum of the numbers themselves, which every
    aggregate of these parts reads, tells of them.
    """

    def update(self, cells: Ints, args: tuple[pa.Array, ...], times: Ints | None = None) -> None:
        """Add the products, or powers, of rows where no argument is NULL."""
        cells = live_cells(cells, *args)
        power, bits = _POWERS[self.part.kind], 0
        numbers = []
        for values in args:
            found, special, size = _numbers(values)
            cells = cells if special is None else np.where(special, -1, cells)
            numbers.append(found)
            bits += size * max(power, 1)
        low, high = limb_range(cells, numbers[0], numbers[-1], power)
        if low > high:
            return
        self._reserve(len(cells))
        self.widen(low, high + -(-bits // 32) + 2)
        add_products(self.limbs, self.base, cells, numbers[0], numbers[-1], power)


def _numbers(values: pa.Array) -> tuple[Numbers, Bools | None, int]:
    """Values as sizes, places and signs; which are NaN or infinite, and how many bits they have."""
    if pa.types.is_floating(values.type):
        bits = double_bits(values)
        exponents = (bits >> 52) & _INFINITE
        sizes = (bits & _MANTISSA) | ((exponents > 0).astype(np.int64) << 52)
        places = np.maximum(exponents, 1) - 1075
        numbers = Numbers(sizes.view(np.uint64), _zeros(len(sizes)), places, bits < 0)
        special = exponents == _INFINITE
        return numbers, special if special.any() else None, 53
    places = np.zeros(len(values), np.int64)
    if pa.types.is_decimal(values.type):
        words = decimal_words(values)
        negative = words[:, 1] < 0
        flips = np.where(negative, -1, 0)
        lows = (words[:, 0] ^ flips).view(np.uint64) + negative
        carry = negative & (lows == 0)
        highs = (words[:, 1] ^ flips).view(np.uint64) + carry
        return Numbers(lows, highs, places, negative), None, 128
    if pa.types.is_uint64(values.type):
        plain = np.array(buffer_view(values, np.uint64), np.uint64)
        return Numbers(plain, _zeros(len(plain)), places, np.zeros(len(plain), np.bool_)), None, 64
    signed = integers(values)
    signs = signed >> 63
    # The least integer is its own negative; as unsigned that is its size.
    unsigned = ((signed ^ signs) - signs).view(np.uint64)
    return Numbers(unsigned, _zeros(len(unsigned)), places, signed < 0), None, 64


def _zeros(size: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.zeros(size, np.uint64)
