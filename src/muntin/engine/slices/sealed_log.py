"""The sealed slices of a set of partials: a log in order of time, and what finals keep of it.

A sealed slice never changes. Entries are appended when they are sealed, and forgotten from the
front; techniques move on by what is appended. All of it costs as much as there are entries, not
as what is kept.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from muntin.aggregates.column import PartColumn
from muntin.aggregates.object_column import ObjectColumn
from muntin.aggregates.parts import INVERTIBLE, USER, Part
from muntin.compiled import compiled
from muntin.engine.slices.extremes import Extremes
from muntin.engine.slices.open_log import Run
from muntin.engine.slices.places import Places
from muntin.engine.slices.segments import Segments
from muntin.engine.slices.totals import Totals

Ints = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Column = "Totals | Extremes | Objects"

_FEW = 256
# One in so many entries may be room that is not used: each is moved as often before it leaves.
_SPARE = 16
_NEVER = -(2**62)


class Objects:
    """Python partials of sealed entries, in order."""

    technique = ""

    def __init__(self, part: Part) -> None:
        self.part = part
        self._partials: list[object] = []

    @property
    def nbytes(self) -> int:
        """A pointer an entry; what the partials hold is not counted."""
        return 8 * len(self._partials)

    def resize(self, entries: int, places: int) -> None:
        """Lists make room by themselves."""

    def shift(self, count: int, size: int) -> None:
        """Forget the first ``count`` entries."""
        del self._partials[:count]

    def append(self, at: int, places: Ints, column: PartColumn) -> int:
        """Take in sealed entries."""
        assert isinstance(column, ObjectColumn)
        self._partials.extend(column.partials)
        return 0

    def raw(self, places: Int32s, count: int) -> PartColumn:
        """The entries themselves."""
        return ObjectColumn(self.part, self._partials[:count])


def column_of(part: Part) -> Totals | Extremes | Objects:
    """What is kept of a part's sealed entries."""
    if part.kind in INVERTIBLE:
        return Totals(part)
    return Objects(part) if part.kind.startswith(USER) else Extremes(part)


class SealedLog:
    """Entries of sealed slices, in order of time, with an index by place.

    Entries before the *position* ``begin`` are forgotten, ``end`` is the next one. Positions move
    down when room is made, before windows are looked at.
    """

    def __init__(self, places: Places, parts: Sequence[Part]) -> None:
        self.places = places
        self.columns = [column_of(part) for part in parts]
        self.index = Segments()
        self.begin = self.end = 0
        self._owners = np.zeros(_FEW, np.int32)
        # The first position of each slice, and its start.
        self._starts = np.zeros(_FEW, np.int64)
        self._firsts = np.zeros(_FEW, np.int64)
        self._slices = slice(0, 0)
        self._recent = Recency()

    @property
    def size(self) -> int:
        """How many entries are kept."""
        return self.end - self.begin

    @property
    def slices(self) -> int:
        """How many slices hold them."""
        return self._slices.stop - self._slices.start

    @property
    def nbytes(self) -> int:
        """Bytes of entries, index and finals, but not of the places."""
        own = self._owners.nbytes + self._starts.nbytes + self._firsts.nbytes
        held = sum(column.nbytes for column in self.columns)
        return own + held + self.index.nbytes + self._recent.nbytes

    def owners(self) -> Int32s:
        """The places of all entries, those that are forgotten included."""
        return self._owners[: self.end]

    def starts(self) -> Ints:
        """The starts of the slices that are kept."""
        return self._starts[self._slices]

    def positions(self, ticks: Ints) -> Ints:
        """The position of the first entry of slices that start at a tick or later."""
        firsts = np.append(self._firsts[self._slices], self.end)
        return firsts[np.searchsorted(self.starts(), ticks)]

    def append(self, run: Run) -> int:
        """Take in entries that are sealed now; how many aggregations along time that took."""
        self.reserve(run.starts.size)
        at = self.end
        self._owners[at : at + run.places.size] = run.places
        self._note_slices(run.starts)
        self.index.append(run.places, self.end)
        if 2 * run.places.size > self.end:
            # Lists that grew by a lot at once have left much room behind.
            self.index.pack()
        steps = 0
        for column, entries in zip(self.columns, run.columns, strict=True):
            steps += column.append(at, run.places, entries)  # type: ignore[arg-type]
        self._recent.touch(self.places.chains.slots[run.places], run.starts, self.places.slots)
        self.end += run.places.size
        return steps

    def _note_slices(self, starts: Ints) -> None:
        fresh = np.flatnonzero(np.diff(starts, prepend=starts[:1] - 1))
        held = self._slices
        if held.stop + fresh.size > self._starts.size:
            size = max(2 * (held.stop - held.start) + fresh.size, _FEW)
            for name in ("_starts", "_firsts"):
                longer = np.zeros(size, np.int64)
                longer[: held.stop - held.start] = getattr(self, name)[held]
                setattr(self, name, longer)
            held = slice(0, held.stop - held.start)
        to = slice(held.stop, held.stop + fresh.size)
        self._starts[to], self._firsts[to] = starts[fresh], self.end + fresh
        self._slices = slice(held.start, to.stop)

    def reserve(self, entries: int) -> None:
        """Make room for entries at the end, and for all places.

        Where entries at the front were forgotten the others move up, or else the log grows.
        """
        places = self.places.count
        self.index.reserve(places)
        if self.end + entries > self._owners.size and self.begin * _SPARE >= self.end:
            self._shift()
        room = self._owners.size
        if self.end + entries > room:
            room = max(self.end + entries, room + room // _SPARE)
            longer = np.zeros(room, np.int32)
            longer[: self.end] = self._owners[: self.end]
            self._owners = longer
        for column in self.columns:
            column.resize(room, places)

    def _shift(self) -> None:
        """Move entries to the front, where others were forgotten."""
        gone = self.begin
        self._owners[: self.end - gone] = self._owners[gone : self.end]
        self._firsts[self._slices] -= gone
        self.index.shift(gone)
        for column in self.columns:
            column.shift(gone, self.end)
        self.begin, self.end = 0, self.end - gone

    def evict(self, before: int) -> None:
        """Forget the slices that start before a tick."""
        at = int(np.searchsorted(self.starts(), before))
        if not at:
            return
        self.begin = int(self.positions(np.array([before]))[0])
        self._slices = slice(self._slices.start + at, self._slices.stop)
        self.index.since = self.begin
        for column in self.columns:
            if isinstance(column, Extremes):
                column.expire(self.begin)
        self._recent.expire(before)

    def run(self) -> Run:
        """All entries that are kept."""
        count = self.end
        kept = np.arange(self.begin, count)
        starts = np.repeat(self.starts(), np.diff(np.append(self._firsts[self._slices], self.end)))
        columns = tuple(column.raw(self.owners(), count).take(kept) for column in self.columns)
        return Run(starts, self._owners[kept].astype(np.int64), columns)

    def candidates(self, lows: Ints, highs: Ints, since: Ints) -> tuple[Ints, Ints]:
        """Pairs of window and slot, among them all that hold an entry.

        Windows lie between positions; ``since`` are the ticks they start at.
        """
        return self._recent.candidates(lows, highs, since, self._owners, self.places.chains.slots)


class Recency:
    """Slots in order of when they were last sealed: short windows visit no group of long ones."""

    def __init__(self) -> None:
        # Slot s has its neighbours at place s + 1; place 0 is the end of the list, both ways.
        self._links = np.zeros((2, _FEW), np.int32)
        self._last = np.full(_FEW, _NEVER)
        self._stamps = np.zeros(_FEW, np.int32)
        self._counts = np.zeros(2, np.int64)

    @property
    def live(self) -> int:
        """How many slots have an entry."""
        return int(self._counts[0])

    @property
    def nbytes(self) -> int:
        """Bytes of the list."""
        return self._links.nbytes + self._last.nbytes + self._stamps.nbytes

    def touch(self, slots: Int32s, starts: Ints, count: int) -> None:
        """Note that entries of these slots were sealed, in this order."""
        if count + 1 > self._last.size:
            size = max(count + 1, self._last.size * 5 // 4)
            links, last = np.zeros((2, size), np.int32), np.full(size, _NEVER)
            links[:, : self._last.size], last[: self._last.size] = self._links, self._last
            self._links, self._last = links, last
            self._stamps = np.zeros(size, np.int32)
            self._counts[1] = 0
        _touch(self._links, self._last, self._counts, slots, starts)

    def expire(self, before: int) -> None:
        """Let go of slots that were last sealed before a tick."""
        _expire(self._links, self._last, self._counts, before)

    def candidates(
        self, lows: Ints, highs: Ints, since: Ints, owners: Int32s, slots: Int32s
    ) -> tuple[Ints, Ints]:
        """Pairs of window and slot, among them all that hold an entry."""
        room = int(np.minimum(highs - lows, self.live).sum())
        windows, found = np.empty(room, np.int64), np.empty(room, np.int64)
        size = _candidates(
            self._links, self._last, self._stamps, self._counts, lows, highs, since, owners, slots,
            windows, found,
        )  # fmt: skip
        return windows[:size], found[:size]


@compiled
def _unlink(links: Int32s, at: int) -> None:
    before, after = links[0, at], links[1, at]
    links[1, before], links[0, after] = after, before


@compiled
def _touch(links: Int32s, last: Ints, counts: Ints, slots: Int32s, starts: Ints) -> None:
    for i in range(slots.size):
        at = slots[i] + 1
        if last[at] == _NEVER:
            counts[0] += 1
        else:
            _unlink(links, at)
        newest = links[0, 0]
        links[0, at], links[1, at] = newest, 0
        links[1, newest], links[0, 0] = at, at
        last[at] = starts[i]


@compiled
def _expire(links: Int32s, last: Ints, counts: Ints, before: int) -> None:
    at = links[1, 0]
    while at and last[at] < before:
        after = links[1, at]
        _unlink(links, at)
        last[at] = _NEVER
        counts[0] -= 1
        at = after


@compiled
def _candidates(
    links: Int32s,
    last: Ints,
    stamps: Int32s,
    counts: Ints,
    lows: Ints,
    highs: Ints,
    since: Ints,
    owners: Int32s,
    slots: Int32s,
    windows: Ints,
    found: Ints,
) -> int:
    """List slots by the entries of a window, or by recency where there are fewer of those."""
    size = 0
    for window in range(lows.size):
        if highs[window] - lows[window] <= counts[0]:
            counts[1] += 1
            if counts[1] == 1 << 31:
                # Stamps begin anew before their numbers run out.
                stamps[:] = 0
                counts[1] = 1
            for entry in range(lows[window], highs[window]):
                slot = slots[owners[entry]]
                if stamps[slot + 1] != counts[1]:
                    stamps[slot + 1] = counts[1]
                    windows[size], found[size] = window, slot
                    size += 1
        else:
            at = links[0, 0]
            while at and last[at] >= since[window]:
                windows[size], found[size] = window, at - 1
                size += 1
                at = links[0, at]
    return size
