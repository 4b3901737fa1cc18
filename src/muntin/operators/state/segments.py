"""The rows of one input of a join: immutable segments, sorted by key, dropped whole.

Rows lie in partitions by their end, as in a calendar queue, so that expiry looks at no row. In a
partition, segments are merged as they grow, and into one once rows go to later partitions: a probe
meets few of them. Each has a directory of its hashes by their leading bits, and a bit for each
value of some more, so that a probe looks at a handful of entries, whatever the size of a segment,
and mostly at one bit where there is nothing to find.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from muntin._compiled import compiled
from muntin._typing import Ints, Words
from muntin.operators.rows import ALWAYS, NEVER, NONE, Rows, concat

# A window is cut into so many partitions: more rows would be kept beyond their end with fewer.
_CUTS = 8
# Beyond so many partitions they become twice as wide: a probe should not meet too many segments.
_PARTITIONS = 32
_NO_PARTITION = NEVER
# A partition that gets no more rows becomes one segment, unless there is less than this part of
# the largest to add to it: so every row is moved a limited number of times.
_WORTH = 8


Places = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Segment:
    """Rows as they came, and an index of them by the hashes of their keys, then their starts.

    ``order`` says where in ``rows`` each entry of the index stands, ``heads`` where the entries
    begin whose hashes have certain leading bits, ``marks`` which of more leading bits some hash
    has. No row lives longer than ``longest``; all live
    within ``[first, last)``.
    """

    hashes: Ints
    start: Ints
    end: Ints
    order: Ints
    heads: Places
    marks: Words
    rows: Rows
    first: int
    last: int
    longest: int

    @classmethod
    def of(cls, hashes: Ints, rows: Rows) -> Segment:
        """Rows with the hashes of their keys."""
        order = order_of(hashes, rows.start)
        return cls._indexed(hashes[order], rows.start[order], rows.end[order], order, rows)

    @classmethod
    def _indexed(cls, hashes: Ints, start: Ints, end: Ints, order: Ints, rows: Rows) -> Segment:
        heads, marks = directory(hashes, max(hashes.size.bit_length() - 2, 2))
        return cls(hashes, start, end, order, heads, marks, rows, *_bounds(start, end))

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def keys(self) -> int:
        """How many keys it holds, as far as hashes tell them apart; at least 1."""
        return 1 + int(np.count_nonzero(self.hashes[1:] != self.hashes[:-1]))

    def in_order(self) -> Segment:
        """The segment with its rows in the order of the index: probes then read them in order."""
        return replace(self, rows=self.rows.take(self.order), order=np.arange(len(self)))

    def pick(self, places: Ints) -> Segment:
        """Some entries of the index, and their rows."""
        if places.size == len(self):
            return self
        rows = self.rows.take(self.order[places])
        order = np.arange(places.size)
        return self._indexed(self.hashes[places], self.start[places], self.end[places], order, rows)


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
        self.width = max(lifetime // _CUTS, 1)
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
        touched = np.unique(numbers).tolist()
        for number in touched:
            self._put(number, segment.pick(places[numbers == number]))
        self._seal(touched)
        while sum(each != _NO_PARTITION for each in self.partitions) > _PARTITIONS:
            self._widen()

    def _numbers(self, ends: Ints) -> Ints:
        return np.where(ends >= NEVER, _NO_PARTITION, (ends - 1) // self.width)

    def _put(self, number: int, segment: Segment) -> None:
        held = self.partitions.setdefault(number, [])
        held.append(segment)
        # All that a cascade of merges would put together is merged at once.
        first, size = len(held) - 1, len(segment)
        while first and len(held[first - 1]) < 2 * size:
            first -= 1
            size += len(held[first])
        if first < len(held) - 1:
            held[first:] = [merged(held[first:])]

    def _seal(self, touched: list[int]) -> None:
        """Make one segment of each partition that rows no longer go to."""
        for number in self.partitions.keys() - set(touched):
            held = self.partitions[number]
            if len(held) > 1 and _WORTH * sum(map(len, held[1:])) >= len(held[0]):
                self.partitions[number] = [merged(held)]

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


def merged(segments: list[Segment]) -> Segment:
    """The rows of several segments as one."""
    begins = begins_of(segments)
    hashes = np.empty(sum(map(len, segments)), np.int64)
    for begin, each in zip(begins.tolist(), segments, strict=True):
        hashes[each.order + begin] = each.hashes
    return Segment.of(hashes, concat([each.rows for each in segments])).in_order()


def matches(segment: Segment, hashes: Ints, start: Ints, end: Ints) -> Matches:
    """Rows of a segment that have the hash of an asking row and live together with it.

    Asking rows are in order of their hashes.
    """
    if not hashes.size or not len(segment):
        return Matches(NONE, NONE, NONE, NONE)
    kept = segment.hashes, segment.start, segment.end
    begins, counts, total = count_matches(
        hashes, start, end, *kept, segment.heads, segment.marks, segment.longest
    )
    if not total:
        return Matches(NONE, NONE, NONE, NONE)
    return Matches(*fill_matches(begins, counts, total, start, end, *kept[1:], segment.order))


def lives_within(segment: Segment, first: int, last: int) -> bool:
    """Whether some row of a segment may be alive between two instants."""
    return segment.first < last and segment.last > first


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
# A bit stands for so many more leading bits than an entry of the directory.
_MORE = 5


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
def _from(values: Ints, low: int, high: int, bound: int) -> int:
    """The first place from ``low`` to before ``high`` with a value of at least the bound."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] >= bound:
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def directory(hashes: Ints, bits: int) -> tuple[Places, Words]:
    """Where the sorted hashes begin that have each value of their leading bits, and the end.

    Then a bit for each value of the leading bits with some more, set where a hash has it.
    """
    heads = np.empty((1 << bits) + 1, np.int32)
    marks = np.zeros(1 << (bits + _MORE - 6), np.uint64)
    shift = np.uint64(64 - bits - _MORE)
    at = 0
    for i in range(hashes.size):
        lead = (np.uint64(hashes[i]) ^ _SIGN) >> shift
        marks[lead >> np.uint64(6)] |= np.uint64(1) << (lead & np.uint64(63))
        while at <= np.int64(lead >> np.uint64(_MORE)):
            heads[at] = i
            at += 1
    heads[at:] = hashes.size
    return heads, marks


@compiled
def _run(hashes: Ints, heads: Places, bucket: np.uint64, wanted: int) -> tuple[int, int]:
    """From where to where sorted hashes are the wanted one."""
    low: int = np.int64(heads[bucket])  # type: ignore[assignment]
    stop: int = np.int64(heads[bucket + np.uint64(1)])  # type: ignore[assignment]
    if stop - low > _FEW:
        low = _from(hashes, low, stop, wanted)
        return low, _after(hashes, low, stop, wanted)
    while low < stop and hashes[low] < wanted:
        low += 1
    high = low
    while high < stop and hashes[high] == wanted:
        high += 1
    return low, high


@compiled
def count_matches(
    hashes: Ints,
    start: Ints,
    end: Ints,
    kept_hashes: Ints,
    kept_start: Ints,
    kept_end: Ints,
    heads: Places,
    marks: Words,
    longest: int,
) -> tuple[Ints, Ints, int]:
    """Where the rows that can live together with each asking row begin, how many do, and all."""
    begins = np.empty(hashes.size, np.int64)
    counts = np.zeros(hashes.size, np.int64)
    bits = _MORE
    while (1 << (bits - _MORE)) < heads.size - 1:
        bits += 1
    shift = np.uint64(64 - bits)
    low = high = total = 0
    for i in range(hashes.size):
        if i == 0 or hashes[i] != hashes[i - 1]:
            lead = (np.uint64(hashes[i]) ^ _SIGN) >> shift
            low = high = 0
            if marks[lead >> np.uint64(6)] >> (lead & np.uint64(63)) & np.uint64(1):
                low, high = _run(kept_hashes, heads, lead >> np.uint64(_MORE), hashes[i])
        at = low
        if high - low > 8:
            at = _after(kept_start, low, high, start[i] - longest)
        begins[i] = at
        while at < high and kept_start[at] < end[i]:
            if kept_end[at] > start[i]:
                counts[i] += 1
            at += 1
        total += counts[i]
    return begins, counts, total


@compiled
def fill_matches(
    begins: Ints,
    counts: Ints,
    total: int,
    start: Ints,
    end: Ints,
    kept_start: Ints,
    kept_end: Ints,
    order: Ints,
) -> tuple[Ints, Ints, Ints, Ints]:
    """The pairs that were counted: who asks, where the row stands, and when the pair lives."""
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
