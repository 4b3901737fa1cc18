"""Answers of ungrouped queries with many predicates.

Rolling up each predicate over each slice costs as much as predicates times slices, however few
windows are asked for. A sweep over time, or a scan for each query, costs as much as is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, cast

import numpy as np

from muntin._typing import Bitmaps, Bools, Ints
from muntin.aggregates.algebra import Lowered
from muntin.aggregates.columns.column import AdditiveColumn, Sums
from muntin.aggregates.columns.counts import CountColumn
from muntin.engine.answers.families import Family
from muntin.engine.answers.scan import Scan
from muntin.engine.answers.sweep import LANES, Spans, Sweep
from muntin.engine.answers.windows import Asking, ask
from muntin.engine.rows.dictionary import compact
from muntin.engine.slices.partials import SliceTable
from muntin.plan.selection import Cells

# A slice rolled up for a predicate takes as long as reading so many totals.
_READS = 32
# So few of them are rolled up in no time.
_FEW = 1 << 12
# Where predicates hold in so many cells together, scans are weighed; by some of the predicates.
_MANY = 1 << 16
_SOME = 16
# A table of all codes there can be beats hashing while it is as large as a few times the entries.
_DENSE = 4


class Way(Protocol):
    """A way to sum up entries: a sweep, or scans."""

    @property
    def steps(self) -> int:
        """How many aggregations it takes."""

    @property
    def cost(self) -> float:
        """How many totals are read in the same time."""

    def sums(self, rows: Ints, members: Ints) -> Ints:
        """For each run the sum of the entries' rows that its predicate holds in."""


class Runs:
    """The runs of a family over one table: pairs of query and window, in that order.

    All numbers that are read for the same predicates are summed up together.
    """

    def __init__(self, table: SliceTable, family: Family, asking: Asking, way: Way) -> None:
        self.asking = asking
        self._table, self._family, self._way = table, family, way
        self._places = {member: place for place, member in enumerate(family.members)}
        self._queries = np.repeat(np.arange(len(family.finals)), np.diff(asking.offsets))
        self._sums: dict[tuple[int, ...], dict[int | None, list[Ints]]] = {}

    @property
    def steps(self) -> int:
        """How many aggregations were done."""
        return self._way.steps

    def entries(self) -> Ints:
        """For each run, a number above zero where entries of its window satisfy its predicate."""
        own = tuple(read[0] for read in self._family.reads)
        return self._read(own)[None][0][:, 0]

    def lower(self, number: int) -> Lowered:
        """The aggregate of that number, run by run, with the predicate it is filtered by."""
        members = tuple(read[1 + number] for read in self._family.reads)
        lowering = self._family.lowerings[number]
        columns = []
        for index in lowering.accumulators:
            found = iter(self._read(members)[index])
            columns.append(self._column(index).summed(_given(found)))
        return lowering.aggregate.lower(columns)

    def _column(self, index: int) -> AdditiveColumn:
        return cast("AdditiveColumn", self._table.columns[index])

    def _read(self, members: tuple[int, ...]) -> dict[int | None, list[Ints]]:
        """By accumulator, the sums of each of its arrays; by None those of entries."""
        if members in self._sums:
            return self._sums[members]
        arrays: dict[int | None, list[Ints]] = {}
        for number, lowering in enumerate(self._family.lowerings):
            if tuple(read[1 + number] for read in self._family.reads) == members:
                for index in lowering.accumulators:
                    arrays[index] = self._arrays(index)
        arrays[None] = [self._held()]
        lanes = _Lanes()
        placed = {
            key: [[lanes.place(column) for column in rows.T] for rows in listed]
            for key, listed in arrays.items()
        }
        places = np.array([self._places[member] for member in members])[self._queries]
        sums = self._way.sums(lanes.rows(self._table.starts.size), places)
        found = {key: [_gathered(sums, each) for each in listed] for key, listed in placed.items()}
        return self._sums.setdefault(members, found)

    def _arrays(self, index: int) -> list[Ints]:
        """The arrays that a column's sums are made from."""
        found: list[Ints] = []

        def collect(rows: Ints) -> Ints:
            found.append(rows)
            return rows

        self._column(index).summed(collect)
        return found

    def _held(self) -> Ints:
        """A number above zero for every entry: how many rows it holds, or one."""
        rows = self._table.columns[0]
        if isinstance(rows, CountColumn) and rows.counts.min(initial=1) > 0:
            return rows.counts[:, None]
        return np.ones((self._table.starts.size, 1), np.int64)


def _gathered(sums: Ints, places: list[int]) -> Ints:
    """The sums of some columns side by side; place -1 is zero."""
    rows = np.zeros((sums.shape[0], len(places)), np.int64)
    for number, place in enumerate(places):
        if place >= 0:
            rows[:, number] = sums[:, place]
    return rows


def _given(found: Iterator[Ints]) -> Sums:
    """Sums that are there already, array by array."""
    return lambda _: next(found)


class _Lanes:
    """Columns of integers, each once, without those that are zero."""

    def __init__(self) -> None:
        self._held: list[Ints] = []

    def place(self, column: Ints) -> int:
        """The place of a column; -1 if it is all zero."""
        if not column.any():
            return -1
        for place, held in enumerate(self._held):
            # Equal columns are counts of the same rows, and unequal ones differ soon.
            if np.array_equal(held[:64], column[:64]) and np.array_equal(held, column):
                return place
        self._held.append(column)
        return len(self._held) - 1

    def rows(self, size: int) -> Ints:
        """All columns side by side, and zeros behind them: a multiple of four."""
        rows = np.empty((size, -(-len(self._held) // LANES) * LANES), np.int64)
        for place, column in enumerate(self._held):
            rows[:, place] = column
        rows[:, len(self._held) :] = 0
        return rows


def find_runs(table: SliceTable, selection: Cells, family: Family) -> Runs | None:
    """The runs of a family; None where rolling up is better, or must be done."""
    if table.keys or table.codes is None or family.finals[0].query.emit_empty:
        return None
    read = {index for lowering in family.lowerings for index in lowering.accumulators}
    if not all(isinstance(table.columns[index], AdditiveColumn) for index in read):
        return None
    # Entries of a table without groups are in order of time.
    begins = np.flatnonzero(np.diff(table.starts, prepend=table.starts[:1] - 1))
    rolled_up = begins.size * len(family.members)
    starts = table.starts[begins]
    asking = ask(family, starts, family.members) if rolled_up > _FEW else None
    if asking is None:
        return None
    way = _cheapest(table, selection, family, asking, np.append(begins, table.starts.size))
    return None if _READS * rolled_up < way.cost else Runs(table, family, asking, way)


def _cheapest(
    table: SliceTable, selection: Cells, family: Family, asking: Asking, begins: Ints
) -> Way:
    assert table.codes is not None
    shape, members = selection.shape, np.array(family.members)
    cells, distinct = _numbered(table.codes, shape.size)
    bitmaps = shape.signatures(shape.ranks_of(distinct))
    scan = None
    if members.size * distinct.size > _MANY and Scan.takes(shape, family.members):
        # What a sweep would read is judged by some of the predicates.
        scan = Scan(asking, begins, table.codes, shape, family.members)
        some = np.arange(0, members.size, -(-members.size // _SOME))
        reads = Spans.of(_truth(bitmaps, members[some])).reads().mean()
        if scan.cost < 2 * reads * asking.members.size:
            return scan
    spans = Spans.of(_truth(bitmaps, members))
    return Sweep(asking, begins, cells, spans, distinct.size)


def _numbered(codes: Ints, size: int) -> tuple[Ints, Ints]:
    """The number of each code among the different ones in order, and these.

    Neighbouring codes become neighbouring cells, so that a range of ranks is a range of cells.
    """
    if size <= _DENSE * codes.size:
        seen = np.zeros(size, np.bool_)
        seen[codes] = True
        return (np.cumsum(seen) - 1)[codes], np.flatnonzero(seen)
    numbers, distinct = compact(codes)
    order = np.argsort(distinct)
    ranks = np.empty_like(order)
    ranks[order] = np.arange(order.size)
    return ranks[numbers], distinct[order]


def _truth(bitmaps: Bitmaps, members: Ints) -> Bools:
    """Whether some predicates hold in each cell: a row a predicate."""
    bits = bitmaps.T[members >> 3] >> (members & 7).astype(np.uint8)[:, None]
    held: Bools = (bits & np.uint8(1)).view(np.bool_)
    return held
