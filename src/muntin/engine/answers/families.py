"""Families of queries: those that differ only in window and predicate are answered together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.aggregates.columns.column import PartColumn
from muntin.engine.answers.rollup import RolledUp
from muntin.plan.nodes import Final, Lowering, SharedPlan

# Window numbers lie between these: ticks do, and a slide is at least one of them.
FIRST_WINDOW, LAST_WINDOW = -(2**62), 2**62


@dataclass(frozen=True)
class Due:
    """The windows of all queries to answer now: numbers ``first`` to ``last``, in plan order.

    ``gaps`` holds the first window of a gap that EMIT EMPTY has yet to fill, by query.
    """

    first: Ints
    last: Ints
    gaps: Mapping[str, int]


@dataclass(frozen=True)
class Family:
    """Queries that read the same accumulators of one set of partials and show them alike.

    A row of ``windows`` is the range, slide and phase of a query's windows and the numbers of
    the first and the last that is due; ``gap`` the first of a gap to fill, if there is one.
    """

    finals: tuple[Final, ...]
    windows: Ints
    gap: int | None = None

    @property
    def lowerings(self) -> tuple[Lowering, ...]:
        """The aggregates, the same for all but for the predicates they read."""
        return self.finals[0].lowerings

    @property
    def schema(self) -> pa.Schema:
        """The columns of groups and lowered aggregates."""
        return self.finals[0].schema

    @cached_property
    def reads(self) -> tuple[tuple[int, ...], ...]:
        """The predicates that each query reads: its own, and that of each aggregate."""
        return tuple(
            (final.member, *(lowering.member for lowering in final.lowerings))
            for final in self.finals
        )

    @cached_property
    def members(self) -> tuple[int, ...]:
        """The predicates that some query reads, in order."""
        return tuple(sorted(set(chain.from_iterable(self.reads))))


class Source:
    """Partials of the queries of a family, one segment after the other.

    Queries that read the same predicates share a segment. ``filters`` numbers the lowerings by
    the rows they read: 0 for those of the query's own predicate.
    """

    def __init__(self, family: Family, rolled: RolledUp, places: Mapping[int, int]) -> None:
        self._rolled = rolled
        found = {read: tuple(places[each] for each in read) for read in dict.fromkeys(family.reads)}
        keys = [found[read] for read in family.reads]
        distinct = list(found.values())
        own = [(int(rolled.bounds[key[0]]), int(rolled.bounds[key[0] + 1])) for key in distinct]
        offsets = np.cumsum([0, *(high - low for low, high in own)])
        self._members = distinct
        self._own = own
        self._found: dict[int, Ints | None] = {}
        spans = {key: (int(offsets[i]), int(offsets[i + 1])) for i, key in enumerate(distinct)}
        self.filters = _filters(distinct, len(family.lowerings))
        rows = self._rows(0)
        self.groups = rolled.groups if rows is None else rolled.groups[rows]
        self.starts = rolled.starts if rows is None else rolled.starts[rows]
        self.keys = rolled.table.keys
        self.segments = np.array([spans[key] for key in keys], np.int64)

    def _rows(self, number: int) -> Ints | None:
        """The entries that lowerings numbered ``number`` read; None for all as they stand."""
        if number not in self._found:
            self._found[number] = self._find(number)
        return self._found[number]

    def _find(self, number: int) -> Ints | None:
        if not number:
            every: Ints = np.concatenate([np.arange(low, high) for low, high in self._own])
            total = int(self._rolled.starts.size)
            in_order = every.size == total and (every == np.arange(total)).all()
            return None if in_order else every
        lowering = self.filters.index(number)
        found = []
        for key, (low, high) in zip(self._members, self._own, strict=True):
            member = key[1 + lowering]
            first, last = self._rolled.bounds[member], self._rolled.bounds[member + 1]
            wanted, held = self._rolled.slots[low:high], self._rolled.slots[first:last]
            at = np.searchsorted(held, wanted)
            inside = np.minimum(at, max(held.size - 1, 0))
            hit = held[inside] == wanted if held.size else np.zeros(wanted.size, np.bool_)
            # Where a FILTER lets no row through, the entry that holds nothing is read.
            found.append(np.where(hit, first + at, self._rolled.slots.size))
        return np.concatenate(found)

    def column(self, index: int, number: int) -> PartColumn:
        """The partials of one accumulator as lowerings numbered ``number`` read them."""
        rows = self._rows(number)
        column = self._rolled.column(index)
        return column if rows is None else column.take(rows)


def _filters(segments: Sequence[tuple[int, ...]], lowerings: int) -> list[int]:
    """A number for each lowering, the same for those that read the same rows everywhere."""
    numbers: dict[tuple[int, ...], int] = {tuple(key[0] for key in segments): 0}
    return [
        numbers.setdefault(tuple(key[1 + i] for key in segments), len(numbers))
        for i in range(lowerings)
    ]


def families(plan: SharedPlan, due: Due) -> list[Family]:
    """The queries that have windows due, those that are answered alike together."""
    found: dict[int, list[int]] = {}
    for index in np.flatnonzero(due.first <= due.last).tolist():
        if plan.finals[index].name not in plan.elsewhere:
            found.setdefault(plan.families[index], []).append(index)
    result = []
    for members in found.values():
        finals = tuple(plan.finals[index] for index in members)
        bounds = np.column_stack((due.first[members], due.last[members]))
        windows = np.concatenate((plan.windows[members], bounds), axis=1)
        result.append(Family(finals, windows, due.gaps.get(finals[0].name)))
    return result
