"""Values of windows over sorted occurrences: how many differ, the k-th one, the most frequent.

Windows overlap, so nothing is done once for each window and value. How many values differ is read
off marks that move on (`last_seen`). The k-th value is found for all windows at once, bit by bit of
its rank, by what a wavelet matrix holds of one bit at a time; or, where few windows ask, off
counters that move on with them.

Claude, Navarro, Ordóñez: The Wavelet Matrix, Information Systems 47, 2015.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.aggregates.algebra import Part
from muntin.aggregates.columns.holistic import sliding
from muntin.aggregates.columns.holistic.rows import Ranges, is_sorted, spread
from muntin.aggregates.columns.holistic.runs import RunColumn, RunWindows
from muntin.aggregates.columns.holistic.value_loops import (
    count_ascending,
    count_distinct,
    heavy_ranks,
    list_distinct,
    select_ranks,
    sum_distinct,
    tally,
)
from muntin.aggregates.columns.holistic.windows import (
    Windows,
    fixed_width,
    longest_value,
    value_bytes,
)
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
# Following a value for a bit of its rank, from one far place in memory to the next.
_FOLLOWED = 64
# A counter that moves on is touched in the time of so many that are counted once.
_MOVED = 2
# So many values at once are followed.
_AT_ONCE = 1 << 21


class ValueWindows(Windows):
    """Windows over the occurrences of a column, whose values are ranks among all of its values.

    ``lows`` and ``highs`` bound the cells of each window, and a cell has ranges of the column's
    occurrences. ``begins`` and ``ends`` bound its occurrences if those of all cells lie behind one
    another, as they do where the cells are the column's own.
    """

    def __init__(
        self, base: RunColumn, lows: Ints, highs: Ints, ranges: Ranges | None = None
    ) -> None:
        self.base, self.lows, self.highs = base, lows, np.maximum(highs, lows)
        self._is_own = ranges is None
        self.ranges = Ranges.of(base.rows.offsets) if ranges is None else ranges
        self.offsets = base.rows.offsets if ranges is None else ranges.offsets()
        self.begins, self.ends = self.offsets[self.lows], self.offsets[self.highs]

    @classmethod
    def of(cls, column: RunColumn) -> ValueWindows:
        """The windows of a column, or one for each of its cells."""
        if isinstance(column, RunWindows) and not column.is_written:
            return cls(column.base, column.lows, column.highs)
        lows = np.arange(len(column))
        return cls(column, lows, lows + 1)

    def __len__(self) -> int:
        return len(self.lows)

    def only(self, kept: Ints) -> ValueWindows:
        """Some of the windows."""
        ranges = None if self._is_own else self.ranges
        chosen = ValueWindows(self.base, self.lows[kept], self.highs[kept], ranges)
        for name in ("ranks", "_weights"):
            if name in self.__dict__:
                chosen.__dict__[name] = self.__dict__[name]
        return chosen

    def _gathered(self, numbers: Ints) -> Ints:
        """A number for each occurrence, those of all cells behind one another."""
        if self._is_own:
            return numbers
        sizes = self.ranges.highs - self.ranges.lows
        gathered: Ints = numbers[spread(self.ranges.lows, np.concatenate(([0], np.cumsum(sizes))))]
        return gathered

    @cached_property
    def ranks(self) -> Ints:
        """The rank of each occurrence's value."""
        return self._gathered(self.base.ranked()[0])

    @cached_property
    def _weights(self) -> Ints:
        return self._gathered(self.base.weighed()[0])

    @property
    def codes(self) -> Ints:
        """The codes of each rank."""
        return self.base.ranked()[1]

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

    @cached_property
    def totals(self) -> Ints:  # type: ignore[override]
        """How many values each window has, with repeats."""
        if not self.base.weighted:
            return self.ends - self.begins
        running = np.concatenate(([0], np.cumsum(self._weights)))
        totals: Ints = running[self.ends] - running[self.begins]
        return totals

    def distinct(self, numbers: Ints) -> Ints:
        """For each window the sum of the rows of numbers of its different values, by rank."""
        order = np.argsort(self.highs, kind="stable")
        ranks = self.base.ranked()[0]
        return sum_distinct(self.ranges, ranks, self.lows, self.highs, order, numbers)

    def counts(self) -> Ints:
        """How many different values each window has."""
        counts = np.full(len(self), -1, np.int64)
        if not self.is_listed:
            codes = self.base.rows.codes[:, 0]
            counts, _ = count_ascending(self.ranges, codes, self.lows, self.highs)
        rest = np.flatnonzero(counts < 0)
        if rest.size:
            lows, highs = self.lows[rest], self.highs[rest]
            order = np.argsort(highs, kind="stable")
            ranks, distinct = self.base.ranked()
            counts[rest] = count_distinct(self.ranges, ranks, lows, highs, order, len(distinct))
        return counts

    def over(self, most: int, most_bytes: int) -> Ints:
        """The windows that have more values than so many, or more bytes of values."""
        many = self.totals if self.is_listed else self.ends - self.begins
        # Most often nobody comes near, and which values differ need not be found out.
        if many.max(initial=0) <= min(most, most_bytes // longest_value(self.base)):
            return np.empty(0, np.int64)
        return super().over(most, most_bytes)

    @property
    def occurrences(self) -> Ints:  # type: ignore[override]
        """At most so many different values each window has."""
        most: Ints = np.minimum(self.ends - self.begins, len(self.codes))
        return most

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
        width = fixed_width(self.base)
        if width is not None and not self.is_listed:
            counts = self.counts()
            return counts, width * counts
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
        order = np.argsort(windows, kind="stable")
        looks = sliding.select_steps(len(self.codes))
        searched = self._levels * (_SEARCHED * (high - low) + _FOLLOWED * windows.size)
        if self._steps(begins[order], ends[order], looks) < searched:
            found = np.empty(windows.size, np.int64)
            found[order] = sliding.slide_select(
                self.ranges, self.base.ranked()[0], self.base.weighed()[0],
                self.lows, self.highs, windows[order], places[order], len(self.codes),
            )  # fmt: skip
            return found
        span = slice(low, high)
        weights = self._weights[span]
        return select_ranks(
            self.ranks[span], weights, self._levels, begins - low, ends - low, places.copy()
        )

    def _steps(self, begins: Ints, ends: Ints, looks: int) -> float:
        """How long counters take that move on from window to window, each of which is read."""
        if self.base.weighed()[1] > sliding.MOST_COUNTED:
            return float("inf")
        return _MOVED * sliding.steps(begins, ends) + begins.size * looks

    def heaviest(self, most: int, floors: Ints) -> tuple[Ints, Ints, Ints]:
        """The most frequent values of each window, at most so many, that occur often enough.

        Offsets by window, ranks and numbers of occurrences: the most frequent first, of equally
        frequent ones the least.
        """
        # Windows with few values are looked through, those with many are searched.
        sizes = self.ends - self.begins
        searched = self._levels * (
            _SEARCHED * int(self.offsets[-1]) + _FOLLOWED * _TRIED * most * len(self)
        )
        looks = sliding.heaviest_steps(len(self.codes), most)
        if self._steps(self.begins, self.ends, looks) < min(int(sizes.sum()), searched):
            return self._moved(most, floors)
        few = sizes <= _LOOKED * most * self._levels
        if sizes.sum() <= searched:
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

    def _moved(self, most: int, floors: Ints) -> tuple[Ints, Ints, Ints]:
        """The most frequent values of all windows, off counters that move on."""
        labels, originals = self.base.labelled()
        room = np.concatenate(([0], np.cumsum(np.minimum(self.ends - self.begins, most))))
        ranks, counts, sizes = sliding.slide_heaviest(
            self.ranges, labels, self.base.weighed()[0], originals,
            self.lows, self.highs, np.maximum(floors, 1), room,
        )  # fmt: skip
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        kept = spread(room[:-1], offsets)
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
            return ValueWindows.of(self.base.slide(self.lows, self.highs)).every()
        offsets = np.concatenate(([0], np.cumsum(self.totals)))
        return offsets, self.base.decoded(np.repeat(codes, self._weights[at], axis=0))
