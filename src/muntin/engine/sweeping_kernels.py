"""A compiled sweep over slices in order of time, with one running total a cell."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.compiled import compiled

Ints = npt.NDArray[np.int64]


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
    out = np.zeros((runs, width), np.int64)
    row = 0
    for edge in order:
        while row < edges[edge]:
            for k in range(width):
                totals[k, cells[row]] += rows[row, k]
            row += 1
        # Before the first row all totals are zero.
        if row > 0:
            run = edge % runs
            for span in range(places[run, 0], places[run, 1]):
                low, high = spans[span, 0], spans[span, 1]
                for k in range(width):
                    total = np.int64(0)
                    for value in totals[k, low:high]:
                        total += value
                    if edge >= runs:
                        out[run, k] += total
                    else:
                        out[run, k] -= total
    return out
