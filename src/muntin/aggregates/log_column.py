"""Sums of base-2 logarithms as a column of integer limbs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates import log_kernels as kernels
from muntin.aggregates.arrow_views import double_bits, live_cells
from muntin.aggregates.column import Ints
from muntin.aggregates.products import exp2_units
from muntin.aggregates.sum_column import SumColumn

_BASE = 65
_WIDTH = 4


class LogColumn(SumColumn):
    """log2|x| summed in units of 2**-96; `specials` count zeros, negatives, NaN and infinities."""

    special_kinds = 4

    def update(self, cells: Ints, args: tuple[pa.Array, ...], times: Ints | None = None) -> None:
        """Add the logarithms of the values that are not NULL."""
        cells = live_cells(cells, args[0])
        bits = double_bits(args[0])
        # A logarithm's limbs reach up to twice what a number's do.
        self._reserve(2 * len(cells))
        self._widen(_BASE, _BASE + _WIDTH)
        row = 0
        while row < len(cells):
            row = kernels.add_logs(self.limbs, self._marks(), cells, bits, row)
            if row < len(cells):
                self._keep_specials()

    def powers(self, counts: Ints, mean: bool) -> npt.NDArray[np.float64]:
        """Two to each sum, or to each sum divided by its count; specials are not looked at."""
        self._widen(_BASE, _BASE + _WIDTH)
        out = kernels.powers(self.limbs, counts, mean).view(np.float64)
        if mean:
            # Counts too large for the kernel's division; a handful of cells in a lifetime.
            for cell in np.flatnonzero(counts >= 2**31).tolist():
                out[cell] = exp2_units((self.units(cell) >> (32 * _BASE)) // int(counts[cell]))
        return out
