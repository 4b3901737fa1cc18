"""Windows over cells that are rolled up from others, one cluster of windows after the other."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.aggregates.algebra import Part
from muntin.aggregates.columns.holistic.rolled_runs import RolledRuns, clusters
from muntin.aggregates.columns.holistic.rows import spread
from muntin.aggregates.columns.holistic.runs import RunColumn, RunWindows
from muntin.aggregates.columns.holistic.value_windows import ValueWindows
from muntin.aggregates.columns.holistic.windows import Windows, value_bytes
from muntin.aggregates.columns.sums import SumColumn


class ClusteredWindows(Windows):
    """Windows over rolled up cells, which are put together one cluster of windows after the other.

    Each predicate has cells of its own, and all of them together would be many times what is kept.
    """

    def __init__(self, base: RolledRuns, lows: Ints, highs: Ints) -> None:
        self.base, self.lows, self.highs = base, lows, highs
        self._clusters = clusters(lows, highs, base.occurrences())

    def __len__(self) -> int:
        return len(self.lows)

    def only(self, kept: Ints) -> ClusteredWindows:
        """Some of the windows."""
        return ClusteredWindows(self.base, self.lows[kept], self.highs[kept])

    def _pieces(self) -> Iterator[tuple[Ints, ValueWindows]]:
        for windows in self._clusters:
            lows, highs = self.lows[windows], self.highs[windows]
            first, last = int(lows.min()), int(highs.max())
            ranges = self.base.ranges(first, max(last, first))
            yield windows, ValueWindows(self.base.source, lows - first, highs - first, ranges)

    @cached_property
    def totals(self) -> Ints:  # type: ignore[override]
        """How many values each window has, with repeats."""
        running = np.concatenate(([0], np.cumsum(self.base.totals())))
        totals: Ints = running[np.maximum(self.highs, self.lows)] - running[self.lows]
        return totals

    @cached_property
    def occurrences(self) -> Ints:  # type: ignore[override]
        """At most so many different values each window has."""
        running = np.concatenate(([0], np.cumsum(self.base.occurrences())))
        found = running[np.maximum(self.highs, self.lows)] - running[self.lows]
        most: Ints = np.minimum(found, len(self.base.source.ranked()[1]))
        return most

    @property
    def is_listed(self) -> bool:  # type: ignore[override]
        """Lists are put together as a whole."""
        return False

    @property
    def longest(self) -> int:  # type: ignore[override]
        """The most bytes that a value has."""
        codes = self.base.source.ranked()[1]
        return int(value_bytes(self.base.source, codes).max(initial=0))

    def measured(self) -> tuple[Ints, Ints]:
        """How many different values each window has, and their bytes."""
        found = np.zeros((len(self), 2), np.int64)
        for windows, piece in self._pieces():
            found[windows] = np.column_stack(piece.measured())
        return found[:, 0], found[:, 1]

    def counts(self) -> Ints:
        """How many different values each window has."""
        found = np.zeros(len(self), np.int64)
        for windows, piece in self._pieces():
            found[windows] = piece.counts()
        return found

    def _summed(self, numbers: Ints) -> Ints:
        """For each window the sum of the rows of numbers of its different values, by rank."""
        found = np.zeros((len(self), numbers.shape[1]), np.int64)
        for windows, piece in self._pieces():
            found[windows] = piece.distinct(numbers)
        return found

    def codes_at(self, ranks: Ints) -> Ints:
        """The codes of ranks."""
        return self.base.source.ranked()[1][ranks]

    def values(self, ranks: Ints) -> pa.Array:
        """The values of ranks."""
        return self.base.source.decoded(self.codes_at(ranks))

    def sums(self, types: tuple[pa.DataType, ...]) -> SumColumn:
        """The exact sum of each window's different values."""
        values = self.values(np.arange(len(self.base.source.ranked()[1])))
        sums = SumColumn.empty(Part("sum", types), len(values))
        sums.update(np.arange(len(values)), (values,))
        return sums.summed(self._summed)

    def select(self, windows: Ints, places: Ints) -> Ints:
        """The rank of the value at a place, from 0 on, among the sorted values of a window."""
        found, at = np.zeros(windows.size, np.int64), np.full(len(self), -1)
        order = np.argsort(windows, kind="stable")
        bounds = np.searchsorted(windows[order], np.arange(len(self) + 1))
        for own, piece in self._pieces():
            at[own] = np.arange(own.size)
            rows = order[spread(bounds[own], _offsets(bounds[own + 1] - bounds[own]))]
            found[rows] = piece.select(at[windows[rows]], places[rows])
        return found

    def heaviest(self, most: int, floors: Ints) -> tuple[Ints, Ints, Ints]:
        """The most frequent values of each window, at most so many, that occur often enough."""
        sizes = np.zeros(len(self), np.int64)
        owners, ranks, counts = ([np.empty(0, np.int64)] for _ in range(3))
        for windows, piece in self._pieces():
            offsets, found, numbers = piece.heaviest(most, floors[windows])
            sizes[windows] = np.diff(offsets)
            owners.append(np.repeat(windows, np.diff(offsets)))
            ranks.append(found)
            counts.append(numbers)
        order = np.argsort(np.concatenate(owners), kind="stable")
        return _offsets(sizes), np.concatenate(ranks)[order], np.concatenate(counts)[order]

    def different(self) -> tuple[Ints, Ints]:
        """Offsets by window, and the ranks of its different values, in order."""
        sizes = np.zeros(len(self), np.int64)
        owners, ranks = ([np.empty(0, np.int64)] for _ in range(2))
        for windows, piece in self._pieces():
            offsets, found = piece.different()
            sizes[windows] = np.diff(offsets)
            owners.append(np.repeat(windows, np.diff(offsets)))
            ranks.append(found)
        order = np.argsort(np.concatenate(owners), kind="stable")
        return _offsets(sizes), np.concatenate(ranks)[order]

    def every(self) -> tuple[Ints, pa.Array]:
        """Offsets by window, and its values in order, each as often as it occurs."""
        return ValueWindows.of(self.base.slide(self.lows, self.highs)).every()


def _offsets(sizes: Ints) -> Ints:
    return np.concatenate(([0], np.cumsum(sizes)))


def windows_of(column: RunColumn | Windows) -> Windows:
    """The windows of a column that is lowered: its own, or one for each of its cells."""
    if isinstance(column, Windows):
        return column
    if isinstance(column, RunWindows) and not column.is_written:
        base = column.base
        if isinstance(base, RolledRuns) and not base.is_written:
            return ClusteredWindows(base, column.lows, column.highs)
    return ValueWindows.of(column)
