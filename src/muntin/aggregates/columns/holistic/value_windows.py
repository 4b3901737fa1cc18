"""Values of windows over sorted occurrences: how many differ, the k-th one, the most frequent.

Windows overlap, so nothing is done once for each window and value. How many values differ is read
off marks that move on (`last_seen`); the k-th value is found for all windows at once, bit by bit of
its rank, by what a wavelet matrix holds of one bit at a time.

Claude, Navarro, Ordóñez: The Wavelet Matrix, Information Systems 47, 2015.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.aggregates.algebra import Part
from muntin.aggregates.columns.holistic.rolled_runs import Piece, RolledRuns, clusters
from muntin.aggregates.columns.holistic.rows import is_sorted, spread
from muntin.aggregates.columns.holistic.runs import RunColumn, RunWindows
from muntin.aggregates.columns.holistic.value_loops import (
    count_distinct,
    heavy_ranks,
    list_distinct,
    select_ranks,
    sum_distinct,
    tally,
)
from muntin.aggregates.columns.holistic.windows import Windows, value_bytes
from muntin.aggregates.columns.sums import SumColumn

# Of k values that are looked for, each is first expected to be one in so many times k; where too
# few are, rarer ones are looked for, by this factor.
_TRIED = 8
_FEWER = 16
# Looking at so many values takes as long as following one for a bit of its rank.
_LOOKED = 8
# Putting one value in its place for a bit of its rank takes as long as counting so many; all values
# are, whatever the number of windows.
_SEARCHED = 4
# So many values at once are followed.
_AT_ONCE = 1 << 21


class ValueWindows(Windows):
    """Windows over the occurrences of a column, whose values are ranks among all of its values.

    ``lows`` and ``highs`` bound the cells of each window, ``begins`` and ``ends`` its occurrences.
    """

    def __init__(self, column: RunColumn) -> None:
        if isinstance(column, RunWindows) and not column.is_written:
            self.base, self.lows, self.highs = column.base, column.lows, column.highs
        else:
            self.base, self.lows = column, np.arange(len(column))
            self.highs = self.lows + 1
        self.offsets = self.base.rows.offsets
        self.held = self.base.rows.weights
        self.begins, self.ends = self.offsets[self.lows], self.offsets[self.highs]

    @classmethod
    def over_piece(cls, base: RunColumn, piece: Piece, lows: Ints, highs: Ints) -> ValueWindows:
        """Windows over some of a column's occurrences, put together anew."""
        chosen = cls.__new__(cls)
        chosen.base, chosen.lows, chosen.highs = base, lows, highs
        chosen.offsets, chosen.held = piece.offsets, piece.weights
        chosen.begins, chosen.ends = piece.offsets[lows], piece.offsets[highs]
        # What a column ranks is the same for all of its pieces.
        chosen.__dict__["_ranked"] = piece.ranks, base.ranked()[1]
        return chosen

    def __len__(self) -> int:
        return len(self.lows)

    def only(self, kept: Ints) -> ValueWindows:
        """Some of the windows."""
        chosen = ValueWindows.__new__(ValueWindows)
        chosen.base = self.base
        chosen.offsets, chosen.held = self.offsets, self.held
        if "_ranked" in self.__dict__:
            chosen.__dict__["_ranked"] = self._ranked
        chosen.lows, chosen.highs = self.lows[kept], self.highs[kept]
        chosen.begins, chosen.ends = self.begins[kept], self.ends[kept]
        return chosen

    @cached_property
    def _ranked(self) -> tuple[Ints, Ints]:
        return self.base.ranked()

    @property
    def ranks(self) -> Ints:
        """The rank of each occurrence's value."""
        return self._ranked[0]

    @property
    def codes(self) -> Ints:
        """The codes of each rank."""
        return self._ranked[1]

    def codes_at(self, ranks: Ints) -> Ints:
        """The codes of ranks."""
        return self.codes[ranks]

    def values(self, ranks: Ints) -> pa.Array:
        """The values of ranks."""
        return self.base.decoded(self.codes[ranks])

    def sums(self, types: tuple[pa.DataType, ...]) -> SumColumn:
        """The exact sum of each window's different values."""
        values = self.values(np.arange(len(self.codes)))
        sums = SumColumn.empty(Part("sum", types), len(values))
        sums.update(np.arange(len(values)), (values,))
        return sums.summed(self.distinct)

    @property
    def _weights(self) -> Ints:
        return self.held if self.base.weighted else np.ones(self.ranks.size, np.int64)

    @cached_property
    def totals(self) -> Ints:  # type: ignore[override]
        """How many values each window has, with repeats."""
        if not self.base.weighted:
            return self.ends - self.begins
        running = np.concatenate(([0], np.cumsum(self.held)))
        totals: Ints = running[self.ends] - running[self.begins]
        return totals

    def distinct(self, numbers: Ints) -> Ints:
        """For each window the sum of the rows of numbers of its different values, by rank."""
        order = np.argsort(self.highs, kind="stable")
        return sum_distinct(self.offsets, self.ranks, self.lows, self.highs, order, numbers)

    def counts(self) -> Ints:
        """How many different values each window has."""
        order = np.argsort(self.highs, kind="stable")
        size = len(self.codes)
        return count_distinct(self.offsets, self.ranks, self.lows, self.highs, order, size)

    @property
    def occurrences(self) -> Ints:  # type: ignore[override]
        """At most so many different values each window has."""
        return self.ends - self.begins

    @property
    def is_listed(self) -> bool:  # type: ignore[override]
        """Whether windows hold lists, whose values are all counted."""
        return bool(self.base.rows.codes.shape[1] > 1)

    @cached_property
    def _sizes(self) -> Ints:
        return value_bytes(self.base, self.codes)

    @property
    def longest(self) -> int:  # type: ignore[override]
        """The most bytes that a value has."""
        return int(self._sizes.max(initial=0))

    def measured(self) -> tuple[Ints, Ints]:
        """How many different values each window has, or values of a list, and their bytes."""
        numbers = np.column_stack((np.ones(self._sizes.size, np.int64), self._sizes))
        if self.is_listed:
            held = numbers[self.ranks] * self._weights[:, None]
            running = np.concatenate((np.zeros((1, 2), np.int64), np.cumsum(held, axis=0)))
            found = running[self.ends] - running[self.begins]
        else:
            found = self.distinct(numbers)
        return found[:, 0], found[:, 1]

    def select(self, windows: Ints, places: Ints) -> Ints:
        """The rank of the value at a place, from 0 on, among the sorted values of a window."""
        begins, ends = self.begins[windows], self.ends[windows]
        low, high = int(begins.min(initial=2**62)), int(ends.max(initial=0))
        if low >= high:
            return np.zeros(windows.size, np.int64)
        span = slice(low, high)
        weights = self._weights[span]
        return select_ranks(
            self.ranks[span], weights, self._levels, begins - low, ends - low, places.copy()
        )

    def heaviest(self, most: int, floors: Ints) -> tuple[Ints, Ints, Ints]:
        """The most frequent values of each window, at most so many, that occur often enough.

        Offsets by window, ranks and numbers of occurrences: the most frequent first, of equally
        frequent ones the least.
        """
        # Windows with few values are looked through, those with many are searched.
        sizes = self.ends - self.begins
        few = sizes <= _LOOKED * most * self._levels
        if sizes.sum() <= _SEARCHED * self._levels * self.ranks.size:
            few[:] = True
        found = [self._tallied(np.flatnonzero(few), most, floors)]
        left, least = np.flatnonzero(~few), np.maximum(self.totals // (_TRIED * most), floors)
        while left.size:
            owners, ranks, counts = self._heavier(left, least)
            sizes = np.bincount(owners, minlength=len(self))[left]
            done = (sizes >= most) | (least[left] <= floors[left])
            chosen = np.isin(owners, left[done])
            found.append((owners[chosen], ranks[chosen], counts[chosen]))
            left = left[~done]
            least[left] = np.maximum(least[left] // _FEWER, floors[left])
        owners, ranks, counts = (np.concatenate(each) for each in zip(*found, strict=True))
        order = np.lexsort((ranks, -counts, owners))
        sizes = np.bincount(owners, minlength=len(self))
        begins = np.concatenate(([0], np.cumsum(sizes)))[:-1]
        offsets = np.concatenate(([0], np.cumsum(np.minimum(sizes, most))))
        kept = order[spread(begins, offsets)]
        return offsets, ranks[kept], counts[kept]

    def _tallied(self, windows: Ints, most: int, floors: Ints) -> tuple[Ints, Ints, Ints]:
        """The most frequent values of some windows, all of whose values are counted."""
        begins, ends = self.begins[windows], self.ends[windows]
        offsets = np.concatenate(([0], np.cumsum(np.minimum(ends - begins, most))))
        ranks, counts, sizes = tally(
            self.ranks, self._weights, begins, ends, len(self.codes), floors[windows], offsets
        )
        kept = spread(offsets[:-1], np.concatenate(([0], np.cumsum(sizes))))
        return np.repeat(windows, sizes), ranks[kept], counts[kept]

    def _heavier(self, windows: Ints, floors: Ints) -> tuple[Ints, Ints, Ints]:
        """All values of some windows that occur as often as their floors say."""
        found = []
        room = np.cumsum(self.totals[windows] // floors[windows] + 1)
        for some in np.split(windows, np.flatnonzero(np.diff(room // _AT_ONCE)) + 1):
            begins, ends = self.begins[some], self.ends[some]
            low, high = int(begins.min()), int(ends.max())
            owners, ranks, counts = heavy_ranks(
                self.ranks[low:high], self._weights[low:high], self._levels,
                begins - low, ends - low, self.totals[some], floors[some],
            )  # fmt: skip
            found.append((some[owners], ranks, counts))
        owners, ranks, counts = (np.concatenate(each) for each in zip(*found, strict=True))
        return owners, ranks, counts

    @property
    def _levels(self) -> int:
        """The bits of a rank."""
        return max(int(len(self.codes) - 1).bit_length(), 1)

    def different(self) -> tuple[Ints, Ints]:
        """Offsets by window, and the ranks of its different values, in order."""
        offsets = np.concatenate(([0], np.cumsum(self.counts())))
        return offsets, list_distinct(self.ranks, self.begins, self.ends, len(self.codes), offsets)

    def every(self) -> tuple[Ints, pa.Array]:
        """Offsets by window, and its values in order, each as often as it occurs."""
        bounds = np.concatenate(([0], np.cumsum(self.ends - self.begins)))
        at = spread(self.begins, bounds)
        codes = self.base.rows.codes[at]
        if not is_sorted(codes, bounds):
            # Where windows count rows, one time may lie on both sides of an edge.
            return ValueWindows(self.base.slide(self.lows, self.highs)).every()
        offsets = np.concatenate(([0], np.cumsum(self.totals)))
        return offsets, self.base.decoded(np.repeat(codes, self._weights[at], axis=0))


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
            piece = self.base.piece(first, max(last, first))
            held = ValueWindows.over_piece(
                self.base.source, piece, lows - first, np.maximum(highs, lows) - first
            )
            yield windows, held

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
        found: Ints = running[np.maximum(self.highs, self.lows)] - running[self.lows]
        return found

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
        return ValueWindows(self.base.slide(self.lows, self.highs)).every()


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
    return ValueWindows(column)
