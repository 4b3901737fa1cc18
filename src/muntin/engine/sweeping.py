"""Answers of ungrouped queries with many predicates, in one sweep over time.

Rolling up each predicate over each slice costs as much as predicates times slices, however few
windows are asked for. A sweep takes in every entry once, into a running total of its cell; at a
window's edges the totals of the cells that its predicate holds in are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from muntin.aggregates.additive_column import AdditiveColumn
from muntin.aggregates.parts import Lowered
from muntin.engine.asking import Asking, ask
from muntin.engine.families import Family
from muntin.engine.partials import SliceTable
from muntin.engine.rollup import truth_of
from muntin.engine.sweeping_kernels import BLOCK, sweep
from muntin.plan.selection import Cells

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# A slice rolled up for a predicate takes as long as reading so many totals.
_READS = 32
# So few of them are rolled up in no time.
_FEW = 1 << 12


@dataclass(frozen=True)
class Spans:
    """The cells that each predicate holds in, as ranges; those of member m from ``firsts[m]`` on.

    >>> spans = Spans.of(np.array([[True, True, False, True], [False, False, False, True]]))
    >>> spans.bounds.tolist(), spans.firsts.tolist()
    ([[0, 2], [3, 4], [3, 4]], [0, 2, 3])
    """

    bounds: Ints
    firsts: Ints

    @classmethod
    def of(cls, held: Bools) -> Spans:
        """The ranges of a table with a row a predicate and a column a cell."""
        padded = np.zeros((held.shape[0], held.shape[1] + 2), np.int8)
        padded[:, 1:-1] = held
        steps = np.diff(padded, axis=1)
        members, lows = np.nonzero(steps == 1)
        highs = np.nonzero(steps == -1)[1]
        firsts = np.searchsorted(members, np.arange(held.shape[0] + 1))
        return cls(np.column_stack((lows, highs)), firsts)


def reads_of(held: Bools) -> Ints:
    """How many totals are read for each predicate: whole blocks of cells, and single ones."""
    spans = Spans.of(held)
    lows, highs = spans.bounds.T
    firsts, lasts = (lows + BLOCK - 1) // BLOCK, highs // BLOCK
    reads = np.where(
        firsts < lasts, lasts - firsts + firsts * BLOCK - lows + highs - lasts * BLOCK, highs - lows
    )
    totals = np.concatenate(([0], np.cumsum(reads)))
    return totals[spans.firsts[1:]] - totals[spans.firsts[:-1]]


class Sweep:
    """The runs of a family over one table: pairs of query and window, in that order.

    ``steps`` counts its aggregations: a step of a running total is one, and so is each total that
    is read.
    """

    def __init__(
        self,
        table: SliceTable,
        family: Family,
        asking: Asking,
        begins: Ints,
        cells: Ints,
        held: Bools,
    ) -> None:
        self.asking = asking
        self.steps = int(cells.size + 2 * reads_of(held)[asking.members].sum())
        self._table = table
        self._family = family
        self._places = {member: place for place, member in enumerate(family.members)}
        self._queries = np.repeat(np.arange(len(family.finals)), np.diff(asking.offsets))
        edges = asking.lows[asking.windows], asking.highs[asking.windows]
        self._edges = begins[np.concatenate(edges)]
        self._order = np.argsort(self._edges, kind="stable")
        self._cells, self._size = cells, held.shape[1]
        self._spans = Spans.of(held)

    def entries(self) -> Ints:
        """For each run, the number of entries of its window that satisfy its predicate."""
        return self._sums(np.ones((self._cells.size, 1), np.int64), self.asking.members)[:, 0]

    def lower(self, number: int) -> Lowered:
        """The aggregate of that number, run by run, with the predicate it is filtered by."""
        own = [self._places[read[1 + number]] for read in self._family.reads]
        members = np.array(own)[self._queries]
        lowering = self._family.lowerings[number]
        columns = [
            cast("AdditiveColumn", self._table.columns[index]).summed(
                lambda rows: self._sums(rows, members)
            )
            for index in lowering.accumulators
        ]
        return lowering.aggregate.lower(columns)

    def _sums(self, rows: Ints, members: Ints) -> Ints:
        firsts = self._spans.firsts
        places = np.column_stack((firsts[members], firsts[members + 1]))
        return sweep(
            rows, self._cells, self._size, self._edges, self._order, self._spans.bounds, places
        )


def make_sweep(table: SliceTable, selection: Cells, family: Family) -> Sweep | None:
    """The sweep of a family; None where another way is better or must be taken."""
    if table.keys or table.codes is None or family.finals[0].query.emit_empty:
        return None
    read = {index for lowering in family.lowerings for index in lowering.accumulators}
    if not all(isinstance(table.columns[index], AdditiveColumn) for index in read):
        return None
    starts, begins = np.unique(table.starts, return_index=True)
    members = family.members
    rolled_up = starts.size * len(members)
    asking = ask(family, starts, members) if rolled_up > _FEW else None
    if asking is None:
        return None
    cells, held = truth_of(table, selection, members)
    # Neighbouring codes become neighbouring cells, so that a range of ranks is a range of cells.
    codes = np.empty(held.shape[1], np.int64)
    codes[cells] = table.codes
    order = np.argsort(codes)
    ranks = np.empty_like(order)
    ranks[order] = np.arange(order.size)
    held = held[:, order]
    if _READS * rolled_up < 2 * reads_of(held)[asking.members].sum():
        return None
    begins = np.append(begins, table.starts.size)
    return Sweep(table, family, asking, begins, ranks[cells], held)
