"""The rows of one input of a join: immutable segments, sorted by key, dropped whole.

Rows lie in partitions by their end, as in a calendar queue, so that expiry looks at no row. In a
partition, segments are merged as they grow, and into one once rows go to later partitions: a probe
meets few of them. Each has a directory of its hashes by their leading bits, and a bit for each
value of some more, so that a probe looks at a handful of entries, whatever the size of a segment,
and mostly at one bit where there is nothing to find.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Bools, Ints, Words
from muntin.operators.rows import ALWAYS, NEVER, NONE, Rows, concat, take
from muntin.operators.state.probes import Places, count_matches, directory, fill_matches

# A window is cut into so many partitions: more rows would be kept beyond their end with fewer.
_CUTS = 8
# Beyond so many partitions they become twice as wide: a probe should not meet too many segments.
_PARTITIONS = 32
_NO_PARTITION = NEVER
# A partition that gets no more rows becomes one segment, unless there is less than this part of
# the largest to add to it: so every row is moved a limited number of times.
_WORTH = 8


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
        return replace(self, rows=self._taken(self.order, self.start, self.end),
                       order=np.arange(len(self)))  # fmt: skip

    def _taken(self, places: Ints, start: Ints, end: Ints) -> Rows:
        """Rows at some places, which have these lifetimes: one array serves rows and index."""
        rows = self.rows
        ids = start if rows.ids is rows.start else rows.ids[places]
        return Rows(take(rows.columns, places), ids, start, end)

    def pick(self, places: Ints) -> Segment:
        """Some entries of the index, and their rows."""
        if places.size == len(self):
            return self
        start, end = self.start[places], self.end[places]
        rows = self._taken(self.order[places], start, end)
        return self._indexed(self.hashes[places], start, end, np.arange(places.size), rows)


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

    @property
    def lasting(self) -> int:
        """How many rows have no end of their own."""
        return sum(map(len, self.partitions.get(_NO_PARTITION, ())))

    def sift(self, is_alive: Callable[[Ints], Bools]) -> None:
        """Drop the rows without an end of their own that have ended, by their ids."""
        held = self.partitions.pop(_NO_PARTITION, [])
        for segment in held:
            alive = is_alive(segment.rows.ids[segment.order])
            if alive.any():
                self._put(_NO_PARTITION, segment.pick(np.flatnonzero(alive)))

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


def order_of_codes(codes: Ints, most: int) -> Ints:
    """The order of rows by their codes, which are below ``most``; equal ones stay as they stand."""
    if codes.size < _RADIX:
        order: Ints = np.argsort(codes, kind="stable")
        return order
    words, order = codes.view(np.uint64), np.empty(0, np.int64)
    for shift in range(0, max(most - 1, 1).bit_length(), _DIGIT):
        after = np.empty(codes.size, np.int64)
        radix_pass(words, order, np.uint64(shift), after)
        order = after
    return order


# From so many rows on, two passes over the leading bits beat sorting by comparisons.
_RADIX = 1 << 13
_DIGIT = 11
# Runs that are no longer are sorted by insertion.
_FEW = 32
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
