"""A block of kept entries: sorted by group, cell and slice, and never changed."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Bools, Ints
from muntin.aggregates.algebra import Part
from muntin.aggregates.columns.by_part import empty
from muntin.aggregates.columns.column import PartColumn, Slide
from muntin.aggregates.columns.sums import SumColumn
from muntin.engine.slices.radix_sort import sort_entries
from muntin.synopses.keeps.directory import Line
from muntin.synopses.keeps.slides import slide_of

# Up to so many groups are looked up one by one; more are found by a mask over all runs.
FEW = 16


class Entries(NamedTuple):
    """Kept entries in any order: the group, cell and slice of each, and a column per part."""

    groups: Ints
    codes: Ints
    slices: Ints
    columns: tuple[PartColumn, ...]


class Block:
    """Entries of a stretch of time. The entries of one group and cell are a *run*, by slice.

    A directory of blocks reads counts, sums and extremes. What answers any range of a run of other
    parts, or of a keep that names its ``synopsis``, is made when first asked for.
    """

    def __init__(
        self, number: int, level: int, entries: Entries, synopsis: str | None = None
    ) -> None:
        groups, codes, slices, columns = entries
        self.number = number
        self.level = level
        self.slices = slices
        self.columns = columns
        self.first = int(slices.min()) if slices.size else 0
        self.last = int(slices.max()) if slices.size else -1
        self._width = self.last - self.first + 1
        begins = np.ones(slices.size, np.bool_)
        begins[1:] = (groups[1:] != groups[:-1]) | (codes[1:] != codes[:-1])
        firsts = np.flatnonzero(begins)
        self.groups, self.codes = groups[firsts], codes[firsts]
        # One ascending number per entry finds the range of any run by one binary search.
        self._places = (np.cumsum(begins) - 1) * self._width + (slices - self.first)
        self._ends = np.append(firsts, slices.size)
        self._synopsis = synopsis
        self._slides: list[Slide | None] = [None] * len(columns)
        self.lock = threading.Lock()
        runs = (self.groups, self.codes, self._ends, self.slices)
        self.line = Line((self.first, self.last), runs, columns)

    def __len__(self) -> int:
        return int(self.slices.size)

    @property
    def nbytes(self) -> int:
        """Bytes of the entries, without what is made when asked for."""
        arrays = (self.slices, self.groups, self.codes, self._places, self._ends)
        return sum(a.nbytes for a in arrays) + sum(column.nbytes for column in self.columns)

    def runs(self, groups: Ints | None, wanted: Bools) -> Ints:
        """The runs of some groups (all if None), of cells that are wanted."""
        if groups is None:
            return np.flatnonzero(wanted[self.codes])
        runs = np.flatnonzero(np.isin(self.groups, groups))
        found: Ints = runs[wanted[self.codes[runs]]]
        return found

    def ranges(self, runs: Ints, low: int, high: int) -> tuple[Ints, Ints, Ints]:
        """The runs that have entries in the slices from ``low`` to ``high - 1``, and where."""
        begin = min(max(low - self.first, 0), self._width)
        end = min(max(high - self.first, begin), self._width)
        base = runs * self._width
        starts = np.searchsorted(self._places, base + begin)
        ends = np.searchsorted(self._places, base + end)
        held = ends > starts
        if held.all():
            return runs, starts, ends
        return runs[held], starts[held], ends[held]

    def found(self, groups: Ints, wanted: Bools, low: int, high: int) -> tuple[Ints, Ints, Ints]:
        """As `ranges` of `runs`, for few groups: one search for each."""
        begin = min(max(low - self.first, 0), self._width)
        end = min(max(high - self.first, begin), self._width)
        return _search(
            groups, self.groups, self.codes, self._places, wanted, self._width, begin, end
        )

    def spans(self, group: int, wanted: Bools, low: int, high: int) -> list[tuple[int, int]]:
        """As `ranges`, of one group: where it has entries. No kernel is worth it for one."""
        begin = min(max(low - self.first, 0), self._width)
        end = min(max(high - self.first, begin), self._width)
        found = []
        run = int(self.groups.searchsorted(group))
        while run < self.groups.size and self.groups[run] == group:
            if wanted[self.codes[run]]:
                start, stop = int(self._ends[run]), int(self._ends[run + 1])
                base = run * self._width
                if begin > 0:
                    start = int(self._places.searchsorted(base + begin))
                if end < self._width:
                    stop = int(self._places.searchsorted(base + end))
                if stop > start:
                    found.append((start, stop))
            run += 1
        return found

    def slide(self, column: int) -> Slide:
        """What combines ranges of entries of one column."""
        found = self._slides[column]
        if found is None:
            with self.lock:
                found = self._slides[column]
                if found is None:
                    found = slide_of(self.columns[column], self._synopsis)
                    self._slides[column] = found
        return found

    def entries(self, since: int) -> Entries:
        """The entries of slices from a number on."""
        counts = np.diff(self._ends)
        groups, codes = np.repeat(self.groups, counts), np.repeat(self.codes, counts)
        if since <= self.first:
            return Entries(groups, codes, self.slices, self.columns)
        kept = np.flatnonzero(self.slices >= since)
        with self.lock:
            columns = tuple(column.take(kept) for column in self.columns)
        return Entries(groups[kept], codes[kept], self.slices[kept], columns)


@compiled
def _search(
    groups: Ints,
    run_groups: Ints,
    run_codes: Ints,
    places: Ints,
    wanted: Bools,
    width: int,
    begin: int,
    end: int,
) -> tuple[Ints, Ints, Ints]:
    """The runs of some groups, of wanted cells, that have entries in a range; and where."""
    size = 0
    for i in range(groups.shape[0]):
        run = np.searchsorted(run_groups, groups[i])
        while run < run_groups.shape[0] and run_groups[run] == groups[i]:
            size += 1
            run += 1
    runs, starts, ends = (
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
    )
    count = 0
    for i in range(groups.shape[0]):
        run = np.searchsorted(run_groups, groups[i])
        while run < run_groups.shape[0] and run_groups[run] == groups[i]:
            if wanted[run_codes[run]]:
                start = np.searchsorted(places, run * width + begin)
                stop = np.searchsorted(places, run * width + end)
                if stop > start:
                    runs[count], starts[count], ends[count] = run, start, stop
                    count += 1
            run += 1
    return runs[:count], starts[:count], ends[:count]


def merged(parts: Sequence[Part], pieces: Sequence[Entries]) -> Entries:
    """The entries of several pieces, sorted; those of one group, cell and slice are combined.

    Carries of sums are settled, so that nobody does it while they are read.

    >>> none = np.empty(0, np.int64)
    >>> merged((), [Entries(none, none, none, ())]).slices.tolist()
    []
    """
    groups = np.concatenate([piece.groups for piece in pieces])
    codes = np.concatenate([piece.codes for piece in pieces])
    slices = np.concatenate([piece.slices for piece in pieces])
    if not slices.size:
        return Entries(groups, codes, slices, tuple(empty(part, 0) for part in parts))
    if codes.any():
        numbers, kept = sort_entries(groups, codes, slices - slices.min())
    else:
        numbers, kept = sort_entries(groups, slices, np.empty(0, np.int64))
    columns: list[PartColumn] = []
    for place, part in enumerate(parts):
        if len(pieces) == 1 and kept.size == numbers.size:
            columns.append(pieces[0].columns[place].take(kept))
            continue
        column = empty(part, kept.size)
        column.merge_all(
            np.split(numbers, np.cumsum([piece.slices.size for piece in pieces])[:-1]),
            [piece.columns[place] for piece in pieces],
        )
        columns.append(column)
    for each in columns:
        if isinstance(each, SumColumn):
            each.settle()
    return Entries(groups[kept], codes[kept], slices[kept], tuple(columns))
