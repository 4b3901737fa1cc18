"""Windows that move on: values enter at one end and leave at the other, and are counted meanwhile.

Windows of one query overlap and follow each other. Where each query has a predicate, and so
occurrences, of its own, no index would serve a second one; counters are kept instead, as many as
there are values, and brought from each window to the next.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.aggregates.columns.holistic.rows import Ranges

Int32s = npt.NDArray[np.int32]

# Counters are added up by so many, or their largest is known.
_ADDED, _KNOWN = 7, 6
# What windows count in all must fit a counter.
MOST_COUNTED = (1 << 31) - 1


def steps(begins: Ints, ends: Ints) -> int:
    """How many occurrences enter and leave while windows are gone through in this order."""
    sizes = ends - begins
    moved = np.abs(np.diff(begins)) + np.abs(np.diff(ends))
    return int(np.minimum(moved, sizes[1:] + sizes[:-1]).sum() + sizes[:1].sum())


def select_steps(size: int) -> int:
    """How many counters are looked at to find a value among so many."""
    return (size >> _ADDED) + (1 << _ADDED)


def heaviest_steps(size: int, most: int) -> int:
    """How many counters are looked at to find the most frequent of so many values."""
    return (size >> _KNOWN) + (1 << _KNOWN) * (1 + most // 2)


@compiled
def _add(
    counts: Int32s, sums: Int32s, ranks: Ints, weights: Ints, ranges: Ranges, first: int, last: int
) -> None:
    """Count the occurrences of ranges, and add counters up."""
    for place in range(first, last):
        for i in range(ranges.lows[place], ranges.highs[place]):
            counts[ranks[i]] += weights[i]
            sums[ranks[i] >> _ADDED] += weights[i]


@compiled
def _take(
    counts: Int32s, sums: Int32s, ranks: Ints, weights: Ints, ranges: Ranges, first: int, last: int
) -> None:
    """Take the occurrences of ranges off again."""
    for place in range(first, last):
        for i in range(ranges.lows[place], ranges.highs[place]):
            counts[ranks[i]] -= weights[i]
            sums[ranks[i] >> _ADDED] -= weights[i]


@compiled
def slide_select(
    ranges: Ranges,
    ranks: Ints,
    weights: Ints,
    lows: Ints,
    highs: Ints,
    windows: Ints,
    places: Ints,
    size: int,
) -> Ints:
    """The rank at a place among the sorted values of a window, for each pair of these."""
    counts = np.zeros(((size >> _ADDED) + 1) << _ADDED, np.int32)
    sums = np.zeros((size >> _ADDED) + 1, np.int32)
    found = np.zeros(windows.size, np.int64)
    first = last = 0
    for number in range(windows.size):
        window = windows[number]
        begin, end = ranges.firsts[lows[window]], ranges.firsts[highs[window]]
        if begin >= end:
            continue
        if begin >= last or end <= first:
            _take(counts, sums, ranks, weights, ranges, first, last)
            first = last = begin
        _add(counts, sums, ranks, weights, ranges, last, end)
        _add(counts, sums, ranks, weights, ranges, begin, first)
        _take(counts, sums, ranks, weights, ranges, end, last)
        _take(counts, sums, ranks, weights, ranges, first, begin)
        first, last = begin, end
        place, block = places[number], 0
        while place >= sums[block]:
            place -= sums[block]
            block += 1
        rank = block << _ADDED
        while place >= counts[rank]:
            place -= counts[rank]
            rank += 1
        found[number] = rank
    return found


@compiled
def _raise(
    counts: Int32s,
    tops: Int32s,
    labels: Int32s,
    weights: Ints,
    ranges: Ranges,
    first: int,
    last: int,
) -> None:
    """Count the occurrences of ranges, and raise the most that a counter may have."""
    for place in range(first, last):
        for i in range(ranges.lows[place], ranges.highs[place]):
            label = labels[i]
            count = counts[label] + weights[i]
            counts[label] = count
            tops[label >> _KNOWN] = max(tops[label >> _KNOWN], count)


@compiled
def _lower(
    counts: Int32s, labels: Int32s, weights: Ints, ranges: Ranges, first: int, last: int
) -> None:
    """Take the occurrences of ranges off again; the most that a counter may have stays."""
    for place in range(first, last):
        for i in range(ranges.lows[place], ranges.highs[place]):
            counts[labels[i]] -= weights[i]


@compiled
def slide_heaviest(
    ranges: Ranges,
    labels: Int32s,
    weights: Ints,
    ranks: Ints,
    lows: Ints,
    highs: Ints,
    floors: Ints,
    offsets: Ints,
) -> tuple[Ints, Ints, Ints]:
    """The most frequent values of each window, as many as there is room for from its offset on.

    Values go by labels, the most frequent of all first, so that those which are frequent in a
    window lie together; ``ranks`` are those of labels. Of 64 counters at a time the most that one
    of them may have is known, and only those are looked at that can have enough.
    """
    blocks = (ranks.size >> _KNOWN) + 1
    counts, tops = np.zeros(blocks << _KNOWN, np.int32), np.zeros(blocks, np.int32)
    best, numbers = np.empty(offsets[-1], np.int64), np.empty(offsets[-1], np.int64)
    sizes = np.zeros(lows.size, np.int64)
    first = last = 0
    for window in range(lows.size):
        begin, end = ranges.firsts[lows[window]], ranges.firsts[highs[window]]
        if begin >= end:
            continue
        if begin >= last or end <= first:
            _lower(counts, labels, weights, ranges, first, last)
            first = last = begin
        _raise(counts, tops, labels, weights, ranges, last, end)
        _raise(counts, tops, labels, weights, ranges, begin, first)
        _lower(counts, labels, weights, ranges, end, last)
        _lower(counts, labels, weights, ranges, first, begin)
        first, last = begin, end
        low, room, held = offsets[window], offsets[window + 1] - offsets[window], 0
        least = floors[window]
        for block in range(blocks if room else 0):
            if tops[block] < least:
                continue
            top = np.int32(0)
            for label in range(block << _KNOWN, (block + 1) << _KNOWN):
                count = counts[label]
                top = max(top, count)
                if count < least:
                    continue
                rank = ranks[label]
                if held == room:
                    if count == numbers[low + held - 1] and rank > best[low + held - 1]:
                        continue
                    held -= 1
                at = low + held
                while at > low and (
                    numbers[at - 1] < count or (numbers[at - 1] == count and best[at - 1] > rank)
                ):
                    best[at], numbers[at] = best[at - 1], numbers[at - 1]
                    at -= 1
                best[at], numbers[at] = rank, count
                held += 1
                if held == room:
                    least = max(least, numbers[low + held - 1])
            tops[block] = top
        sizes[window] = held
    return best, numbers, sizes
