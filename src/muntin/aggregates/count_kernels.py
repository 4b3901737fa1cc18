"""Loops over counters."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.compiled import compiled

Ints = npt.NDArray[np.int64]


@compiled
def count_rows(counts: Ints, cells: Ints) -> None:
    """Count each row in its cell; -1 skips a row."""
    for i in range(cells.shape[0]):
        if cells[i] >= 0:
            counts[cells[i]] += 1


@compiled
def add_counts(counts: Ints, cells: Ints, others: Ints) -> None:
    """Add other counters to the cells they go to."""
    for i in range(cells.shape[0]):
        if cells[i] >= 0:
            counts[cells[i]] += others[i]


@compiled
def keep_set(cells: Ints, bitmap: npt.NDArray[np.uint8], offset: int) -> Ints:
    """The cells, -1 where the row's bit is not set."""
    out = np.empty_like(cells)
    for i in range(cells.shape[0]):
        at = offset + i
        bit = np.int64(bitmap[at >> 3] >> (at & 7)) & 1
        # All ones where the bit is clear: no branch that random bits would mispredict.
        out[i] = cells[i] | (bit - 1)
    return out
