"""Values of windows over sorted occurrences: how many differ, the k-th one, the most frequent.

Windows overlap, so nothing is done once for each window and value. How many values differ is read
off marks that move on (`last_seen`); the k-th value is found for all windows at once, bit by bit of
its rank, by what a wavelet matrix holds of one bit at a time.

Claude, Navarro, Ordóñez: The Wavelet Matrix, Information Systems 47, 2015.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.aggregates.columns.arrow_views import integers
from muntin.aggregates.columns.codes import DictionaryCoder
from muntin.aggregates.columns.holistic.runs import RunColumn, RunWindows, is_sorted, spread


class ValueWindows:
    """Windows over the occurrences of a column, whose values are ranks among all of its values.

    ``lows`` and ``highs`` bound the cells of each window, ``begins`` and ``ends`` its occurrences.
    """

    def __init__(self, column: RunColumn) -> None:
        if isinstance(column, RunWindows) and not column.is_written:
            self.base, self.lows, self.highs = column.base, column.lows, column.highs
        else:
            self.base, self.lows = column, np.arange(len(column))
            self.highs = self.lows + 1
        offsets = self.base.rows.offsets
        self.begins, self.ends = offsets[self.lows], offsets[self.highs]

    def __len__(self) -> int:
        return len(self.lows)

    def only(self, kept: Ints) -> ValueWindows:
        """Some of the windows."""
        chosen = ValueWindows.__new__(ValueWindows)
        chosen.base = self.base
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

    def values(self, ranks: Ints) -> pa.Array:
        """The values of ranks."""
        return self.base.decoded(self.codes[ranks])

    @property
    def _weights(self) -> Ints:
        weights = self.base.rows.weights
        return weights if self.base.weighted else np.ones(len(self.base.rows.codes), np.int64)

    @cached_property
    def totals(self) -> Ints:
        """How many values each window has, with repeats."""
        if not self.base.weighted:
            return self.ends - self.begins
        running = np.concatenate(([0], np.cumsum(self.base.rows.weights)))
        totals: Ints = running[self.ends] - running[self.begins]
        return totals

    def distinct(self, numbers: Ints) -> Ints:
        """For each window the sum of the rows of numbers of its different values, by rank."""
        order = np.argsort(self.highs, kind="stable")
        return sum_distinct(
            self.base.rows.offsets, self.ranks, self.lows, self.highs, order, numbers
        )

    def counts(self) -> Ints:
        """How many different values each window has."""
        return self.distinct(np.ones((len(self.codes), 1), np.int64))[:, 0]

    def over(self, most: int, most_bytes: int) -> Ints:
        """The windows that have more values than so many, or more bytes of values.

        Judged by the window's own values: different ones, or all of a list.
        """
        listed = self.codes.shape[1] > 1
        sizes = self._value_bytes()
        many = self.totals if listed else self.ends - self.begins
        doubtful = np.flatnonzero((many > most) | (many * sizes.max(initial=0) > most_bytes))
        if not doubtful.size:
            return doubtful
        some = self.only(doubtful)
        numbers = np.column_stack((np.ones(sizes.size, np.int64), sizes))
        if listed:
            held = numbers[self.ranks] * self._weights[:, None]
            running = np.concatenate((np.zeros((1, 2), np.int64), np.cumsum(held, axis=0)))
            found = running[some.ends] - running[some.begins]
        else:
            found = some.distinct(numbers)
        chosen: Ints = doubtful[(found[:, 0] > most) | (found[:, 1] > most_bytes)]
        return chosen

    def _value_bytes(self) -> Ints:
        """The bytes of each rank's value."""
        kind = self.base.part.types[0]
        if isinstance(self.base.values, DictionaryCoder) and not pa.types.is_decimal(kind):
            values = self.values(np.arange(len(self.codes)))
            if not pa.types.is_integer(kind):
                return integers(pc.binary_length(values).fill_null(0))
        return np.full(len(self.codes), 16 if pa.types.is_decimal(kind) else 8)

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
        few = self.ends - self.begins <= _LOOKED * most * self._levels
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


# Of k values that are looked for, each is first expected to be one in so many times k; where too
# few are, rarer ones are looked for, by this factor.
_TRIED = 8
_FEWER = 16
# Looking at so many values takes as long as following one for a bit of its rank.
_LOOKED = 8
# So many values at once are followed.
_AT_ONCE = 1 << 21
_BITS = 8
_BLOCK = 1 << _BITS


@compiled
def sum_distinct(
    offsets: Ints, ranks: Ints, lows: Ints, highs: Ints, order: Ints, numbers: Ints
) -> Ints:
    """For each window the sum of the numbers of its different values.

    Cells are gone through in order. A mark of each value stands in the last cell that has it, so
    that a window which ends there holds as many values as there are marks in it. `order` sorts
    windows by their ends.
    """
    width, cells = numbers.shape[1], offsets.size - 1
    out = np.zeros((lows.size, width), np.int64)
    last = np.full(numbers.shape[0], -1, np.int64)
    marks = np.zeros((cells, width), np.int64)
    blocks = np.zeros(((cells >> _BITS) + 1, width), np.int64)
    at = cells
    for window in range(lows.size):
        if highs[window] > lows[window]:
            at = min(at, lows[window])
    for window in order:
        low, high = lows[window], highs[window]
        while at < high:
            for i in range(offsets[at], offsets[at + 1]):
                rank = ranks[i]
                before = last[rank]
                for k in range(width):
                    if before >= 0:
                        marks[before, k] -= numbers[rank, k]
                        blocks[before >> _BITS, k] -= numbers[rank, k]
                    marks[at, k] += numbers[rank, k]
                    blocks[at >> _BITS, k] += numbers[rank, k]
                last[rank] = at
            at += 1
        first, final = (low + _BLOCK - 1) >> _BITS, high >> _BITS
        for k in range(width):
            total = np.int64(0)
            if first >= final:
                for cell in range(low, high):
                    total += marks[cell, k]
            else:
                for cell in range(low, first << _BITS):
                    total += marks[cell, k]
                for block in range(first, final):
                    total += blocks[block, k]
                for cell in range(final << _BITS, high):
                    total += marks[cell, k]
            out[window, k] = total
    return out


@compiled
def select_ranks(
    ranks: Ints, weights: Ints, levels: int, begins: Ints, ends: Ints, places: Ints
) -> Ints:
    """For each window the rank at a place among its sorted values.

    Each level splits the ranks by one bit, from the highest on: those without it come first, in
    the order they had, and so do the windows' bounds. Begins, ends and places are used up.
    """
    size = ranks.size
    current, following = ranks.copy(), np.empty(size, np.int64)
    held, after = weights.copy(), np.empty(size, np.int64)
    before, lighter = np.zeros(size + 1, np.int64), np.zeros(size + 1, np.int64)
    found = np.zeros(begins.size, np.int64)
    for level in range(levels - 1, -1, -1):
        zeros = total = np.int64(0)
        for i in range(size):
            clear = 1 - ((current[i] >> level) & 1)
            zeros += clear
            total += held[i] * clear
            before[i + 1], lighter[i + 1] = zeros, total
        for window in range(begins.size):
            begin, end = begins[window], ends[window]
            if begin >= end:
                continue
            low, high = before[begin], before[end]
            less = lighter[end] - lighter[begin]
            if places[window] < less:
                begins[window], ends[window] = low, high
            else:
                places[window] -= less
                found[window] |= np.int64(1) << level
                begins[window], ends[window] = zeros + begin - low, zeros + end - high
        for i in range(size):
            to = zeros + i - before[i] if (current[i] >> level) & 1 else before[i]
            following[to], after[to] = current[i], held[i]
        current, following = following, current
        held, after = after, held
    return found


@compiled
def heavy_ranks(
    ranks: Ints, weights: Ints, levels: int, begins: Ints, ends: Ints, totals: Ints, floors: Ints
) -> tuple[Ints, Ints, Ints]:
    """The values that occur as often as each window's floor says: windows, ranks and numbers.

    As in `select_ranks`, bit by bit; of the ranks that begin with the same bits, only those are
    followed that together occur often enough, which are few. In order of window and rank.
    """
    size = ranks.size
    current, following = ranks.copy(), np.empty(size, np.int64)
    held, after = weights.copy(), np.empty(size, np.int64)
    before, lighter = np.zeros(size + 1, np.int64), np.zeros(size + 1, np.int64)
    windows = np.flatnonzero((totals >= floors) & (ends > begins))
    nodes = np.empty((windows.size, 4), np.int64)
    for i in range(windows.size):
        window = windows[i]
        nodes[i, 0], nodes[i, 1] = begins[window], ends[window]
        nodes[i, 2], nodes[i, 3] = totals[window], 0
    for level in range(levels - 1, -1, -1):
        zeros = total = np.int64(0)
        for i in range(size):
            clear = 1 - ((current[i] >> level) & 1)
            zeros += clear
            total += held[i] * clear
            before[i + 1], lighter[i + 1] = zeros, total
        many = 0
        for i in range(windows.size):
            floor = floors[windows[i]]
            less = lighter[nodes[i, 1]] - lighter[nodes[i, 0]]
            many += (less >= floor) + (nodes[i, 2] - less >= floor)
        owners, children = np.empty(many, np.int64), np.empty((many, 4), np.int64)
        at = 0
        for i in range(windows.size):
            begin, end, whole, rank = nodes[i]
            floor = floors[windows[i]]
            less = lighter[end] - lighter[begin]
            low, high = before[begin], before[end]
            if less >= floor:
                owners[at] = windows[i]
                children[at, 0], children[at, 1] = low, high
                children[at, 2], children[at, 3] = less, rank
                at += 1
            if whole - less >= floor:
                owners[at] = windows[i]
                children[at, 0], children[at, 1] = zeros + begin - low, zeros + end - high
                children[at, 2], children[at, 3] = whole - less, rank | (np.int64(1) << level)
                at += 1
        windows, nodes = owners, children
        for i in range(size):
            to = zeros + i - before[i] if (current[i] >> level) & 1 else before[i]
            following[to], after[to] = current[i], held[i]
        current, following = following, current
        held, after = after, held
    return windows, nodes[:, 3].copy(), nodes[:, 2].copy()


@compiled
def tally(
    ranks: Ints, weights: Ints, begins: Ints, ends: Ints, size: int, floors: Ints, offsets: Ints
) -> tuple[Ints, Ints, Ints]:
    """The most frequent values of each window, as many as there is room for from its offset on."""
    counts = np.zeros(size, np.int64)
    touched = np.empty(size, np.int64)
    best, numbers = np.empty(offsets[-1], np.int64), np.empty(offsets[-1], np.int64)
    sizes = np.zeros(begins.size, np.int64)
    for window in range(begins.size):
        many = 0
        for i in range(begins[window], ends[window]):
            rank = ranks[i]
            if counts[rank] == 0:
                touched[many] = rank
                many += 1
            counts[rank] += weights[i]
        first, room = offsets[window], offsets[window + 1] - offsets[window]
        held = 0
        for i in range(many):
            rank = touched[i]
            count = counts[rank]
            counts[rank] = 0
            if count < floors[window]:
                continue
            if held == room:
                last = first + held - 1
                worse = count < numbers[last] or (count == numbers[last] and rank > best[last])
                if room == 0 or worse:
                    continue
                held -= 1
            at = first + held
            while at > first and (
                numbers[at - 1] < count or (numbers[at - 1] == count and best[at - 1] > rank)
            ):
                best[at], numbers[at] = best[at - 1], numbers[at - 1]
                at -= 1
            best[at], numbers[at] = rank, count
            held += 1
        sizes[window] = held
    return best, numbers, sizes


@compiled
def list_distinct(ranks: Ints, begins: Ints, ends: Ints, size: int, offsets: Ints) -> Ints:
    """The different values of each window, in order, from its offset on."""
    seen = np.full(size, -1, np.int64)
    out = np.empty(offsets[-1], np.int64)
    for window in range(begins.size):
        at = offsets[window]
        for i in range(begins[window], ends[window]):
            if seen[ranks[i]] != window:
                seen[ranks[i]] = window
                out[at] = ranks[i]
                at += 1
        out[offsets[window] : at].sort()
    return out
