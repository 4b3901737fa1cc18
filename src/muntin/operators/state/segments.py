"""The rows of one input of a join: immutable segments, sorted by key, dropped whole.

Rows lie in partitions by their end, as in a calendar queue, so that expiry looks at no row. In a
partition, small segments are merged as they come, and large ones many at a time: a probe meets few
of them, and a row is moved few times, however long it lives. Each has a directory of its hashes by
their leading bits, and a bit for each value of some more, so that a probe looks at a handful of
entries, whatever the size of a segment, and mostly at one bit where there is nothing to find.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from muntin._typing import Bools, Ints, Words
from muntin.operators.rows import (
    ALWAYS,
    NEVER,
    NONE,
    Rows,
    concat,
    empty_ints,
    in_threads,
    take_ints,
)
from muntin.operators.state.probes import Places, bounds, count_matches, directory, fill_matches
from muntin.operators.state.radix_sort import order_of, order_of_times

# A window is cut into so many partitions: more rows would be kept beyond their end with fewer.
_CUTS = 8
# Beyond so many partitions they become twice as wide: a probe should not meet too many segments.
_PARTITIONS = 32
_NO_PARTITION = NEVER
# A segment of fewer rows is small: it costs more to look at than to merge. Of larger ones, so many
# of about one size are merged at once: files hold them, and what is merged is written again.
_SMALL = 1 << 13
_FAN_OUT = 16
# Asking rows are cut into so many parts per thread, as some have more to find than others; a part
# has at least so many.
_PARTS, _PART = 4, 1 << 14


@dataclass(frozen=True)
class Segment:
    """Rows in order of the hashes of their keys, then of their starts, and a directory of them.

    ``heads`` says where the rows begin whose hashes have certain leading bits, ``marks`` which of
    more leading bits some hash has. No row lives longer than ``longest``; all live within
    ``[first, last)``. Where somebody asks which rows end, ``by_end`` is their order by that.
    """

    hashes: Ints
    heads: Places
    marks: Words
    rows: Rows
    first: int
    last: int
    longest: int
    by_end: Places = field(default_factory=lambda: np.empty(0, np.int32))

    @classmethod
    def of(cls, hashes: Ints, rows: Rows) -> Segment:
        """Rows in any order, with the hashes of their keys."""
        if (hashes[1:] > hashes[:-1]).all():
            return cls._indexed(hashes, rows.owned())
        order, hashes = order_of(hashes, rows.start)
        return cls._indexed(hashes, rows.take(order))

    @classmethod
    def _indexed(cls, hashes: Ints, rows: Rows) -> Segment:
        heads, marks = directory(hashes, max(hashes.size.bit_length() - 2, 2))
        return cls(hashes, heads, marks, rows, *bounds(rows.start, rows.end))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def start(self) -> Ints:
        """When each row begins."""
        return self.rows.start

    @property
    def end(self) -> Ints:
        """When each row ends."""
        return self.rows.end

    @cached_property
    def keys(self) -> int:
        """How many keys it holds, as far as hashes tell them apart; at least 1."""
        return 1 + int(np.count_nonzero(self.hashes[1:] != self.hashes[:-1]))

    def indexed_by_end(self) -> Segment:
        """The segment with the order of its rows by their ends."""
        if self.by_end.size == len(self):
            return self
        return replace(self, by_end=order_of_times(self.end).astype(np.int32))

    def resized(self, lifetime: int) -> Segment:
        """The segment with rows that all live that long."""
        end = np.minimum(self.start + lifetime, NEVER)
        return self._indexed(self.hashes, replace(self.rows, end=end))

    def pick(self, places: Ints) -> Segment:
        """Some of the rows."""
        if places.size == len(self):
            return self
        return self._indexed(take_ints(self.hashes, places), self.rows.take(places))


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
        cuts: As many partitions as that is cut into.
        fan_out: As many large segments of a partition as are merged at once.
    """

    STATE = ("width", "partitions")

    def __init__(self, lifetime: int, cuts: int = _CUTS, fan_out: int = _FAN_OUT) -> None:
        self.width = max(lifetime // cuts, 1)
        self._fan_out = fan_out
        self.partitions: dict[int, list[Segment]] = {}

    def __len__(self) -> int:
        return sum(len(segment) for segment in self.all())

    def all(self) -> list[Segment]:
        """All segments."""
        return [segment for segments in self.partitions.values() for segment in segments]

    def keep(self, segment: Segment, until: int) -> None:
        """Take in those rows of a segment that end after an instant; drop what ended by then."""
        if len(segment):
            self.add(segment, until)
        self.evict(until)

    def add(self, segment: Segment, watermark: int) -> None:
        """Keep those rows of a segment that have not ended at the watermark."""
        places = np.flatnonzero(segment.end > watermark)
        numbers = self._numbers(segment.end[places])
        touched = _each_once(numbers)
        for number in touched:
            self._put(number, segment.pick(places[numbers == number]))
        self._settle(touched)

    def _settle(self, touched: list[int]) -> None:
        """Put partitions in order once rows went to some of them."""
        self._seal(touched)
        while sum(each != _NO_PARTITION for each in self.partitions) > _PARTITIONS:
            self._widen()

    def _numbers(self, ends: Ints) -> Ints:
        return np.where(ends >= NEVER, _NO_PARTITION, (ends - 1) // self.width)

    def _put(self, number: int, segment: Segment) -> None:
        held = self.partitions.setdefault(number, [])
        held.append(segment)
        first = first_to_merge([len(each) for each in held], self._fan_out)
        if first < len(held) - 1:
            held[first:] = [self._merged(held[first:])]

    def _merged(self, parts: list[Segment]) -> Segment:
        return merged(parts)

    def _seal(self, touched: list[int]) -> None:
        """Merge what is small in partitions that rows no longer go to."""
        for number in self.partitions.keys() - set(touched):
            held = self.partitions[number]
            small = sum(len(each) < _SMALL for each in held)
            if small > 1:
                # The latest are the smallest: a large one never stands behind a small one for long.
                held[-small:] = [self._merged(held[-small:])]

    def _widen(self) -> None:
        self.width *= 2
        before, self.partitions = self.partitions, {}
        for number, segments in sorted(before.items()):
            wider = number if number == _NO_PARTITION else number // 2
            for segment in segments:
                self._put(wider, segment)

    def resized(self, lifetime: int) -> Segments:
        """The same rows where all live that long; ``NEVER`` is for ever."""
        found = Segments(lifetime if lifetime < NEVER else 0)
        for segment in self.all():
            found.add(segment.resized(lifetime), ALWAYS)
        return found

    @property
    def lasting(self) -> int:
        """How many rows have no end of their own."""
        return sum(map(len, self.partitions.get(_NO_PARTITION, ())))

    def sift(self, is_alive: Callable[[Ints], Bools]) -> None:
        """Drop the rows without an end of their own that have ended, by their ids."""
        held = self.partitions.pop(_NO_PARTITION, [])
        for segment in held:
            alive = is_alive(segment.rows.ids)
            if alive.any():
                self._put(_NO_PARTITION, segment.pick(np.flatnonzero(alive)))

    def evict(self, watermark: int) -> None:
        """Drop the partitions whose rows have all ended at the watermark."""
        over = [number for number in self.partitions if (number + 1) * self.width <= watermark]
        for number in over:
            if number != _NO_PARTITION:
                del self.partitions[number]


def _each_once(numbers: Ints) -> list[int]:
    """The numbers that occur, in order; few partitions lie close together."""
    if not numbers.size:
        return []
    first, last = int(numbers.min()), int(numbers.max())
    close = last - first <= numbers.size
    found = first + np.flatnonzero(np.bincount(numbers - first)) if close else np.unique(numbers)
    return [int(each) for each in found]


def first_to_merge(sizes: list[int], fan_out: int = _FAN_OUT) -> int:
    """The first of the segments at the end of a partition that are to be one; the last, if none.

    All that a cascade of merges would put together is merged at once.

    >>> first_to_merge([6000, 1500, 1000])
    1
    >>> first_to_merge([20_000] * 15), first_to_merge([20_000] * 16)
    (14, 0)
    """
    first, size = len(sizes) - 1, sizes[-1]
    while first and sizes[first - 1] < min(2 * size, _SMALL):
        first -= 1
        size += sizes[first]
    while True:
        alike = first
        while alike and _tier(sizes[alike - 1], fan_out) <= _tier(size, fan_out):
            alike -= 1
        if first - alike + 1 < fan_out:
            return first
        first, size = alike, sum(sizes[alike:])


def _tier(size: int, fan_out: int) -> int:
    """How often segments of a size were merged from many, about."""
    return 0 if size < fan_out * _SMALL else 1 + _tier(size // fan_out, fan_out)


def merged(segments: list[Segment]) -> Segment:
    """The rows of several segments as one."""
    hashes = np.concatenate([each.hashes for each in segments])
    return Segment.of(hashes, concat([each.rows for each in segments]))


def matches(segment: Segment, hashes: Ints, start: Ints, end: Ints, threads: int = 1) -> Matches:
    """Rows of a segment that have the hash of an asking row and live together with it.

    Asking rows are in order of their hashes. Each thread takes some of them.
    """
    count = hashes.size
    begins, counts = empty_ints(count), empty_ints(count)

    def count_some(low: int, high: int) -> int:
        asking = hashes[low:high], start[low:high], end[low:high]
        kept = segment.hashes, segment.start, segment.end
        lookup = segment.heads, segment.marks
        found = begins[low:high], counts[low:high]
        return count_matches(*asking, *kept, *lookup, segment.longest, *found)

    parts = 1 if threads < 2 else min(_PARTS * threads, count // _PART + 1)
    cuts = [count * part // parts for part in range(parts + 1)]
    tasks = list(itertools.pairwise(cuts))
    found = in_threads(threads, count_some, tasks, count)
    stops = list(itertools.accumulate(found))
    if not stops[-1]:
        return Matches(NONE, NONE, NONE, NONE)
    pairs = [empty_ints(stops[-1]) for _ in range(4)]

    def fill_some(low: int, high: int, first: int, stop: int) -> None:
        asking = start[low:high], end[low:high], begins[low:high], counts[low:high]
        fill_matches(
            low, *asking, segment.start, segment.end, *(each[first:stop] for each in pairs)
        )

    shares = [
        (*task, stop - size, stop) for task, size, stop in zip(tasks, found, stops, strict=True)
    ]
    in_threads(threads, fill_some, shares, stops[-1])
    return Matches(*pairs)


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
