"""Answers of ungrouped queries with many predicates.

Rolling up each predicate over each slice costs as much as predicates times slices, however few
windows are asked for. A sweep over time, or a scan for each query, costs as much as is read.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from muntin._typing import Bitmaps, Bools, Ints
from muntin.aggregates.algebra import Lowered
from muntin.aggregates.columns.column import AdditiveColumn, Sums
from muntin.engine.answers.families import Family
from muntin.engine.answers.scan import Scan
from muntin.engine.answers.sweep import Spans, Sweep
from muntin.engine.answers.unmerged import Lanes, Unmerged
from muntin.engine.answers.windows import Asking, ask
from muntin.engine.rows.dictionary import compact
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

    def sums(self, lanes: Lanes, members: Ints) -> Ints:
        """For each run the sum of the entries' rows that its predicate holds in."""


class Runs:
    """The runs of a family over some entries: pairs of query and window, in that order.

    All numbers that are read for the same predicates are summed up together.
    """

    def __init__(self, entries: Unmerged, family: Family, asking: Asking, way: Way) -> None:
        self.asking = asking
        self._entries, self._family, self._way = entries, family, way
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
            columns.append(self._summed(index, lambda *_, found=found: next(found)))
        return lowering.aggregate.lower(columns)

    def _summed(self, index: int, sums: Sums) -> AdditiveColumn:
        columns = self._entries.additive(index)
        assert columns
        return columns[0].summed(sums, columns[1:])

    def _read(self, members: tuple[int, ...]) -> dict[int | None, list[Ints]]:
        """By accumulator, the sums of each of its arrays; by None those of entries."""
        if members in self._sums:
            return self._sums[members]
        arrays: dict[int | None, list[tuple[Ints, ...]]] = {}
        for number, lowering in enumerate(self._family.lowerings):
            if tuple(read[1 + number] for read in self._family.reads) == members:
                for index in lowering.accumulators:
                    arrays[index] = self._arrays(index)
        arrays[None] = [tuple(held[:, None] for held in self._entries.held())]
        lanes = Lanes()
        placed = {
            key: [_placed(lanes, pieces) for pieces in listed] for key, listed in arrays.items()
        }
        places = np.array([self._places[member] for member in members])[self._queries]
        sums = self._way.sums(lanes, places)
        found = {key: [_gathered(sums, each) for each in listed] for key, listed in placed.items()}
        return self._sums.setdefault(members, found)

    def _arrays(self, index: int) -> list[tuple[Ints, ...]]:
        """The arrays that a column's sums are made from, each piece by piece."""
        found: list[tuple[Ints, ...]] = []

        def collect(*rows: Ints) -> Ints:
            found.append(rows)
            return rows[0]

        self._summed(index, collect)
        return found


def _placed(lanes: Lanes, pieces: tuple[Ints, ...]) -> list[int]:
    """The places of an array's columns."""
    return [lanes.place(column) for column in zip(*(rows.T for rows in pieces), strict=True)]


def _gathered(sums: Ints, places: list[int]) -> Ints:
    """The sums of some columns side by side; place -1 is zero."""
    rows = np.zeros((sums.shape[0], len(places)), np.int64)
    for number, place in enumerate(places):
        if place >= 0:
            rows[:, number] = sums[:, place]
    return rows


def find_runs(entries: Unmerged, selection: Cells, family: Family, threads: int = 1) -> Runs | None:
    """The runs of a family; None where rolling up is better, or must be done."""
    if not entries.batches or family.finals[0].query.emit_empty:
        return None
    read = {index for lowering in family.lowerings for index in lowering.accumulators}
    if any(entries.additive(index) is None for index in read):
        return None
    starts, begins = entries.slices
    rolled_up = starts.size * len(family.members)
    asking = ask(family, starts, family.members) if rolled_up > _FEW else None
    if asking is None:
        return None
    way = _cheapest(entries, selection, family, asking, begins, threads)
    return None if _READS * rolled_up < way.cost else Runs(entries, family, asking, way)


def _cheapest(
    entries: Unmerged,
    selection: Cells,
    family: Family,
    asking: Asking,
    begins: Ints,
    threads: int,
) -> Way:
    shape, members = selection.shape, np.array(family.members)
    codes, numbers, distinct = _numbered(entries.codes, shape.size)
    ranks = shape.ranks_of(distinct)
    bitmaps = shape.signatures(ranks)
    scan = None
    if members.size * distinct.size > _MANY and Scan.takes(shape, family.members):
        # What a sweep would read is judged by some of the predicates.
        scan = Scan(asking, begins, codes, numbers, ranks, shape, family.members, threads)
        some = np.arange(0, members.size, -(-members.size // _SOME))
        reads = Spans.of(_truth(bitmaps, members[some])).reads().mean()
        if scan.cost < 2 * reads * asking.members.size:
            return scan
    spans = Spans.of(_truth(bitmaps, members))
    return Sweep(asking, begins, codes, numbers, spans, distinct.size, threads)


def _numbered(codes: list[Ints], size: int) -> tuple[list[Ints], Ints, Ints]:
    """Codes, the number of each among the different ones in order, and these.

    Neighbouring codes become neighbouring cells, so that a range of ranks is a range of cells.

    >>> _numbered([np.array([7, 3])], 8)[1:]
    (array([-1, -1, -1,  0,  0,  0,  0,  1]), array([3, 7]))
    """
    entries = sum(each.size for each in codes)
    if size <= _DENSE * entries:
        seen = np.zeros(size, np.bool_)
        for each in codes:
            seen[each] = True
        return codes, np.cumsum(seen) - 1, np.flatnonzero(seen)
    found, distinct = compact(np.concatenate(codes))
    order = np.argsort(distinct)
    ranks = np.empty_like(order)
    ranks[order] = np.arange(order.size)
    ends = np.cumsum([each.size for each in codes])
    return np.split(found, ends[:-1]), ranks, distinct[order]


def _truth(bitmaps: Bitmaps, members: Ints) -> Bools:
    """Whether some predicates hold in each cell: a row a predicate."""
    bits = bitmaps.T[members >> 3] >> (members & 7).astype(np.uint8)[:, None]
    held: Bools = (bits & np.uint8(1)).view(np.bool_)
    return held
