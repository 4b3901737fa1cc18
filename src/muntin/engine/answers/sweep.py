"""Sums of windows with many predicates, in one sweep over time.

A sweep takes in every entry once, into a running total of its cell; at a window's edges the
totals of the cells that its predicate holds in are read.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Bools, Ints
from muntin.engine.answers.windows import Asking


@dataclass(frozen=True)
class Spans:
    """The cells that each predicate holds in, as ranges; those of member m from ``firsts[m]`` on.

    >>> spans = Spans.of(np.array([[True, True, False, True], [False, False, False, True]]))
    >>> spans.bounds.tolist(), spans.firsts.tolist()
    ([[0, 2], [3, 4], [3, 4]], [0, 2, 3])
    """

    bounds: Ints
    firsts: Ints

    @classmethod
    def of(cls, held: Bools) -> Spans:
        """The ranges of a table with a row a predicate and a column a cell."""
        padded = np.zeros((held.shape[0], held.shape[1] + 2), np.int8)
        padded[:, 1:-1] = held
        steps = np.diff(padded, axis=1)
        members, lows = np.nonzero(steps == 1)
        highs = np.nonzero(steps == -1)[1]
        firsts = np.searchsorted(members, np.arange(held.shape[0] + 1))
        return cls(np.column_stack((lows, highs)), firsts)

    def reads(self) -> Ints:
        """How many totals are read for each predicate: whole blocks of cells, and single ones."""
        lows, highs = self.bounds.T
        firsts, lasts = (lows + BLOCK - 1) // BLOCK, highs // BLOCK
        whole = lasts - firsts + firsts * BLOCK - lows + highs - lasts * BLOCK
        totals = np.concatenate(([0], np.cumsum(np.where(firsts < lasts, whole, highs - lows))))
        return totals[self.firsts[1:]] - totals[self.firsts[:-1]]


class Sweep:
    """A sweep over entries in order of time; ``begins`` says where each slice's begin.

    ``cost`` is the number of totals that are read, and those that entries are added to.
    """

    def __init__(self, asking: Asking, begins: Ints, cells: Ints, spans: Spans, size: int) -> None:
        self._edges = begins[np.concatenate(asking.edges)]
        self._cells, self._spans, self._size = cells, spans, size
        lows, highs = np.split(self._edges, 2)
        members = asking.members[lows < highs]
        self._reads = int(2 * spans.reads()[members].sum())
        self.cost = 2 * cells.size + self._reads

    @property
    def steps(self) -> int:
        """How many aggregations it takes: one for an entry, one for a total that is read."""
        return int(self._cells.size + self._reads)

    def sums(self, rows: Ints, members: Ints) -> Ints:
        """For each run the sum of the entries' rows that its predicate holds in."""
        firsts = self._spans.firsts
        places = np.column_stack((firsts[members], firsts[members + 1]))
        order = np.argsort(self._edges, kind="stable")
        return sweep(rows, self._cells, self._size, self._edges, order, self._spans.bounds, places)


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
