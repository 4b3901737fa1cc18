"""What combines any range of a block's entries: the synopses of the thesis, over columns."""

from __future__ import annotations

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.aggregates.columns.by_part import empty
from muntin.aggregates.columns.codes import NOTHING
from muntin.aggregates.columns.column import AdditiveColumn, PartColumn, Slide
from muntin.aggregates.columns.extremes import ExtremeColumn
from muntin.aggregates.exact.limbs import differences, running_totals

# So few ranges are computed without a kernel: one that gives up the interpreter's lock for
# microseconds waits for those who take it meanwhile.
_FEW = 16


def slide_of(column: PartColumn, synopsis: str | None) -> Slide:
    """The structure of a name over a column; the column's own choice where there is no name.

    ``running`` is a running total: a range is one difference. ``interval`` has dyadic intervals,
    ``basic_interval`` looks through the range. By its own choice a column has running totals where
    it can be subtracted, and looks through the range otherwise.
    """
    if synopsis == "interval":
        return DyadicIntervals(column)
    if isinstance(column, ExtremeColumn) and column.marks is None and not column.values.moves:
        return Scans(column)
    if synopsis == "basic_interval":
        return column.slide
    if isinstance(column, AdditiveColumn):
        return RunningTotals(column)
    return column.sliding(max(len(column), 1))


class RunningTotals:
    """Sums of all entries before each: a range is one difference.

    >>> from muntin.aggregates.columns.counts import CountColumn
    >>> from muntin.aggregates.algebra import Part
    >>> column = CountColumn(Part("count", ()), np.arange(10))
    >>> RunningTotals(column)(np.array([0, 3]), np.array([10, 8])).counts.tolist()
    [45, 25]
    """

    def __init__(self, column: AdditiveColumn) -> None:
        self.column = column
        self.totals: list[Ints] = []
        column.summed(self._read)

    def _read(self, rows: Ints) -> Ints:
        self.totals.append(running_totals(rows))
        return rows[:0]

    def __call__(self, starts: Ints, ends: Ints) -> PartColumn:
        """A column whose cell i adds up entries ``starts[i]`` to ``ends[i] - 1``."""
        waiting = iter(self.totals)

        def sums(_: Ints) -> Ints:
            totals = next(waiting)
            if starts.size > _FEW:
                return differences(totals, starts, ends)
            found: Ints = totals[ends] - totals[starts]
            return found

        return self.column.summed(sums)


class Scans:
    """Extremes that are looked through: the ranges of a question have nothing in common."""

    def __init__(self, column: ExtremeColumn) -> None:
        self.column = column

    def __call__(self, starts: Ints, ends: Ints) -> PartColumn:
        """A column whose cell i has the extreme of entries ``starts[i]`` to ``ends[i] - 1``."""
        least = self.column.least
        if starts.size > _FEW:
            return self.column.of_codes(scan_least(least, starts, ends))
        pairs = zip(starts.tolist(), ends.tolist(), strict=True)
        found = [least[start:end].min() for start, end in pairs]
        return self.column.of_codes(np.array(found, np.int64))


@compiled
def scan_least(least: Ints, starts: Ints, ends: Ints) -> Ints:
    """The smallest code in [starts[i], ends[i]); ranges of a question have nothing in common."""
    out = np.empty(starts.shape[0], np.int64)
    for i in range(starts.shape[0]):
        best = NOTHING
        for place in range(starts[i], ends[i]):
            best = min(best, least[place])
        out[i] = best
    return out


class DyadicIntervals:
    """Combinations of 1, 2, 4, ... entries at multiples of these numbers.

    A range takes two intervals of each length at most. *Sliding Window Query Processing over Data
    Streams*, 2.3.4.

    >>> from muntin.aggregates.columns.counts import CountColumn
    >>> from muntin.aggregates.algebra import Part
    >>> column = CountColumn(Part("count", ()), np.arange(10))
    >>> DyadicIntervals(column)(np.array([0, 3]), np.array([10, 8])).counts.tolist()
    [45, 25]
    """

    def __init__(self, column: PartColumn) -> None:
        self._levels = [column]
        while len(self._levels[-1]) > 1:
            below = self._levels[-1]
            places = np.arange(len(below) // 2)
            level = empty(column.part, places.size)
            level.merge(places, below.take(2 * places))
            level.merge(places, below.take(2 * places + 1))
            self._levels.append(level)

    def __call__(self, starts: Ints, ends: Ints) -> PartColumn:
        """A column whose cell i combines entries ``starts[i]`` to ``ends[i] - 1``."""
        starts, ends = starts.copy(), ends.copy()
        total = empty(self._levels[0].part, starts.size)
        for level in self._levels:
            left = np.flatnonzero((starts < ends) & (starts & 1 == 1))
            total.merge(left, level.take(starts[left]))
            starts[left] += 1
            right = np.flatnonzero((starts < ends) & (ends & 1 == 1))
            ends[right] -= 1
            total.merge(right, level.take(ends[right]))
            starts >>= 1
            ends >>= 1
            if not (starts < ends).any():
                break
        return total
