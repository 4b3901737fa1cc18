"""Sorted values of cells that are rolled up from others: ranges of these, until somebody asks.

A predicate takes the values of many cells of each slice. Hundreds of predicates together take many
times what there is, so nothing is written out before it is needed, and then piece by piece.
"""

from __future__ import annotations

import numpy as np

from muntin._typing import Ints
from muntin.aggregates.columns.column import PartColumn, Slide
from muntin.aggregates.columns.holistic.rows import Ranges, Rows, gathered, spread
from muntin.aggregates.columns.holistic.runs import RunColumn, RunWindows

# So many occurrences at once are put together, or all of one cluster.
_AT_ONCE = 1 << 20


class RolledRuns(RunColumn):
    """Cells that take ranges of another column's cells: cell c those from ``firsts[c]`` on.

    Range r is the source's occurrences from ``lows[r]`` to ``highs[r] - 1``.
    """

    def __init__(self, source: RunColumn, lows: Ints, highs: Ints, firsts: Ints) -> None:
        PartColumn.__init__(self, source.part)
        self.source, self._lows, self._highs, self._firsts = source, lows, highs, firsts
        self.values, self.keys = source.values, source.keys
        self._ranked = self._weighed = self._labelled = None
        self._whole: RunColumn | None = None

    def __len__(self) -> int:
        return len(self._firsts) - 1 if self._whole is None else len(self._whole)

    @property
    def is_written(self) -> bool:
        """Whether the values of each cell are written out."""
        return self._whole is not None

    @property
    def rows(self) -> Rows:
        """The occurrences of each cell, written out."""
        if self._whole is None:
            cells = np.repeat(np.arange(len(self)), np.diff(self._firsts))
            rows = gathered(self.source.rows, self._lows, self._highs, cells, len(self))
            self._whole = self.source.holding(rows)
            self.values, self.keys = self._whole.values, self._whole.keys
        return self._whole.rows

    @rows.setter
    def rows(self, rows: Rows) -> None:
        self._whole = type(self.source)(self.part, rows, self.values, self.keys)

    def holding(self, rows: Rows) -> RunColumn:  # type: ignore[override]
        """A column that is written out."""
        return (self.source if self._whole is None else self._whole).holding(rows)

    def take(self, indices: Ints) -> RunColumn:  # type: ignore[override]
        """The cells at `indices`."""
        if self.is_written:
            return super().take(indices)
        sizes = np.diff(self._firsts)[indices]
        firsts = np.concatenate(([0], np.cumsum(sizes)))
        at = spread(self._firsts[indices], firsts)
        return RolledRuns(self.source, self._lows[at], self._highs[at], firsts)

    def sliding(self, longest: int) -> Slide:
        """Windows over these cells, which are looked through when they are lowered."""
        return lambda starts, ends: RunWindows(self, starts, ends)

    def occurrences(self) -> Ints:
        """At most so many different values each cell has."""
        running = np.concatenate(([0], np.cumsum(self._highs - self._lows)))
        return np.diff(running[self._firsts])

    def totals(self) -> Ints:
        """How many values each cell has, with repeats."""
        if not self.source.weighted:
            return self.occurrences()
        running = np.concatenate(([0], np.cumsum(self.source.rows.weights)))
        sums = np.concatenate(([0], np.cumsum(running[self._highs] - running[self._lows])))
        return np.diff(sums[self._firsts])

    def ranges(self, first: int, last: int) -> Ranges:
        """Where the occurrences of the cells from one to another lie in the source."""
        return Ranges(self._firsts, self._lows, self._highs).between(first, last)


def clusters(lows: Ints, highs: Ints, sizes: Ints, enough: int = _AT_ONCE) -> list[Ints]:
    """Windows by clusters whose cells do not overlap, small ones together until there are enough.

    >>> found = clusters(np.array([5, 0, 1]), np.array([7, 2, 3]), np.full(9, 1 << 19))
    >>> [each.tolist() for each in found]
    [[1, 2], [0]]
    """
    if not lows.size:
        return []
    order = np.argsort(lows, kind="stable")
    begins, ends = lows[order], np.maximum.accumulate(np.maximum(highs, lows)[order])
    running = np.concatenate(([0], np.cumsum(sizes)))
    breaks = np.flatnonzero(begins[1:] >= ends[:-1]) + 1
    found, first = [], 0
    for at in breaks.tolist():
        if running[ends[at - 1]] - running[begins[first]] >= enough:
            found.append(np.sort(order[first:at]))
            first = at
    return [*found, np.sort(order[first:])]
