"""Sums of windows with many predicates, in one sweep over time.

A sweep takes in every entry once, into a running total of its cell; at a window's edges the
totals of the cells that its predicate holds in are read.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from muntin.engine.asking import Asking
from muntin.engine.sweeping_kernels import BLOCK, sweep

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


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
