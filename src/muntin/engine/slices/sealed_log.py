"""The sealed slices of a set of partials: a log in order of time, and what finals keep of it.

A sealed slice never changes, nor does what finals note with its entries. Entries are appended when
they are sealed, and forgotten from the front; techniques move on by what is appended. All of it
costs as much as there are entries, not as what is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.aggregates.algebra import USER, Part
from muntin.aggregates.columns.by_part import empty
from muntin.aggregates.columns.column import PartColumn
from muntin.aggregates.columns.holistic.runs import RunColumn
from muntin.aggregates.columns.objects import ObjectColumn
from muntin.engine.slices.array_pack import Arrays, inside, under
from muntin.engine.slices.finals.extremes import Extremes
from muntin.engine.slices.finals.totals import Totals, united_lanes
from muntin.engine.slices.open_log import Run
from muntin.engine.slices.places import Chains
from muntin.engine.slices.stretches import Stretched, Trail, int32_at, leave_trail

Int32s = npt.NDArray[np.int32]

_FEW = 256
# One in so many entries may be room that is not used: each is moved as often before it leaves.
_SPARE = 16
# Trails of so few slices are walked step by step.
_SHORT = 32
_NEVER = -(2**62)


class PlaceTable(Protocol):
    """Places of entries: how many there are, of how many slots, and their chains."""

    @property
    def count(self) -> int:
        """How many places there are."""

    @property
    def slots(self) -> int:
        """How many slots they belong to."""

    @property
    def chains(self) -> Chains:
        """The places of each slot."""


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

    def resize(self, room: int, places: int, *, leaps: bool) -> None:
        """Lists make room by themselves."""

    def shift(self, count: int, size: int) -> None:
        """Forget the first ``count`` entries."""
        del self._partials[:count]

    def drop(self, count: int) -> None:
        """Objects lie in no files."""

    def append(self, trail: Trail, at: int, places: Ints, column: PartColumn) -> int:
        """Take in sealed entries."""
        assert isinstance(column, ObjectColumn)
        self._partials.extend(column.partials)
        return 0

    def raw(self, places: Int32s, skip: int) -> PartColumn:
        """The entries themselves, behind the first ``skip`` ones."""
        return ObjectColumn(self.part, self._partials[skip : skip + places.size])


class Pieces(Objects):
    """Accumulators of sealed entries that can only be combined, in order, as they were sealed."""

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self._pieces: list[PartColumn] = []

    @property
    def nbytes(self) -> int:
        """Bytes of all accumulators."""
        return sum(piece.nbytes for piece in self._pieces)

    def shift(self, count: int, size: int) -> None:
        """Forget the first ``count`` entries."""
        while count and count >= len(self._pieces[0]):
            count -= len(self._pieces.pop(0))
        if count:
            kept = np.arange(count, len(self._pieces[0]))
            self._pieces[0] = self._pieces[0].take(kept)

    def append(self, trail: Trail, at: int, places: Ints, column: PartColumn) -> int:
        """Take in sealed entries."""
        if len(column):
            self._pieces.append(column)
        return 0

    def raw(self, places: Int32s, skip: int) -> PartColumn:
        """The entries themselves, behind the first ``skip`` ones."""
        if self.part.valued:
            whole = RunColumn.empty(self.part, 0)
            whole.extend(self._pieces)  # type: ignore[arg-type]
            return whole.take(np.arange(skip, skip + places.size))
        found, at = empty(self.part, places.size), -skip
        for piece in self._pieces:
            cells = np.arange(at, at + len(piece))
            found.merge(np.maximum(cells, -1), piece)
            at += len(piece)
        return found


def column_of(part: Part) -> Totals | Extremes | Objects:
    """What is kept of a part's sealed entries."""
    if part.invertible:
        return Totals(part)
    if part.selective:
        return Extremes(part)
    return Objects(part) if part.kind.startswith(USER) else Pieces(part)


def is_plain(part: Part) -> bool:
    """Whether what is kept of a part's entries is numbers that stay as they are."""
    column = column_of(part)
    return isinstance(column, Totals) or (isinstance(column, Extremes) and not column.moves)


class SealedLog:
    """Entries of sealed slices, in order of time, each with a trail to those of its place before.

    Entries before the *position* ``begin`` are forgotten, ``end`` is the next one. Those from
    ``first`` on are in memory, those before it in stretches that lie in files. Trails have
    ``leaps`` once they are long.
    """

    def __init__(self, places: PlaceTable, parts: Sequence[Part]) -> None:
        self.places = places
        self.columns = [column_of(part) for part in parts]
        self.begin = self.end = 0
        self.leaps = False
        self._firsts = np.zeros(1, np.int64)
        self._owners, self._steps, self._leaps = (Stretched(np.int32) for _ in range(3))
        # The starts of slices and their first positions, of each stretch.
        self._slices = [Slices()]
        self.lasts = np.zeros(0, np.int64)
        self._depths = np.zeros(0, np.int32)
        self._recent = Recency()

    @property
    def first(self) -> int:
        """The position of the first entry in memory."""
        return int(self._firsts[-1])

    @property
    def trail(self) -> Trail:
        """The trails of entries, for kernels."""
        return Trail(self._firsts, self._steps.addresses, self._leaps.addresses, self.begin)

    @property
    def size(self) -> int:
        """How many entries are kept."""
        return self.end - self.begin

    @property
    def slices(self) -> int:
        """How many slices hold them."""
        return sum(each.size for each in self._slices) - self._gone()

    @property
    def bounds(self) -> tuple[int, int]:
        """The starts of the first and the last slice; there must be one."""
        held = next(each for each in self._slices if each.size and each.firsts[-1] >= self.begin)
        low = int(held.starts[np.searchsorted(held.firsts, self.begin)])
        return low, int(next(each for each in reversed(self._slices) if each.size).starts[-1])

    def _gone(self) -> int:
        """How many slices are forgotten that still have their place."""
        return sum(int(np.searchsorted(each.firsts, self.begin)) for each in self._slices[:2])

    @property
    def nbytes(self) -> int:
        """Bytes in memory of entries, trails and finals, but not of the places."""
        arrays = sum(each.nbytes for each in self._arrays.values())
        held = sum(column.nbytes for column in self.columns) + self.lasts.nbytes
        return arrays + held + self._depths.nbytes + self._slices[-1].nbytes + self._recent.nbytes

    def starts(self) -> Ints:
        """The starts of all slices that are kept."""
        starts = np.concatenate([each.starts for each in self._slices])
        firsts = np.concatenate([each.firsts for each in self._slices])
        kept: Ints = starts[int(np.searchsorted(firsts, self.begin)) :]
        return kept

    def positions(self, ticks: Ints) -> Ints:
        """The position of the first entry of slices that start at a tick or later."""
        found = np.full(ticks.size, self.end)
        # Stretches follow each other in time: the last one that has such a slice comes first.
        for each in reversed(self._slices):
            if not each.size:
                continue
            at = np.searchsorted(each.starts, ticks)
            inside = at < each.size
            found[inside] = each.firsts[at[inside]]
            if not at.any():
                continue
            if at.all():
                break
        positions: Ints = np.maximum(found, self.begin)
        return positions

    def append(self, run: Run) -> int:
        """Take in entries that are sealed now; how many aggregations along time that took."""
        slices = 1 + int(np.count_nonzero(np.diff(run.starts))) if run.starts.size else 0
        self.reserve(run.starts.size, slices)
        at, trail = self.end, self.trail
        row = at - self.first
        self._owners.tail[row : row + run.places.size] = run.places
        self._slices[-1].append(run.starts, at)
        leave_trail(
            trail, at, run.places, self.lasts, self._depths, self._steps.tail, self._leaps.tail
        )
        steps = 0
        for column, entries in zip(self.columns, run.columns, strict=True):
            steps += column.append(trail, at, run.places, entries)  # type: ignore[arg-type]
        self._recent.touch(self.places.chains.slots[run.places], run.starts, self.places.slots)
        self.end += run.places.size
        return steps

    def reserve(self, entries: int, slices: int = 0) -> None:
        """Make room for entries of so many slices at the end, and for all places.

        Where entries at the front were forgotten the others move up, or else the log grows.
        """
        places, room = self.places.count, self._owners.tail.size
        gone, used = self.begin - self.first, self.end - self.first
        if used + entries > room and gone > 0 and gone * _SPARE >= used:
            self._shift(gone, used)
            used -= gone
        if used + entries > room:
            room = max(used + entries, room + room // _SPARE)
        # What comes counts: a window that one batch fills is long at once.
        self.leaps = self.leaps or self.slices + slices > _SHORT
        self._owners.resize(room)
        self._steps.resize(room)
        self._leaps.resize(room if self.leaps else 0)
        if places > self.lasts.size:
            lasts = np.full(max(places, self.lasts.size * 9 // 8), -1)
            depths = np.zeros(lasts.size, np.int32)
            lasts[: self.lasts.size], depths[: self.lasts.size] = self.lasts, self._depths
            self.lasts, self._depths = lasts, depths
        for column in self.columns:
            column.resize(room, places, leaps=self.leaps)

    def _shift(self, gone: int, used: int) -> None:
        """Move entries in memory to the front, where others were forgotten."""
        for array in self._arrays.values():
            array.shift(gone, used)
        for column in self.columns:
            column.shift(gone, used)
        self._firsts[-1] += gone
        self._drop_stretches(len(self._slices) - 1)
        self._slices[-1].forget(self.begin)

    def evict(self, before: int) -> None:
        """Forget the slices that start before a tick."""
        begin = int(self.positions(np.array([before]))[0])
        if begin == self.begin:
            return
        self.begin = begin
        # The last stretch in files that begins at or before what is kept.
        self._drop_stretches(int(np.searchsorted(self._firsts, self.begin, side="right")) - 1)
        self._recent.expire(before)

    def _drop_stretches(self, count: int) -> None:
        """Forget the first stretches in files."""
        if count <= 0:
            return
        self._firsts = self._firsts[count:]
        del self._slices[:count]
        for array in self._arrays.values():
            array.drop(count)
        for column in self.columns:
            column.drop(count)

    def run(self, since: int | None = None) -> Run:
        """All entries that are kept, or those of slices that start at a tick or later."""
        begin = self.begin if since is None else int(self.positions(np.array([since]))[0])
        skip = begin - int(self._firsts[0])
        owners = self._owners.whole(skip, self.end - begin)
        starts = np.concatenate([each.starts for each in self._slices])
        firsts = np.concatenate([each.firsts for each in self._slices])
        live = slice(int(np.searchsorted(firsts, begin)), None)
        sizes = np.diff(np.append(firsts[live], self.end))
        columns = tuple(column.raw(owners, skip) for column in self.columns)
        return Run(np.repeat(starts[live], sizes), owners.astype(np.int64), columns)

    @property
    def _arrays(self) -> dict[str, Stretched]:
        return {"owners": self._owners, "steps": self._steps, "leaps": self._leaps}

    def stretch(self, since: int) -> Arrays:
        """The entries from a position on, which are in memory, as arrays."""
        first = max(since, self.begin)
        rows = slice(first - self.first, self.end - self.first)
        found: Arrays = {name: array.tail[rows] for name, array in self._arrays.items()}
        held = self._slices[-1]
        at = int(np.searchsorted(held.firsts, first))
        found |= {"starts": held.starts[at:], "positions": held.firsts[at:]}
        found["span"] = np.array([first, self.end])
        for number, column in enumerate(self.columns):
            assert not isinstance(column, Objects)
            found |= under(f"{number}/", column.stretch(rows))
        return found

    def base_arrays(self) -> Arrays:
        """What is known of each place, as arrays: with stretches, all that there is."""
        places = self.places.count
        found: Arrays = {"lasts": self.lasts[:places], "depths": self._depths[:places]}
        found["span"] = np.array([self.begin, self.end])
        found |= under("recent/", self._recent.arrays(self.places.slots))
        for number, column in enumerate(self.columns):
            assert not isinstance(column, Objects)
            found |= under(f"{number}/", column.base_arrays(places))
        return found

    def rebase(self, arrays: Arrays, stretches: Sequence[Arrays]) -> None:
        """Go on from what `base_arrays` and `stretch` made."""
        self.lasts, self._depths = np.array(arrays["lasts"]), np.array(arrays["depths"])
        self.begin, self.end = arrays["span"].tolist()
        self._recent.restore(inside(arrays, "recent/"))
        for number, column in enumerate(self.columns):
            assert not isinstance(column, Objects)
            column.rebase(inside(arrays, f"{number}/"))
            for each in stretches:
                column.keep(inside(each, f"{number}/"))
        for each in stretches:
            for name, array in self._arrays.items():
                array.keep(each[name])
        kept = [Slices(each["starts"], each["positions"]) for each in stretches]
        self._slices = [*kept, Slices()]
        firsts = [int(each["span"][0]) for each in stretches]
        self._firsts = np.array([*firsts, self.end])

    def candidates(self, lows: Ints, highs: Ints, since: Ints) -> tuple[Ints, Ints]:
        """Pairs of window and slot, among them all that hold an entry.

        Windows lie between positions; ``since`` are the ticks they start at.
        """
        owners = self._firsts, self._owners.addresses
        return self._recent.candidates(lows, highs, since, *owners, self.places.chains.slots)


def united(stretches: Sequence[Arrays]) -> Arrays:
    """One stretch of several that follow each other."""
    found: Arrays = {}
    for name in stretches[0]:
        given = [each[name] for each in stretches]
        if name.endswith("/lanes"):
            fit = f"{name.removesuffix('lanes')}fit"
            found[name], found[fit] = united_lanes(given, [each[fit] for each in stretches])
        elif not name.endswith("/fit"):
            found[name] = np.concatenate(given)
    found["span"] = found["span"][[0, -1]]
    return found


class Slices:
    """Starts of slices in order, and the position of each one's first entry."""

    def __init__(self, starts: Ints | None = None, firsts: Ints | None = None) -> None:
        none = np.zeros(0, np.int64)
        self._starts = none if starts is None else starts
        self._firsts = none if firsts is None else firsts
        self._held = slice(0, self._starts.size)

    @property
    def starts(self) -> Ints:
        """Where slices start."""
        return self._starts[self._held]

    @property
    def firsts(self) -> Ints:
        """Their first positions."""
        return self._firsts[self._held]

    @property
    def size(self) -> int:
        """How many there are."""
        return int(self._held.stop - self._held.start)

    @property
    def nbytes(self) -> int:
        """Bytes of both arrays."""
        return self._starts.nbytes + self._firsts.nbytes

    def append(self, starts: Ints, at: int) -> None:
        """Note the slices of entries in order, the first of which is at a position."""
        fresh = np.flatnonzero(np.diff(starts, prepend=starts[:1] - 1))
        held = self._held
        if held.stop + fresh.size > self._starts.size:
            longer = np.zeros((2, max(2 * self.size + fresh.size, _FEW)), np.int64)
            longer[:, : self.size] = self.starts, self.firsts
            self._starts, self._firsts = longer
            held = slice(0, self.size)
        to = slice(held.stop, held.stop + fresh.size)
        self._starts[to], self._firsts[to] = starts[fresh], at + fresh
        self._held = slice(held.start, to.stop)

    def forget(self, before: int) -> None:
        """Leave out slices whose entries lie before a position."""
        gone = int(np.searchsorted(self.firsts, before))
        self._held = slice(self._held.start + gone, self._held.stop)


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

    def arrays(self, slots: int) -> Arrays:
        """The list as arrays."""
        held = min(slots + 1, self._last.size)
        counts = np.array([self.live])
        return {"links": self._links[:, :held], "last": self._last[:held], "counts": counts}

    def restore(self, arrays: Arrays) -> None:
        """Go on from what `arrays` made."""
        self._links, self._last = np.array(arrays["links"]), np.array(arrays["last"])
        self._stamps = np.zeros(self._last.size, np.int32)
        self._counts = np.array([int(arrays["counts"][0]), 0])

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
        self, lows: Ints, highs: Ints, since: Ints, firsts: Ints, owners: Ints, slots: Int32s
    ) -> tuple[Ints, Ints]:
        """Pairs of window and slot, among them all that hold an entry."""
        room = int(np.minimum(highs - lows, self.live).sum())
        windows, found = np.empty(room, np.int64), np.empty(room, np.int64)
        size = _candidates(
            self._links, self._last, self._stamps, self._counts, lows, highs, since, firsts,
            owners, slots, windows, found,
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
    firsts: Ints,
    owners: Ints,
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
                slot = slots[int32_at(firsts, owners, entry)]
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
