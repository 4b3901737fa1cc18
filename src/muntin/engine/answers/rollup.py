"""Entries of cells or fragments, rolled up into partials of single predicates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from muntin._compiled import compiled
from muntin._typing import Bools, Ints
from muntin.aggregates.columns.column import PartColumn
from muntin.engine.rows.dictionary import compact
from muntin.engine.rows.entries import number_neighbours
from muntin.engine.slices.partials import SliceTable
from muntin.plan.selection import Cells, Selection
from muntin.predicates import Shape

# Asking each predicate about each entry is as good as anything up to this many questions.
_FEW = 1 << 20
# The table of places, in numbers of four bytes.
_MOST_PLACES = 1 << 25


@dataclass(frozen=True)
class Runs:
    """Neighbouring entries that satisfy a predicate: [low, high), all of one slot."""

    lows: Ints
    highs: Ints
    members: Ints
    slots: Ints


class RolledUp:
    """Partials of some predicates: for each an entry per group and slice that holds its rows.

    Entries are in order of predicate, group and slice; those of predicate ``m`` lie between
    ``bounds[m]`` and ``bounds[m + 1]``. One more follows, which holds nothing.
    """

    def __init__(self, table: SliceTable, selection: Selection, members: Sequence[int]) -> None:
        self.table = table
        self._runs: Runs | None = None
        self._columns: dict[int, PartColumn] = {}
        if _all_alike(selection, members):
            self.groups, self.starts = table.groups, table.starts
            self.bounds = np.array([0, table.starts.size])
            self.slots = np.arange(table.starts.size)
            self.steps = 0
            return
        slots, begins = number_neighbours(table.groups, table.starts)
        runs = _runs(table, selection, members, slots)
        self._numbers, firsts = number_neighbours(runs.members, runs.slots)
        self._runs = runs
        self.slots = runs.slots[firsts]
        at = begins[self.slots]
        self.groups, self.starts = table.groups[at], table.starts[at]
        self.bounds = np.searchsorted(runs.members[firsts], np.arange(len(members) + 1))
        self.steps = int(table.starts.size + 2 * runs.lows.size)
        if not isinstance(selection, Cells):
            self.steps = int((runs.highs - runs.lows).sum())

    def column(self, index: int) -> PartColumn:
        """The partials of one accumulator, by entry."""
        if index not in self._columns:
            column = self.table.columns[index]
            if self._runs is not None:
                runs = self._runs
                size = self.slots.size + 1
                column = column.roll_up(runs.lows, runs.highs, self._numbers, size)
            self._columns[index] = column
        return self._columns[index]


def _all_alike(selection: Selection, members: Sequence[int]) -> bool:
    """Whether the entries are those of the only predicate asked for, as they stand."""
    if selection.coded:
        return False
    if isinstance(selection, Cells):
        return len(members) == 1 and bool(selection.shape.truth(())[0, members[0]])
    return True


def _runs(table: SliceTable, selection: Selection, members: Sequence[int], slots: Ints) -> Runs:
    if selection.coded and isinstance(selection, Cells):
        assert table.codes is not None
        questions = table.codes.size * len(members)
        if questions > _FEW:
            found = _ranges(table.codes, selection.shape, members, slots)
            if found is not None:
                return found
    cells, held = truth_of(table, selection, members)
    return Runs(*list_runs(held, cells, slots, count_runs(held, cells, slots)))


def truth_of(table: SliceTable, selection: Selection, members: Sequence[int]) -> tuple[Ints, Bools]:
    """The number of each entry's cell, and whether each predicate holds in each cell."""
    if not selection.coded:
        assert isinstance(selection, Cells)
        cells, truth = np.zeros(table.starts.size, np.int64), selection.shape.truth(())
    elif isinstance(selection, Cells):
        assert table.codes is not None
        cells, distinct = compact(table.codes)
        truth = selection.shape.truth(selection.shape.ranks_of(distinct))
    else:
        assert table.codes is not None
        assert table.signatures is not None
        cells = table.codes
        truth = np.unpackbits(table.signatures, axis=1, bitorder="little").view(np.bool_)
    return cells, np.ascontiguousarray(truth[:, list(members)].T)


def _ranges(codes: Ints, shape: Shape, members: Sequence[int], slots: Ints) -> Runs | None:
    """Runs by ranges of the last dimension's ranks; None where that is not the cheaper way."""
    boxes = [shape.boxes[member] for member in members]
    size = shape.dimensions[-1].size
    others, ranks = np.divmod(codes, size)
    fresh = np.ones(codes.size, np.bool_)
    fresh[1:] = (np.diff(others) != 0) | (np.diff(slots) != 0)
    begins = np.flatnonzero(fresh)
    work = begins.size * (size + 2 * len(members))
    if any(box is None for box in boxes) or begins.size * (size + 1) > _MOST_PLACES:
        return None
    if work > codes.size * len(members):
        return None
    combos, distinct = compact(others[begins])
    allowed = _allowed(shape, boxes, distinct)
    intervals = [
        (place, low, high)
        for place, box in enumerate(boxes)
        if box is not None
        for low, high in box[-1]
    ]
    if not intervals:
        none = np.empty(0, np.int64)
        return Runs(none, none, none, none)
    counts = np.bincount([place for place, _, _ in intervals], minlength=len(members))
    room = int((allowed[:, combos].sum(axis=1) * counts).sum())
    places = rank_places(np.append(begins, codes.size), ranks, size)
    ranges = np.array(intervals, np.int64)
    return Runs(*list_ranges(places, combos, slots[begins], allowed, ranges, room + 1))


def _allowed(shape: Shape, boxes: Sequence[object], combos: Ints) -> Bools:
    """Whether each predicate allows each combination of the other dimensions' ranks."""
    allowed = np.ones((len(boxes), combos.size), np.bool_)
    for place in range(len(shape.dimensions) - 2, -1, -1):
        size = shape.dimensions[place].size
        combos, ranks = np.divmod(combos, size)
        flags = np.zeros((len(boxes), size), np.bool_)
        for number, box in enumerate(boxes):
            for low, high in box[place]:  # type: ignore[index]
                flags[number, low:high] = True
        allowed &= flags[:, ranks]
    return allowed


Int32s = npt.NDArray[np.int32]
RunArrays = tuple[Ints, Ints, Ints, Ints]


@compiled
def count_runs(truth: Bools, cells: Ints, slots: Ints) -> int:
    """How many runs `list_runs` gives."""
    count = 0
    for member in range(truth.shape[0]):
        open_slot = -1
        for entry in range(cells.size):
            if not truth[member, cells[entry]]:
                open_slot = -1
            elif slots[entry] != open_slot:
                open_slot = slots[entry]
                count += 1
    return count


@compiled
def list_runs(truth: Bools, cells: Ints, slots: Ints, count: int) -> RunArrays:
    """The longest runs of neighbouring entries of one slot that satisfy a predicate.

    ``truth[m, c]`` says whether predicate m holds in cell c, ``cells`` and ``slots`` give the
    cell and the slot of every entry. Returns the first entry of each run, one past its last, its
    predicate and its slot, in order of predicate, then entry.
    """
    lows, highs = np.empty(count, np.int64), np.empty(count, np.int64)
    members, owners = np.empty(count, np.int64), np.empty(count, np.int64)
    at = -1
    for member in range(truth.shape[0]):
        open_slot = -1
        for entry in range(cells.size):
            if not truth[member, cells[entry]]:
                open_slot = -1
                continue
            if slots[entry] != open_slot:
                open_slot = slots[entry]
                at += 1
                lows[at], members[at], owners[at] = entry, member, open_slot
            highs[at] = entry + 1
    return lows, highs, members, owners


@compiled
def rank_places(begins: Ints, ranks: Ints, size: int) -> Int32s:
    """Where ranks begin in each block: ``places[r, b]`` is the first entry of rank r or more.

    Block b holds the entries from ``begins[b]`` to the next block, in order of rank.
    """
    blocks = begins.size - 1
    places = np.empty((size + 1, blocks), np.int32)
    for block in range(blocks):
        entry = begins[block]
        for rank in range(size + 1):
            while entry < begins[block + 1] and ranks[entry] < rank:
                entry += 1
            places[rank, block] = entry
    return places


@compiled
def list_ranges(
    places: Int32s, combos: Ints, slots: Ints, allowed: Bools, intervals: Ints, room: int
) -> RunArrays:
    """The runs of entries in intervals of ranks, as `list_runs` gives them.

    ``combos`` and ``slots`` give for each block the combination of its other ranks and its slot.
    ``allowed[m, c]`` says whether predicate m allows a combination; row ``(m, low, high)`` of
    ``intervals``, which are in order of predicate, that it allows the ranks [low, high).
    """
    lows, highs = np.empty(room, np.int64), np.empty(room, np.int64)
    members, owners = np.empty(room, np.int64), np.empty(room, np.int64)
    at = 0
    first = 0
    while first < intervals.shape[0]:
        member = intervals[first, 0]
        last = first
        while last < intervals.shape[0] and intervals[last, 0] == member:
            last += 1
        for block in range(combos.size):
            if allowed[member, combos[block]]:
                for i in range(first, last):
                    low = places[intervals[i, 1], block]
                    high = places[intervals[i, 2], block]
                    lows[at], highs[at] = low, high
                    members[at], owners[at] = member, slots[block]
                    at += high > low
        first = last
    return lows[:at].copy(), highs[:at].copy(), members[:at].copy(), owners[:at].copy()
