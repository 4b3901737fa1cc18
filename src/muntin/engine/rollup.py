"""Entries of cells or fragments, rolled up into partials of single predicates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from muntin.aggregates.column import PartColumn
from muntin.engine.encoding import compact
from muntin.engine.entry_kernels import number_neighbours
from muntin.engine.partials import SliceTable
from muntin.engine.rollup_kernels import (
    count_runs,
    list_ranges,
    list_runs,
    rank_places,
)
from muntin.plan.selection import Cells, Selection
from muntin.predicates import Shape

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

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
