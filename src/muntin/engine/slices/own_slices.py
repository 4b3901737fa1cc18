"""Any final technique over the slices of one query's own edges, for all groups at once.

A technique combines partials and does not ask what they are. Here a partial is a column: the
accumulators of all groups that have rows in a slice. So the techniques of `muntin.aggregators`
run as they are, and one step of theirs serves every group.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates import Aggregate
from muntin.aggregates.additive_column import AdditiveColumn
from muntin.aggregates.column import PartColumn
from muntin.aggregates.columns import empty
from muntin.aggregates.count_column import CountColumn
from muntin.aggregates.parts import Part
from muntin.aggregates.sum_column import SumColumn
from muntin.aggregators import create
from muntin.engine.slices.open_log import Run
from muntin.engine.slices.places import Chains
from muntin.windows import EdgeClass, Window
from muntin.windows.cut import slice_starts

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Slotted(NamedTuple):
    """Accumulators of some slots, which rise."""

    slots: Ints
    column: PartColumn


class GroupedPart(Aggregate):
    """A part of an aggregate over all groups, as techniques see it."""

    name = "grouped"

    def __init__(self, part: Part) -> None:
        self.part = part
        self.name = part.kind  # type: ignore[misc]
        self.invertible = part.invertible  # type: ignore[misc]
        self.steps = 0

    @property
    def identity(self) -> Slotted:
        """No group has any rows."""
        return Slotted(np.empty(0, np.int64), empty(self.part, 0))

    def lift(self, value: Any) -> Slotted:
        """Partials come as they are."""
        return value  # type: ignore[no-any-return]

    def combine(self, a: Slotted, b: Slotted) -> Slotted:
        """The groups of both, those in both combined."""
        if not a.slots.size or not b.slots.size:
            return b if b.slots.size else a
        slots = np.union1d(a.slots, b.slots)
        column = empty(self.part, slots.size)
        column.merge(np.searchsorted(slots, a.slots), a.column)
        column.merge(np.searchsorted(slots, b.slots), b.column)
        self.steps += int(a.slots.size + b.slots.size - slots.size)
        return Slotted(slots, column)

    def inverse(self, a: Slotted, b: Slotted) -> Slotted:
        """The sums of ``a`` without those of ``b``, whose groups are all there."""
        if not b.slots.size:
            return a
        column = a.column.take(np.arange(a.slots.size))
        column.merge(np.searchsorted(a.slots, b.slots), _negative(b.column))
        self.steps += int(b.slots.size)
        return Slotted(a.slots, column)

    def lower(self, partial: Slotted) -> Slotted:
        """Groups are lowered later, all windows at once."""
        return partial

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """Not asked for: the aggregate that reads the part knows it."""
        return pa.null()


def _negative(column: PartColumn) -> PartColumn:
    assert isinstance(column, AdditiveColumn)
    negative = column.take(np.arange(len(column)))
    if isinstance(negative, CountColumn):
        negative.counts = -negative.counts
    elif isinstance(negative, SumColumn):
        negative.negate()
        if negative.specials is not None:
            negative.specials = -negative.specials
    return negative


class OwnSlices:
    """One part of one predicate over one query's windows, by one technique.

    Entries are gathered into slices that only this query's windows cut; each is handed to the
    technique when the first window that covers it is due.
    """

    def __init__(self, technique: str, part: Part, window: Window, member: int) -> None:
        self.technique = technique
        self.member = member
        self._part = part
        self._classes = np.array(window.edge_classes(), np.int64)
        self._operator = GroupedPart(part)
        self._aggregator = create(technique, self._operator)
        self._waiting: deque[tuple[int, Slotted]] = deque()
        self.gathered = 0

    @property
    def steps(self) -> int:
        """Aggregations along time, counted for every group."""
        return self._operator.steps

    def feed(self, run: Run, index: int, chains: Chains, held: Bools) -> None:
        """Gather sealed entries of accumulator number ``index``, which are in order of time."""
        kept = np.flatnonzero(held[self.member, chains.cells[run.places]])
        if not kept.size:
            return
        starts = slice_starts(run.starts[kept], self._classes)
        slots = chains.slots[run.places[kept]].astype(np.int64)
        order = np.lexsort((slots, starts))
        starts, slots = starts[order], slots[order]
        fresh = np.ones(starts.size, np.bool_)
        fresh[1:] = (np.diff(starts) != 0) | (np.diff(slots) != 0)
        numbers = np.cumsum(fresh) - 1
        column = empty(self._part, int(numbers[-1]) + 1)
        column.merge(numbers, run.columns[index].take(kept[order]))
        self.gathered += int(starts.size - numbers[-1] - 1)
        starts, slots = starts[fresh], slots[fresh]
        bounds = np.append(np.flatnonzero(np.diff(starts, prepend=starts[0] - 1)), starts.size)
        for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            piece = Slotted(slots[low:high], column.take(np.arange(low, high)))
            self._add(int(starts[low]), piece)

    def _add(self, start: int, piece: Slotted) -> None:
        if self._waiting and self._waiting[-1][0] == start:
            before = self._operator.steps
            piece = self._operator.combine(self._waiting.pop()[1], piece)
            # What makes up a slice of this query's own is no work along time.
            self.gathered += self._operator.steps - before
            self._operator.steps = before
        self._waiting.append((start, piece))

    def window(self, start: int, end: int) -> Slotted:
        """The accumulators of all groups over one window; windows come in order."""
        while self._waiting and self._waiting[0][0] < end:
            at, piece = self._waiting.popleft()
            self._aggregator.insert(piece, at)
        self._aggregator.evict(start)
        found: Slotted = self._aggregator.query(start)
        return found

    @property
    def edges(self) -> tuple[EdgeClass, ...]:
        """Where this query cuts time."""
        return tuple((int(period), int(phase)) for period, phase in self._classes)


def read_slots(part: Part, found: Slotted, slots: Ints) -> PartColumn:
    """The accumulators of some slots; the identity for those that have no rows."""
    column = found.column.take(np.arange(found.slots.size))
    column.resize(found.slots.size + 1)
    at = np.searchsorted(found.slots, slots)
    inside = np.minimum(at, max(found.slots.size - 1, 0))
    hit = found.slots[inside] == slots if found.slots.size else np.zeros(slots.size, np.bool_)
    return column.take(np.where(hit, at, found.slots.size))
