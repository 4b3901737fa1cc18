"""Structures of the final techniques over many groups at once.

A technique combines partials and does not ask what they are. Here a partial is a column: the
accumulators of all groups that have rows in a slice. So the techniques of `muntin.aggregators`
run as they are, and one step of theirs serves every group. Two of them have kernels of their own
for built-in parts; those that look at values run a group at a time.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.aggregates import Aggregate
from muntin.aggregates.algebra import FREQUENT, USER, Part
from muntin.aggregates.columns.by_part import empty
from muntin.aggregates.columns.column import AdditiveColumn, PartColumn
from muntin.aggregates.columns.counts import CountColumn
from muntin.aggregates.columns.holistic.frequent import FrequentColumn
from muntin.aggregates.columns.objects import ObjectColumn
from muntin.aggregates.columns.sums import SumColumn
from muntin.aggregates.registry import registered
from muntin.aggregators import Aggregator, create, info
from muntin.engine.slices.finals.extremes import Extremes
from muntin.engine.slices.finals.totals import Totals
from muntin.engine.slices.open_log import Run
from muntin.engine.slices.places import Chains, Spans
from muntin.engine.slices.sealed_log import SealedLog

# Techniques with kernels over all groups of built-in parts.
_KERNELS = ("running_totals", "slickdeque_noninv")
_FEW = 64


class Slotted(NamedTuple):
    """Accumulators of some slots, which rise."""

    slots: Ints
    column: PartColumn

    def combined(self, later: Slotted, part: Part) -> Slotted:
        """The groups of both, those in both combined."""
        if not self.slots.size or not later.slots.size:
            return later if later.slots.size else self
        slots = np.union1d(self.slots, later.slots)
        column = empty(part, slots.size)
        column.merge(np.searchsorted(slots, self.slots), self.column)
        column.merge(np.searchsorted(slots, later.slots), later.column)
        return Slotted(slots, column)

    def read(self, slots: Ints) -> PartColumn:
        """The accumulators of some slots; the identity for those that have no rows."""
        column = self.column.take(np.arange(self.slots.size))
        column.resize(self.slots.size + 1)
        at = np.searchsorted(self.slots, slots)
        inside = np.minimum(at, max(self.slots.size - 1, 0))
        hit = self.slots[inside] == slots if self.slots.size else np.zeros(slots.size, np.bool_)
        return column.take(np.where(hit, at, self.slots.size))


class Structure(Protocol):
    """What a technique keeps of slices; ``steps`` counts aggregations for every group."""

    @property
    def steps(self) -> int:
        """Aggregations so far."""

    def push(self, at: int, piece: Slotted) -> None:
        """Take in the slice that starts at a tick."""

    def evict(self, before: int) -> None:
        """Let go of slices that start before a tick."""

    def read(self, since: int, slots: Ints) -> PartColumn:
        """The accumulators of some groups over the slices from a tick on."""


def structure(technique: str, part: Part) -> Structure:
    """The structure of a technique over a part."""
    if part.kind.startswith(FREQUENT):
        return FrequentLists(part)
    if technique in _KERNELS and part.shared:
        return SlotLog(part)
    if info(technique).needs == "selective":
        return GroupByGroup(technique, part)
    return Columns(technique, part)


class GroupedPart(Aggregate):
    """A part of an aggregate over all groups, as techniques see it."""

    name = "grouped"

    def __init__(self, part: Part) -> None:
        self.part = part
        self._own = registered(part.kind.removeprefix(USER)) if part.kind.startswith(USER) else None
        self.name = part.kind  # type: ignore[misc]
        self.invertible = part.invertible if self._own is None else self._own.invertible  # type: ignore[misc]
        self.commutative = self._own is None or self._own.commutative  # type: ignore[misc]
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
        both = a.combined(b, self.part)
        self.steps += int(a.slots.size + b.slots.size - both.slots.size)
        return both

    def inverse(self, a: Slotted, b: Slotted) -> Slotted:
        """The groups of ``a`` without the rows of ``b``, whose groups are all there."""
        if not b.slots.size:
            return a
        column = a.column.take(np.arange(a.slots.size))
        at = np.searchsorted(a.slots, b.slots)
        if isinstance(column, ObjectColumn):
            assert isinstance(b.column, ObjectColumn)
            for cell, partial in zip(at.tolist(), b.column.partials, strict=True):
                column.partials[cell] = column.aggregate.inverse(column.partials[cell], partial)
        else:
            column.merge(at, _negative(b.column))
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


class Columns:
    """One aggregator whose partials are columns of all groups."""

    def __init__(self, technique: str, part: Part) -> None:
        self._operator = GroupedPart(part)
        self._aggregator = create(technique, self._operator)

    @property
    def steps(self) -> int:
        """Aggregations, counted for every group."""
        return self._operator.steps

    def push(self, at: int, piece: Slotted) -> None:
        """Take in the slice that starts at a tick."""
        self._aggregator.insert_partial(piece, at)

    def evict(self, before: int) -> None:
        """Let go of slices that start before a tick."""
        self._aggregator.evict(before)

    def read(self, since: int, slots: Ints) -> PartColumn:
        """The accumulators of some groups over the slices from a tick on."""
        found: Slotted = self._aggregator.query(since)
        return found.read(slots)


class FrequentLists:
    """Lists of frequent values of each slice, added when it enters and taken off when it leaves.

    A slice is truncated once, when all its rows are there and the predicate's cells are together:
    what other queries cut makes no difference. Golab 2006, Algorithm 6.
    """

    def __init__(self, part: Part) -> None:
        self._part = part
        self._slices: deque[tuple[int, Slotted]] = deque()
        self._whole = Slotted(np.empty(0, np.int64), empty(part, 0))
        self.steps = 0

    def push(self, at: int, piece: Slotted) -> None:
        """Take in the slice that starts at a tick."""
        column = piece.column.take(np.arange(piece.slots.size))
        assert isinstance(column, FrequentColumn)
        column.seal()
        lists = Slotted(piece.slots, column)
        self._slices.append((at, lists))
        self._whole = self._whole.combined(lists, self._part)
        self.steps += int(piece.slots.size)

    def evict(self, before: int) -> None:
        """Let go of slices that start before a tick."""
        whole, gone = self._whole, False
        while self._slices and self._slices[0][0] < before:
            _, lists = self._slices.popleft()
            assert isinstance(lists.column, FrequentColumn)
            # Groups without any value are not held.
            places = np.searchsorted(whole.slots, lists.slots)
            held = np.isin(lists.slots, whole.slots, assume_unique=True)
            whole.column.merge(np.where(held, places, -1), lists.column.negative())
            self.steps += int(lists.slots.size)
            gone = True
        if gone:
            assert isinstance(whole.column, FrequentColumn)
            left = np.flatnonzero(whole.column.totals)
            column = whole.column.take(left)
            column.tidy()
            self._whole = Slotted(whole.slots[left], column)

    def read(self, since: int, slots: Ints) -> PartColumn:
        """The lists of some groups over the slices from a tick on, which are all that there are."""
        return self._whole.read(slots)


class _Slots:
    """Places that are slots: one each, all of one cell."""

    groups = None

    def __init__(self) -> None:
        self.count = self.slots = 0
        none = np.zeros(0, np.int32)
        self.chains = Chains(none, none, none, none)

    def reserve(self, count: int) -> None:
        """Have so many slots at least."""
        self.count = self.slots = max(count, self.count)
        if count > self.chains.firsts.size:
            size = max(count, 2 * self.chains.firsts.size, _FEW)
            each, zeros = np.arange(size, dtype=np.int32), np.zeros(size, np.int32)
            self.chains = Chains(each, np.full(size, -1, np.int32), each.copy(), zeros)


class SlotLog:
    """A log of a query's own slices, with the kernels that the shared slices have."""

    def __init__(self, part: Part) -> None:
        self._places = _Slots()
        self._log = SealedLog(self._places, [part])
        self.steps = 0
        self._held = np.ones((1, 1), np.bool_)

    def push(self, at: int, piece: Slotted) -> None:
        """Take in the slice that starts at a tick."""
        self._places.reserve(int(piece.slots[-1]) + 1)
        starts = np.full(piece.slots.size, at, np.int64)
        self.steps += self._log.append(Run(starts, piece.slots, (piece.column,)))

    def evict(self, before: int) -> None:
        """Let go of slices that start before a tick."""
        self._log.evict(before)

    def read(self, since: int, slots: Ints) -> PartColumn:
        """The accumulators of some groups over the slices from a tick on."""
        log = self._log
        if slots.size:
            self._places.reserve(int(slots.max()) + 1)
            log.reserve(0)
        low = int(log.positions(np.array([since]))[0])
        zeros = np.zeros(slots.size, np.int64)
        spans = Spans(slots, zeros, zeros + low, zeros + log.end)
        column = log.columns[0]
        assert isinstance(column, Totals | Extremes)
        found, steps, _ = column.read(log.trail, log.lasts, self._places.chains, self._held, spans)
        self.steps += steps
        return found


class _OneCell(Aggregate):
    """A selective part of a single group, as techniques see it that look at values."""

    name = "one cell"
    selective = True

    def __init__(self, part: Part) -> None:
        self.part = part
        self.name = part.kind  # type: ignore[misc]

    @property
    def identity(self) -> PartColumn:
        """No rows."""
        return empty(self.part, 1)

    def lift(self, value: Any) -> PartColumn:
        """Partials come as they are."""
        return value  # type: ignore[no-any-return]

    def combine(self, a: PartColumn, b: PartColumn) -> PartColumn:
        """The one that is selected, itself."""
        first = np.zeros(1, np.int64)
        both = a.take(first)
        both.merge(first, b)
        return b if both.to_arrow().equals(b.take(first).to_arrow()) else a

    def lower(self, partial: PartColumn) -> PartColumn:
        """Groups are lowered later."""
        return partial

    def result_type(self, types: tuple[pa.DataType, ...]) -> pa.DataType:
        """Not asked for."""
        return pa.null()


class GroupByGroup:
    """An aggregator for each group, for techniques whose steps depend on values."""

    def __init__(self, technique: str, part: Part) -> None:
        self._technique, self._part = technique, part
        is_user = part.kind.startswith(USER)
        self._aggregate = registered(part.kind.removeprefix(USER)) if is_user else _OneCell(part)
        self._groups: dict[int, Aggregator] = {}
        self._before = -(2**62)
        self.steps = 0

    def push(self, at: int, piece: Slotted) -> None:
        """Take in the slice that starts at a tick."""
        for i, slot in enumerate(piece.slots.tolist()):
            if slot not in self._groups:
                self._groups[slot] = create(self._technique, self._aggregate)
            group = self._groups[slot]
            before = group.operations
            group.evict(self._before)
            group.insert_partial(self._cell(piece.column, i), at)
            self.steps += group.operations - before

    def _cell(self, column: PartColumn, at: int) -> Any:
        return (
            column.partials[at] if isinstance(column, ObjectColumn) else column.take(np.array([at]))
        )

    def evict(self, before: int) -> None:
        """Let go of slices that start before a tick, when a group is next asked for."""
        self._before = before

    def read(self, since: int, slots: Ints) -> PartColumn:
        """The accumulators of some groups over the slices from a tick on."""
        if len(self._groups) > _FEW + 2 * slots.size:
            self._forget()
        found = empty(self._part, slots.size)
        for i, slot in enumerate(slots.tolist()):
            group = self._groups.get(slot)
            if group is None:
                continue
            before = group.operations
            group.evict(self._before)
            partial = group.partial(since)
            self.steps += group.operations - before
            if isinstance(found, ObjectColumn):
                found.partials[i] = partial
            else:
                found.merge(np.array([i]), partial)
        return found

    def _forget(self) -> None:
        """Let go of groups that no window holds."""
        for slot, group in list(self._groups.items()):
            group.evict(self._before)
            if not group.size:
                del self._groups[slot]
