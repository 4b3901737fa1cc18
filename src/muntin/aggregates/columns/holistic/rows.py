"""Sorted occurrences of many cells as three arrays, and how they are brought together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Ints

# Numbers of cells and codes that fit one word together are sorted as one.
_WORD = 1 << 62
# A table of all numbers there can be beats sorting while it is so many times as large.
_DENSE = 4
# Half as many different numbers as a table of so many bits has slots are few.
_FEW_BITS = 19
# Fewer numbers are sorted in less time than such a table takes to be made.
_MANY = 1 << 17
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class Rows(NamedTuple):
    """Occurrences of cells: cell c has those from ``offsets[c]`` to ``offsets[c + 1] - 1``.

    Row i of ``codes`` orders occurrence i in its cell; ``weights`` says how often it occurs, and is
    empty where that does not matter.
    """

    offsets: Ints
    codes: Ints
    weights: Ints

    @property
    def sizes(self) -> Ints:
        """How many occurrences each cell has."""
        return np.diff(self.offsets)


class Ranges(NamedTuple):
    """Cells as ranges of occurrences: cell c has the ranges from ``firsts[c]`` on.

    Range r has the occurrences from ``lows[r]`` to ``highs[r] - 1``.
    """

    firsts: Ints
    lows: Ints
    highs: Ints

    @classmethod
    def of(cls, offsets: Ints) -> Ranges:
        """A range for each cell."""
        return cls(np.arange(offsets.size), offsets[:-1], offsets[1:])

    @property
    def size(self) -> int:
        """How many occurrences all cells have together."""
        return int((self.highs - self.lows).sum())

    def offsets(self) -> Ints:
        """How many occurrences come before each cell, if those of all lie behind one another."""
        found: Ints = np.concatenate(([0], np.cumsum(self.highs - self.lows)))[self.firsts]
        return found

    def between(self, first: int, last: int) -> Ranges:
        """Some of the cells."""
        low, high = self.firsts[[first, last]].tolist()
        firsts = self.firsts[first : last + 1] - low
        return Ranges(firsts, self.lows[low:high], self.highs[low:high])


NO_WEIGHTS = np.empty(0, np.int64)


def rank_rows(codes: Ints) -> tuple[Ints, Ints]:
    """The rank of each row among the different ones, and these in order."""
    numbers, span = np.zeros(len(codes), np.int64), 1
    for column in codes.T:
        ranks, distinct = _column_ranks(column)
        if span * distinct.size >= _WORD:
            numbers, found = _column_ranks(numbers)
            span = found.size
        numbers, span = numbers * distinct.size + ranks, span * distinct.size
    ranks, distinct = _column_ranks(numbers)
    firsts = np.empty(distinct.size, np.int64)
    firsts[ranks] = np.arange(ranks.size)
    return ranks, codes[firsts]


def _column_ranks(numbers: Ints) -> tuple[Ints, Ints]:
    """The rank of each number among the different ones, and these in order."""
    low, high = int(numbers.min(initial=0)), int(numbers.max(initial=0))
    if high - low < _DENSE * numbers.size:
        held = np.zeros(high - low + 1, np.bool_)
        held[numbers - low] = True
        return (np.cumsum(held) - 1)[numbers - low], np.flatnonzero(held) + low
    return _ranked(numbers)


def _ranked(numbers: Ints) -> tuple[Ints, Ints]:
    """The rank of each number among the different ones, and these in order.

    Few different numbers are told apart by a table of them, which is much faster than sorting all.
    """
    places, found = np.empty(0, np.int64), np.empty(0, np.int64)
    if numbers.size >= _MANY:
        places, found = number_apart(_plain(numbers), _FEW_BITS)
    order = np.argsort(found if found.size else numbers)
    ranks = np.empty(order.size, np.int64)
    if found.size:
        ranks[order] = np.arange(order.size)
        return ranks[places], found[order]
    ascending = numbers[order]
    fresh = np.ones(order.size, np.bool_)
    fresh[1:] = ascending[1:] != ascending[:-1]
    ranks[order] = np.cumsum(fresh) - 1
    return ranks, ascending[fresh]


def _plain(numbers: Ints) -> Ints:
    """Numbers as kernels take them: they are compiled once more for arrays of another kind."""
    return numbers if numbers.flags.writeable and numbers.flags.c_contiguous else numbers.copy()


@compiled
def number_apart(numbers: Ints, bits: int) -> tuple[Ints, Ints]:
    """A number for each different number, in order of appearance, and these; none if too many.

    A table of two to the power of so many slots holds half as many.
    """
    size = np.int64(1) << bits
    slots, found = np.full(size, -1, np.int32), np.empty(size >> 1, np.int64)
    out = np.empty(numbers.size, np.int64)
    many = 0
    for i in range(numbers.size):
        number = numbers[i]
        at = np.int64((np.uint64(number) * _GOLDEN) >> np.uint64(64 - bits))
        while slots[at] >= 0 and found[slots[at]] != number:
            at = (at + 1) & (size - 1)
        if slots[at] < 0:
            if many == found.size:
                return out[:0], found[:0]
            slots[at], found[many] = many, number
            many += 1
        out[i] = slots[at]
    return out, found[:many]


def spread(lows: Ints, offsets: Ints) -> Ints:
    """The places of ranges one behind the other: range i begins at `lows[i]`.

    >>> spread(np.array([5, 2]), np.array([0, 2, 5])).tolist()
    [5, 6, 2, 3, 4]
    """
    return np.arange(offsets[-1]) + np.repeat(lows - offsets[:-1], np.diff(offsets))


def gathered(rows: Rows, lows: Ints, highs: Ints, cells: Ints, size: int) -> Rows:
    """Ranges of occurrences as those of cells, several of which may go to one."""
    if rows.codes.shape[1] == 1:
        places = _plain(lows), _plain(highs), _plain(cells)
        offsets, codes, weights = gather_cells(
            *places, _plain(rows.codes[:, 0]), _plain(rows.weights), size
        )
        return Rows(offsets, codes.reshape(-1, 1), weights)
    kept = np.flatnonzero((cells >= 0) & (highs > lows))
    lows, highs, cells = lows[kept], highs[kept], cells[kept]
    offsets = np.concatenate(([0], np.cumsum(highs - lows)))
    at = spread(lows, offsets)
    codes = rows.codes[at]
    weights = rows.weights[at] if len(rows.weights) else NO_WEIGHTS
    if cells.size and not np.all(cells[1:] > cells[:-1]):
        return sorted_rows(np.repeat(cells, np.diff(offsets)), codes, weights, size)
    # Ranges that may span several cells are sorted in each of those only.
    if is_sorted(codes, offsets):
        sizes = np.zeros(size + 1, np.int64)
        sizes[cells + 1] = np.diff(offsets)
        return Rows(np.cumsum(sizes), codes, weights)
    return sorted_rows(np.repeat(cells, np.diff(offsets)), codes, weights, size)


def sorted_rows(cells: Ints, codes: Ints, weights: Ints, size: int) -> Rows:
    """Occurrences in any order as those of cells, each once."""
    if codes.shape[1] == 1:
        numbers, low, distinct = codes[:, 0], int(codes.min(initial=0)), None
        span = int(codes.max(initial=0)) - low + 1
        if span * size >= _WORD:
            numbers, distinct = _ranked(numbers)
            low, span = 0, distinct.size
        words = cells * span + (numbers - low)
        if not weights.size or weights.max() == 1 == weights.min():
            words.sort()
            cells, numbers = np.divmod(words, span)
            numbers = numbers + low if distinct is None else distinct[numbers]
            return united_rows(cells, numbers[:, None], weights, size)
        order = np.argsort(words)
    else:
        order = np.lexsort((*codes.T[::-1], cells))
    weights = weights[order] if weights.size else weights
    return united_rows(cells[order], codes[order], weights, size)


def united_rows(cells: Ints, codes: Ints, weights: Ints, size: int) -> Rows:
    """Sorted occurrences, those that are equal put together."""
    fresh = np.ones(cells.size, np.bool_)
    fresh[1:] = (cells[1:] != cells[:-1]) | (codes[1:] != codes[:-1]).any(axis=1)
    begins = np.flatnonzero(fresh)
    if weights.size:
        weights = np.add.reduceat(weights, begins) if begins.size else weights
    sizes = np.bincount(cells[begins], minlength=size)
    return Rows(np.concatenate(([0], np.cumsum(sizes))), codes[begins], weights)


@compiled
def is_sorted(codes: Ints, offsets: Ints) -> bool:
    """Whether the rows of every range ascend."""
    for cell in range(offsets.size - 1):
        for i in range(offsets[cell] + 1, offsets[cell + 1]):
            if _compare(codes, i - 1, codes, i) >= 0:
                return False
    return True


@compiled
def _compare(a: Ints, i: int, b: Ints, j: int) -> int:
    for k in range(a.shape[1]):
        if a[i, k] != b[j, k]:
            return -1 if a[i, k] < b[j, k] else 1
    return 0


@compiled
def merge_rows(
    offsets: Ints,
    codes: Ints,
    weights: Ints,
    their_offsets: Ints,
    their_codes: Ints,
    their_weights: Ints,
    weighted: bool,
) -> tuple[Ints, Ints, Ints]:
    """The occurrences of two columns, cell by cell; those in both are one, with both weights."""
    total = codes.shape[0] + their_codes.shape[0]
    found = np.empty((total, codes.shape[1]), np.int64)
    sums = np.empty(total if weighted else 0, np.int64)
    ends = np.zeros(offsets.size, np.int64)
    at = 0
    for cell in range(offsets.size - 1):
        i, j = offsets[cell], their_offsets[cell]
        while i < offsets[cell + 1] or j < their_offsets[cell + 1]:
            if i == offsets[cell + 1]:
                order = 1
            elif j == their_offsets[cell + 1]:
                order = -1
            else:
                order = _compare(codes, i, their_codes, j)
            source, place = (codes, i) if order <= 0 else (their_codes, j)
            for k in range(codes.shape[1]):
                found[at, k] = source[place, k]
            if weighted:
                sums[at] = (weights[i] if order <= 0 else 0) + (
                    their_weights[j] if order >= 0 else 0
                )
            i += order <= 0
            j += order >= 0
            at += 1
        ends[cell + 1] = at
    return ends, found[:at].copy(), sums[:at].copy() if weighted else sums


@compiled
def gather_cells(
    lows: Ints, highs: Ints, cells: Ints, codes: Ints, weights: Ints, size: int
) -> tuple[Ints, Ints, Ints]:
    """Ranges of occurrences as those of so many cells, in order and each once; -1 is no cell.

    Ranges are in order, or are sorted: what comes in order already takes no longer than a copy.
    """
    offsets = np.zeros(size + 1, np.int64)
    for i in range(cells.size):
        if cells[i] >= 0:
            offsets[cells[i] + 1] += highs[i] - lows[i]
    for cell in range(size):
        offsets[cell + 1] += offsets[cell]
    weighted = weights.size > 0
    found = np.empty(offsets[size], np.int64)
    sums = np.empty(offsets[size] if weighted else 0, np.int64)
    ends = offsets[:-1].copy()
    for i in range(cells.size):
        if cells[i] >= 0:
            first, many = ends[cells[i]], highs[i] - lows[i]
            found[first : first + many] = codes[lows[i] : highs[i]]
            if weighted:
                sums[first : first + many] = weights[lows[i] : highs[i]]
            ends[cells[i]] += many
    longest, runs = 0, np.ones(size, np.bool_)
    for cell in range(size):
        for i in range(offsets[cell] + 1, offsets[cell + 1]):
            if found[i] <= found[i - 1]:
                runs[cell] = False
                longest = max(longest, offsets[cell + 1] - offsets[cell])
                break
    if longest == 0:
        return offsets, found, sums
    spare = np.empty((2, longest), np.int64)
    loads = np.empty((2, longest if weighted else 0), np.int64)
    bounds = np.empty(longest + 1, np.int64)
    at = np.int64(0)
    for cell in range(size):
        first, last = offsets[cell], offsets[cell + 1]
        offsets[cell] = at
        if runs[cell]:
            for i in range(first, last):
                found[at] = found[i]
                if weighted:
                    sums[at] = sums[i]
                at += 1
            continue
        side, many = _merge_sort(found, sums, first, last, spare, loads, bounds)
        for i in range(many):
            found[at] = spare[side, i]
            if weighted:
                sums[at] = loads[side, i]
            at += 1
    offsets[size] = at
    return offsets, found[:at].copy(), sums[:at].copy() if weighted else sums


@compiled
def _merge_sort(
    codes: Ints, weights: Ints, first: int, last: int, spare: Ints, loads: Ints, bounds: Ints
) -> tuple[np.int64, np.int64]:
    """Sort some occurrences into one side of the spare room; return which, and how many differ.

    Runs that ascend already are merged two by two, as often as it takes; equal ones become one.
    """
    weighted = weights.size > 0
    runs = np.int64(0)
    for i in range(first, last):
        spare[0, i - first] = codes[i]
        if weighted:
            loads[0, i - first] = weights[i]
        if i == first or codes[i] <= codes[i - 1]:
            bounds[runs] = i - first
            runs += 1
    bounds[runs] = last - first
    side = np.int64(0)
    while runs > 1:
        at, merged = np.int64(0), np.int64(0)
        for run in range(0, runs, 2):
            i, middle = bounds[run], bounds[run + 1]
            j, end = middle, bounds[run + 2 if run + 2 < runs else runs]
            bounds[merged] = at
            merged += 1
            while i < middle or j < end:
                lower = j == end or (i < middle and spare[side, i] <= spare[side, j])
                upper = i == middle or (j < end and spare[side, j] <= spare[side, i])
                spare[1 - side, at] = spare[side, i] if lower else spare[side, j]
                if weighted:
                    loads[1 - side, at] = (loads[side, i] if lower else 0) + (
                        loads[side, j] if upper else 0
                    )
                i += lower
                j += upper
                at += 1
        bounds[merged] = at
        runs, side = merged, 1 - side
    return side, bounds[1]
