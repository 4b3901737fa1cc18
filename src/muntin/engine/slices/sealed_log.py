"""The sealed slices of a set of partials: a log in order of time, and what finals keep of it.

A sealed slice never changes, nor does what finals note with its entries. Entries are appended when
they are sealed, and forgotten from the front; techniques move on by what is appended. All of it
costs as much as there are entries, not as what is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from muntin._typing import Ints
from muntin.aggregates.algebra import Part
from muntin.engine.slices.array_pack import Arrays, inside, under
from muntin.engine.slices.finals.pieces import Objects, column_of
from muntin.engine.slices.finals.positioned import ARROW, Positioned, united_entries
from muntin.engine.slices.finals.totals import united_lanes
from muntin.engine.slices.open_log import Run
from muntin.engine.slices.places import Chains
from muntin.engine.slices.recency import Recency
from muntin.engine.slices.stretches import Stretched, Trail, leave_trail

_FEW = 256
# One in so many entries may be room that is not used: each is moved as often before it leaves.
_SPARE = 16
# Trails of so few slices are walked step by step.
_SHORT = 32


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
        columns = tuple(
            column.between(begin, self.end)
            if isinstance(column, Positioned)
            else column.raw(owners, skip)
            for column in self.columns
        )
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
            if isinstance(column, Positioned):
                own = column.stretch(first, self.end)
            else:
                own = column.stretch(rows)
            found |= under(f"{number}/", own)
        return found

    def base_arrays(self) -> Arrays:
        """What is known of each place, as arrays: with stretches, all that there is."""
        places = self.places.count
        found: Arrays = {"lasts": self.lasts[:places], "depths": self._depths[:places]}
        found["span"] = np.array([self.begin, self.end])
        found |= under("recent/", self._recent.arrays(self.places.slots))
        for number, column in enumerate(self.columns):
            assert not isinstance(column, Objects)
            if not isinstance(column, Positioned):
                found |= under(f"{number}/", column.base_arrays(places))
        return found

    def rebase(self, arrays: Arrays, stretches: Sequence[Arrays]) -> None:
        """Go on from what `base_arrays` and `stretch` made."""
        self.lasts, self._depths = np.array(arrays["lasts"]), np.array(arrays["depths"])
        self.begin, self.end = arrays["span"].tolist()
        self._recent.restore(inside(arrays, "recent/"))
        for number, column in enumerate(self.columns):
            assert not isinstance(column, Objects)
            if isinstance(column, Positioned):
                column.forget(self.begin)
                for each in stretches:
                    first = int(each["span"][0])
                    column.keep(first, each["owners"], inside(each, f"{number}/"))
                continue
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
        elif name.endswith(f"/{ARROW}"):
            found[name] = united_entries(given)
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
