"""A compiled sweep over slices in order of time, with running totals in two levels.

Every cell has a total, and so has every block of 16 neighbouring cells: a range of cells is read
as whole blocks, and single cells at its ends.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.compiled import compiled

Ints = npt.NDArray[np.int64]

_BITS = 4
BLOCK = 1 << _BITS


@compiled
def _total(totals: Ints, blocks: Ints, low: int, high: int) -> int:
    """The sum of the totals of cells ``low`` to ``high - 1``."""
    total = np.int64(0)
    first, last = (low + BLOCK - 1) >> _BITS, high >> _BITS
    # Places are unsigned: numba would make each of a signed one ready to count from the end.
    if first >= last:
        for cell in range(low, high):
            total += totals[np.uint64(cell)]
        return int(total)
    for cell in range(low, first << _BITS):
        total += totals[np.uint64(cell)]
    for block in range(first, last):
        total += blocks[np.uint64(block)]
    for cell in range(last << _BITS, high):
        total += totals[np.uint64(cell)]
    return int(total)


@compiled
def sweep(
    rows: Ints, cells: Ints, size: int, edges: Ints, order: Ints, spans: Ints, places: Ints
) -> Ints:
    """For each run the sum of the rows between its edges whose cells are in its spans.

    Row i is of cell ``cells[i]``, one of ``size``. Of n runs, run r covers the rows from
    ``edges[r]`` to ``edges[n + r] - 1``; ``order`` sorts the edges. Its spans ``[low, high)`` of
    cells are those from ``places[r, 0]`` to ``places[r, 1] - 1``.

    Totals only grow with the sweep, and a run is what they gained between its edges: a row is
    added once, however many runs it is in. They may wrap around; differences stay right.
    """
    width, runs = rows.shape[1], places.shape[0]
    totals = np.zeros((width, size), np.int64)
    blocks = np.zeros((width, (size >> _BITS) + 1), np.int64)
    out = np.zeros((runs, width), np.int64)
    row = 0
    for edge in order:
        run = edge % runs
        # A window without rows reads nothing.
        if edges[run] == edges[runs + run]:
            continue
        while row < edges[edge]:
            cell = np.uint64(cells[row])
            block = cell >> np.uint64(_BITS)
            for k in range(width):
                totals[k, cell] += rows[row, k]
                blocks[k, block] += rows[row, k]
            row += 1
        # Before the first row all totals are zero.
        if row > 0:
            for span in range(places[run, 0], places[run, 1]):
                low, high = spans[span, 0], spans[span, 1]
                for k in range(width):
                    total = _total(totals[k], blocks[k], low, high)
                    if edge >= runs:
                        out[run, k] += total
                    else:
                        out[run, k] -= total
    return out
