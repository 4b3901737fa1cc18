"""The rows of one input of a join: immutable segments, sorted by key, dropped whole.

Rows lie in partitions by their end, as in a calendar queue, so that expiry looks at no row. In a
partition, segments are merged as they grow: a probe meets a logarithmic number of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Ints, Words
from muntin.operators.rows import ALWAYS, NEVER, NONE, Rows, concat

# Beyond so many partitions they become twice as wide: a probe should not meet too many segments.
_PARTITIONS = 32
_NO_PARTITION = NEVER


@dataclass(frozen=True)
class Segment:
    """Rows as they came, and an index of them by the hashes of their keys, then their starts.

    ``order`` says where in ``rows`` each entry of the index stands. No row lives longer than
    ``longest``; all live within ``[first, last)``.
    """

    hashes: Ints
    start: Ints
    end: Ints
    order: Ints
    rows: Rows
    first: int
    last: int
    longest: int

    @classmethod
    def of(cls, hashes: Ints, rows: Rows) -> Segment:
        """Rows with the hashes of their keys."""
        order = order_of(hashes, rows.start)
        hashes, start, end = hashes[order], rows.start[order], rows.end[order]
        return cls(hashes, start, end, order, rows, *_bounds(start, end))

    def __len__(self) -> int:
        return len(self.rows)

    def pick(self, places: Ints) -> Segment:
        """Some entries of the index, and their rows."""
        if places.size == len(self):
            return self
        start, end = self.start[places], self.end[places]
        rows = self.rows.take(self.order[places])
        order = np.arange(places.size)
        return Segment(self.hashes[places], start, end, order, rows, *_bounds(start, end))


def _bounds(start: Ints, end: Ints) -> tuple[int, int, int]:
    """The first start, the last end and the longest life."""
    if not start.size:
        return NEVER, ALWAYS, 0
    return int(start.min()), int(end.max()), int((end - start).max())


@dataclass(frozen=True)
class Matches:
    """Pairs of a row that asked and a row that is kept, by their places, and their lifetimes."""

    asking: Ints
    kept: Ints
    start: Ints
    end: Ints


class Segments:
    """The rows of one input that may still meet others.

    Args:
        lifetime: The longest that rows with an end live.
    """

    STATE = ("width", "partitions")

    def __init__(self, lifetime: int) -> None:
        self.width = max(lifetime // 8, 1)
        self.partitions: dict[int, list[Segment]] = {}

    def __len__(self) -> int:
        return sum(len(segment) for segment in self.all())

    def all(self) -> list[Segment]:
        """All segments."""
        return [segment for segments in self.partitions.values() for segment in segments]

    def add(self, segment: Segment, watermark: int) -> None:
        """Keep those rows of a segment that have not ended at the watermark."""
        places = np.flatnonzero(segment.end > watermark)
        numbers = self._numbers(segment.end[places])
        for number in np.unique(numbers).tolist():
            self._put(number, segment.pick(places[numbers == number]))
        while sum(each != _NO_PARTITION for each in self.partitions) > _PARTITIONS:
            self._widen()

    def _numbers(self, ends: Ints) -> Ints:
        return np.where(ends >= NEVER, _NO_PARTITION, (ends - 1) // self.width)

    def _put(self, number: int, segment: Segment) -> None:
        held = self.partitions.setdefault(number, [])
        held.append(segment)
        while len(held) > 1 and len(held[-2]) < 2 * len(held[-1]):
            second, first = held.pop(), held.pop()
            held.append(merged(first, second))

    def _widen(self) -> None:
        self.width *= 2
        before, self.partitions = self.partitions, {}
        for number, segments in sorted(before.items()):
            wider = number if number == _NO_PARTITION else number // 2
            for segment in segments:
                self._put(wider, segment)

    def evict(self, watermark: int) -> None:
        """Drop the partitions whose rows have all ended at the watermark."""
        over = [number for number in self.partitions if (number + 1) * self.width <= watermark]
        for number in over:
            if number != _NO_PARTITION:
                del self.partitions[number]


def merged(first: Segment, second: Segment) -> Segment:
    """The rows of two segments as one."""
    hashes = np.empty(len(first) + len(second), np.int64)
    hashes[first.order] = first.hashes
    hashes[second.order + len(first)] = second.hashes
    return Segment.of(hashes, concat([first.rows, second.rows]))


def matches(segment: Segment, hashes: Ints, start: Ints, end: Ints) -> Matches:
    """Rows of a segment that have the hash of an asking row and live together with it.

    Asking rows are in order of their hashes.
    """
    if not hashes.size or not len(segment):
        return Matches(NONE, NONE, NONE, NONE)
    if segment.first >= end.max() or segment.last <= start.min():
        return Matches(NONE, NONE, NONE, NONE)
    begins, counts = count_matches(
        hashes, start, end, segment.hashes, segment.start, segment.end, segment.longest
    )
    return Matches(
        *fill_matches(begins, counts, start, end, segment.start, segment.end, segment.order)
    )


def holds(segments: list[Segment], hashes: Ints) -> Ints:
    """Which sorted hashes some segment holds, by their places."""
    found = np.zeros(hashes.size, np.bool_)
    for segment in segments:
        places = np.searchsorted(segment.hashes, hashes)
        inside = places < len(segment)
        found[inside] |= segment.hashes[places[inside]] == hashes[inside]
    return np.flatnonzero(found)


def begins_of(segments: list[Segment]) -> Ints:
    """Where each segment begins when rows are counted through all of them."""
    sizes = np.array([len(segment) for segment in segments], np.int64)
    return np.cumsum(sizes) - sizes


_FEW = 32


def order_of(hashes: Ints, start: Ints) -> Ints:
    """The order of rows by hash, then by start; equal ones stay as they stand."""
    if hashes.size < _RADIX:
        order: Ints = np.lexsort((start, hashes))
        return order
    order = np.empty(hashes.size, np.int64)
    room = np.empty(hashes.size, np.int64)
    words = hashes.view(np.uint64) ^ _SIGN
    radix_pass(words, np.empty(0, np.int64), np.uint64(64 - 2 * _DIGIT), room)
    radix_pass(words, room, np.uint64(64 - _DIGIT), order)
    sort_runs(words, start, order, np.uint64(64 - 2 * _DIGIT))
    return order


# From so many rows on, two passes over the leading bits beat sorting by comparisons.
_RADIX = 1 << 13
_DIGIT = 11
_SIGN = np.uint64(1 << 63)


@compiled
def radix_pass(words: Words, before: Ints, shift: np.uint64, after: Ints) -> None:
    """Sort places by eleven bits of their words, equal ones as they stand in ``before``."""
    places = np.zeros(1 << _DIGIT, np.int64)
    mask = np.uint64((1 << _DIGIT) - 1)
    for i in range(words.size):
        places[(words[i] >> shift) & mask] += 1
    total = 0
    for digit in range(places.size):
        count = places[digit]
        places[digit] = total
        total += count
    for i in range(words.size):
        row = before[i] if before.size else i
        digit = (words[row] >> shift) & mask
        after[places[digit]] = row
        places[digit] += 1


@compiled
def sort_runs(words: Words, start: Ints, order: Ints, shift: np.uint64) -> None:
    """Bring rows that agree in their leading bits into order of word and start."""
    begin = 0
    while begin < order.size:
        end = begin + 1
        head = words[order[begin]] >> shift
        while end < order.size and words[order[end]] >> shift == head:
            end += 1
        if end - begin > _FEW:
            run = order[begin:end].copy()
            run = run[np.argsort(start[run], kind="mergesort")]
            run = run[np.argsort(words[run], kind="mergesort")]
            order[begin:end] = run
        else:
            for i in range(begin + 1, end):
                place = order[i]
                word, time = words[place], start[place]
                at = i
                while at > begin:
                    other = order[at - 1]
                    if words[other] < word or (words[other] == word and start[other] <= time):
                        break
                    order[at] = other
                    at -= 1
                order[at] = place
        begin = end


@compiled
def _after(values: Ints, low: int, high: int, bound: int) -> int:
    """The first place from ``low`` to before ``high`` with a value above the bound."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] > bound:
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def _leap(values: Ints, low: int, bound: int) -> int:
    """The first place from ``low`` on with a value of at least the bound, found in leaps."""
    step = 1
    high = low
    while high < values.size and values[high] < bound:
        low = high + 1
        high += step
        step *= 2
    high = min(high, values.size)
    while low < high:
        middle = (low + high) // 2
        if values[middle] < bound:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def count_matches(
    hashes: Ints,
    start: Ints,
    end: Ints,
    kept_hashes: Ints,
    kept_start: Ints,
    kept_end: Ints,
    longest: int,
) -> tuple[Ints, Ints]:
    """Where the rows that can live together with each asking row begin, and how many do."""
    begins = np.empty(hashes.size, np.int64)
    counts = np.zeros(hashes.size, np.int64)
    low = high = 0
    for i in range(hashes.size):
        if i == 0 or hashes[i] != hashes[i - 1]:
            low = _leap(kept_hashes, high, hashes[i])
            high = low
            while high < kept_hashes.size and kept_hashes[high] == hashes[i]:
                high += 1
        at = low
        if high - low > 8:
            at = _after(kept_start, low, high, start[i] - longest)
        begins[i] = at
        while at < high and kept_start[at] < end[i]:
            if kept_end[at] > start[i]:
                counts[i] += 1
            at += 1
    return begins, counts


@compiled
def fill_matches(
    begins: Ints,
    counts: Ints,
    start: Ints,
    end: Ints,
    kept_start: Ints,
    kept_end: Ints,
    order: Ints,
) -> tuple[Ints, Ints, Ints, Ints]:
    """The pairs that were counted: who asks, where the row stands, and when the pair lives."""
    total = counts.sum()
    asking = np.empty(total, np.int64)
    kept = np.empty(total, np.int64)
    starts = np.empty(total, np.int64)
    ends = np.empty(total, np.int64)
    at = 0
    for i in range(begins.size):
        place = begins[i]
        stop = at + counts[i]
        while at < stop:
            if kept_end[place] > start[i]:
                asking[at] = i
                kept[at] = order[place]
                starts[at] = max(start[i], kept_start[place])
                ends[at] = min(end[i], kept_end[place])
                at += 1
            place += 1
    return asking, kept, starts, ends
