"""Marks of values by group: each stands at the newest entry that has its value.

A table finds the mark of a group and a value. What the marks at each entry of a group count is
added up by 64 and by 4096 entries, so that a mark moves in a few steps and a window of any range is
read in some hundred at most.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from muntin._compiled import compiled
from muntin._typing import Bools, Ints
from muntin.engine.slices.finals.totals import refitted
from muntin.engine.slices.places import Spans

Int32s = npt.NDArray[np.int32]

_FEW = 256
# Room of so many times what is kept is made anew.
WORN = 16
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9)
_32 = np.uint64(32)
# A slot's entries by 64 and by 4096.
_BITS = 6


class News(NamedTuple):
    """Entries that marks move on by: their positions and slots, and the values of each.

    ``held`` says which of the different ``values`` each occurrence is; these are codes of the set's
    coder, which may move, ``codes`` tell them apart for good. ``numbers`` are what marks count.
    """

    positions: Ints
    slots: Ints
    cells: Int32s
    offsets: Ints
    held: Ints
    values: Ints
    codes: Ints
    numbers: Ints

    def only(self, kept: Bools) -> News:
        """Some of the entries."""
        if kept.all():
            return self
        occurrences = np.repeat(kept, np.diff(self.offsets))
        offsets = np.concatenate(([0], np.cumsum(np.diff(self.offsets)[kept])))
        return self._replace(
            positions=self.positions[kept],
            slots=self.slots[kept],
            cells=self.cells[kept],
            offsets=offsets,
            held=self.held[occurrences],
        )


class Marks:
    """The marks of one predicate's values.

    An open table finds the mark of a slot and a value: the number, among all entries of the slot,
    of the one where it stands. A slot has a stretch of room: ``positions`` of its entries, and how
    much the marks at each of them count, added up by 64 and by 4096 entries behind them.
    """

    def __init__(self, width: int) -> None:
        self.fed = -1
        self._fit = (0, 0, 0)
        self._codes = np.zeros(_FEW, np.int64)
        self._slots = np.full(_FEW, -1, np.int64)
        self._last = np.zeros(_FEW, np.int64)
        self._marks = 0
        # By slot: where its stretch begins, its room, how many entries it has, and had before.
        self._owners = np.zeros((0, 4), np.int64)
        self._positions = np.zeros(_FEW, np.int64)
        self._counts = np.zeros((_FEW, width), np.int64)
        self._used = 0

    @property
    def nbytes(self) -> int:
        """Bytes of marks and stretches."""
        marks = self._codes.nbytes + self._slots.nbytes + self._last.nbytes
        return marks + self._owners.nbytes + self._positions.nbytes + self._counts.nbytes

    def widen(self, fit: tuple[int, int, int]) -> None:
        """Have the lanes that sums of values take."""
        if fit != self._fit:
            lanes = refitted(self._counts[:, 2:], self._fit, fit)
            both = np.column_stack((self._counts[:, :2], lanes))
            self._counts, self._fit = np.ascontiguousarray(both), fit

    def is_worn(self, kept: int) -> bool:
        """Whether most of the room serves nobody any more."""
        return self._used > WORN * kept + _FEW

    def move(self, news: News, begin: int, spans: Spans, order: Ints, out: Ints) -> None:
        """Move on by entries, and read windows in order of their ends on the way."""
        self._reserve(news, begin, spans)
        _move(
            self._codes, self._slots, self._last, self._owners, self._positions, self._counts,
            news.positions, news.slots, news.offsets, news.held, news.codes, news.numbers,
            spans.slots, spans.lows, spans.highs, order, out,
        )  # fmt: skip

    def _reserve(self, news: News, begin: int, spans: Spans) -> None:
        slots = max(int(news.slots.max(initial=-1)), int(spans.slots.max(initial=-1))) + 1
        if slots > len(self._owners):
            owners = np.zeros((max(slots, len(self._owners) * 5 // 4), 4), np.int64)
            owners[: len(self._owners)] = self._owners
            self._owners = owners
        touched, needs = np.unique(news.slots, return_counts=True)
        room = self._used + _room_for(self._owners, self._positions, touched, needs, begin)
        if room > len(self._positions):
            size = max(room, len(self._positions) * 5 // 4)
            positions = np.zeros(size, np.int64)
            counts = np.zeros((size, self._counts.shape[1]), np.int64)
            positions[: self._used], counts[: self._used] = (
                self._positions[: self._used], self._counts[: self._used],
            )  # fmt: skip
            self._positions, self._counts = positions, counts
        self._used = _make_room(
            self._owners, self._positions, self._counts, touched, needs, begin, self._used
        )
        most = self._marks + news.held.size
        if 2 * most > self._codes.size:
            self._rehash(news.held.size)
        self._marks = self._marks + news.held.size

    def _rehash(self, coming: int) -> None:
        """Leave out the marks that no window reaches, and make room for others."""
        live = np.flatnonzero(_live(self._slots, self._last, self._owners))
        size = 1 << int(4 * (live.size + coming) + _FEW).bit_length()
        codes, last = np.zeros(size, np.int64), np.zeros(size, np.int64)
        slots = np.full(size, -1, np.int64)
        _place(codes, slots, last, self._codes[live], self._slots[live], self._last[live])
        self._codes, self._slots, self._last, self._marks = codes, slots, last, live.size


@compiled
def _size_of(room: int) -> int:
    """How long a stretch of some room is, with what adds it up."""
    return room + (room >> _BITS) + 1 + (room >> 2 * _BITS) + 1


@compiled
def _gone(owners: Ints, positions: Ints, slot: int, begin: int) -> int:
    """How many entries of a slot are forgotten."""
    first, low, high = owners[slot, 0], 0, owners[slot, 2]
    while low < high:
        middle = (low + high) >> 1
        if positions[first + middle] < begin:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _wanted(owners: Ints, slot: int, gone: int, need: int) -> int:
    """The room that a slot needs elsewhere; 0 if it stays where it is."""
    size, room = owners[slot, 2] + need, owners[slot, 1]
    if size <= room or (size - gone <= room and 2 * gone >= owners[slot, 2]):
        return 0
    wanted = 2
    while wanted < size - gone:
        wanted *= 2
    return wanted


@compiled
def _room_for(owners: Ints, positions: Ints, slots: Ints, needs: Ints, begin: int) -> int:
    """How much room `_make_room` takes."""
    room = 0
    for i in range(slots.size):
        slot = slots[i]
        gone = _gone(owners, positions, slot, begin)
        wanted = _wanted(owners, slot, gone, needs[i])
        if wanted:
            room += _size_of(wanted)
    return room


@compiled
def _make_room(
    owners: Ints, positions: Ints, counts: Ints, slots: Ints, needs: Ints, begin: int, used: int
) -> int:
    """Make room for entries of slots; how much is used then."""
    for number in range(slots.size):
        slot = slots[number]
        gone = _gone(owners, positions, slot, begin)
        wanted = _wanted(owners, slot, gone, needs[number])
        first, room, size = owners[slot, 0], owners[slot, 1], owners[slot, 2]
        if not wanted and size + needs[number] <= room:
            continue
        to = first
        if wanted:
            to, room = used, wanted
            used += _size_of(wanted)
        left = size - gone
        for k in range(counts.shape[1]):
            for i in range(left):
                counts[to + i, k] = counts[first + gone + i, k]
            for i in range(left, _size_of(room)):
                counts[to + i, k] = 0
            for i in range(left):
                counts[to + room + (i >> _BITS), k] += counts[to + i, k]
                above = to + room + (room >> _BITS) + 1 + (i >> 2 * _BITS)
                counts[above, k] += counts[to + i, k]
        for i in range(left):
            positions[to + i] = positions[first + gone + i]
        owners[slot, 0], owners[slot, 1], owners[slot, 2] = to, room, left
        owners[slot, 3] += gone
    return used


@compiled
def _hash(slot: int, code: int) -> np.uint64:
    word = (np.uint64(code) * _GOLDEN) ^ (np.uint64(slot) * _MIX)
    word = (word ^ (word >> _32)) * _MIX
    return word ^ (word >> _32)


@compiled
def _live(slots: Ints, last: Ints, owners: Ints) -> Bools:
    """Which marks stand at entries that are still there."""
    out = np.zeros(slots.size, np.bool_)
    for i in range(slots.size):
        out[i] = slots[i] >= 0 and last[i] >= owners[slots[i], 3]
    return out


@compiled
def _find(codes: Ints, slots: Ints, slot: int, code: int) -> int:
    """Where the mark of a slot's value is, or goes."""
    mask = codes.size - 1
    at = np.int64(_hash(slot, code) & np.uint64(mask))
    while slots[at] >= 0 and (slots[at] != slot or codes[at] != code):
        at = (at + 1) & mask
    return at  # type: ignore[return-value]


@compiled
def _place(codes: Ints, slots: Ints, last: Ints, own: Ints, owners: Ints, stood: Ints) -> None:
    """Put marks into an empty table."""
    for i in range(own.size):
        at = _find(codes, slots, owners[i], own[i])
        codes[at], slots[at], last[at] = own[i], owners[i], stood[i]


@compiled
def _add(counts: Ints, first: int, room: int, at: int, numbers: Ints, row: int, sign: int) -> None:
    """Count a mark at an entry, or take it off."""
    middle, top = first + room + (at >> _BITS), first + room + (room >> _BITS) + 1
    top += at >> 2 * _BITS
    for k in range(counts.shape[1]):
        number = sign * numbers[row, k]
        counts[first + at, k] += number
        counts[middle, k] += number
        counts[top, k] += number


@compiled
def _sum_since(counts: Ints, first: int, room: int, at: int, size: int, k: int) -> int:
    """What the marks at a slot's entries from one on count."""
    middle, top = first + room, first + room + (room >> _BITS) + 1
    total = 0
    while at < size:
        if at & 4095 == 0:
            total += counts[top + (at >> 2 * _BITS), k]
            at += 4096
        elif at & 63 == 0:
            total += counts[middle + (at >> _BITS), k]
            at += 64
        else:
            total += counts[first + at, k]
            at += 1
    return total


@compiled
def _move(
    codes: Ints, slots: Ints, last: Ints, owners: Ints, positions: Ints, counts: Ints,
    entries: Ints, places: Ints, offsets: Ints, held: Ints, values: Ints, numbers: Ints,
    asked: Ints, lows: Ints, highs: Ints, order: Ints, out: Ints,
) -> None:  # fmt: skip
    """Move marks entry by entry, and read each window when they stand at its end."""
    entry = 0
    for number in range(order.size + 1):
        window = order[number] if number < order.size else -1
        while entry < entries.size and (window < 0 or entries[entry] < highs[window]):
            slot = places[entry]
            first, room, size = owners[slot, 0], owners[slot, 1], owners[slot, 2]
            positions[first + size] = entries[entry]
            before = owners[slot, 3]
            for i in range(offsets[entry], offsets[entry + 1]):
                value = held[i]
                at = _find(codes, slots, slot, values[value])
                if slots[at] >= 0 and last[at] >= before:
                    _add(counts, first, room, last[at] - before, numbers, value, -1)
                codes[at], slots[at], last[at] = values[value], slot, before + size
                _add(counts, first, room, size, numbers, value, 1)
            owners[slot, 2] = size + 1
            entry += 1
        if window >= 0:
            slot = asked[window]
            first, room, size = owners[slot, 0], owners[slot, 1], owners[slot, 2]
            low, high = 0, size
            while low < high:
                middle = (low + high) >> 1
                if positions[first + middle] < lows[window]:
                    low = middle + 1
                else:
                    high = middle
            for k in range(out.shape[1]):
                out[window, k] = _sum_since(counts, first, room, low, size, k)
