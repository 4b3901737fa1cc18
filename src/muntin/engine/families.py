"""Families of queries: those that differ only in window and predicate are answered together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates.column import PartColumn
from muntin.engine.rollup import RolledUp
from muntin.plan.nodes import Final, Lowering

Ints = npt.NDArray[np.int64]

# Window numbers lie between these: ticks do, and a slide is at least one of them.
FIRST_WINDOW, LAST_WINDOW = -(2**62), 2**62


@dataclass(frozen=True)
class Due:
    """The windows of a query to answer now: numbers ``first`` to ``last``.

    ``gap`` is the first window of a gap that EMIT EMPTY has yet to fill, if there may be one.
    """

    first: int = FIRST_WINDOW
    last: int = LAST_WINDOW
    gap: int | None = None


@dataclass(frozen=True)
class Asked:
    """A query, and which of its windows are due."""

    final: Final
    due: Due


@dataclass(frozen=True)
class Family:
    """Queries that read the same accumulators of one set of partials and show them alike."""

    asked: tuple[Asked, ...]

    @property
    def lowerings(self) -> tuple[Lowering, ...]:
        """The aggregates, the same for all but for the predicates they read."""
        return self.asked[0].final.lowerings

    @property
    def schema(self) -> pa.Schema:
        """The columns of groups and lowered aggregates."""
        return self.asked[0].final.schema

    @property
    def groups(self) -> tuple[int, ...]:
        """The places of the group columns in the partials' grouping."""
        return self.asked[0].final.groups

    def members(self) -> list[int]:
        """The predicates that some query reads, in order."""
        return sorted({member for each in self.asked for member in _members(each.final)})

    def source(self, rolled: RolledUp, places: Mapping[int, int]) -> Source:
        """The partials that the family's windows are made of."""
        return Source(self, rolled, places)


class Source:
    """Partials of the queries of a family, one segment after the other.

    Queries that read the same predicates share a segment. ``filters`` numbers the lowerings by
    the rows they read: 0 for those of the query's own predicate.
    """

    def __init__(self, family: Family, rolled: RolledUp, places: Mapping[int, int]) -> None:
        self._rolled = rolled
        keys = [tuple(places[m] for m in _members(each.final)) for each in family.asked]
        distinct = list(dict.fromkeys(keys))
        own = [(int(rolled.bounds[key[0]]), int(rolled.bounds[key[0] + 1])) for key in distinct]
        offsets = np.cumsum([0, *(high - low for low, high in own)])
        self._members = distinct
        self._own = own
        spans = {key: (int(offsets[i]), int(offsets[i + 1])) for i, key in enumerate(distinct)}
        self.filters = _filters(distinct, len(family.lowerings))
        rows = self._rows(0)
        self.groups = rolled.groups if rows is None else rolled.groups[rows]
        self.starts = rolled.starts if rows is None else rolled.starts[rows]
        self.keys = rolled.table.keys
        self.segments = [spans[key] for key in keys]

    def _rows(self, number: int) -> Ints | None:
        """The entries that lowerings numbered ``number`` read; None for all as they stand."""
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

    def column(self, index: int, lowering: int) -> PartColumn:
        """The partials of one accumulator as one lowering reads them."""
        rows = self._rows(self.filters[lowering])
        column = self._rolled.column(index)
        return column if rows is None else column.take(rows)


def _members(final: Final) -> tuple[int, ...]:
    """The predicates a query reads: its own, and that of each aggregate."""
    return (final.member, *(lowering.member for lowering in final.lowerings))


def _filters(segments: Sequence[tuple[int, ...]], lowerings: int) -> list[int]:
    """A number for each lowering, the same for those that read the same rows everywhere."""
    numbers: dict[tuple[int, ...], int] = {tuple(key[0] for key in segments): 0}
    return [
        numbers.setdefault(tuple(key[1 + i] for key in segments), len(numbers))
        for i in range(lowerings)
    ]


def families(asked: Iterable[Asked]) -> list[Family]:
    """Queries of one set of partials, those that are answered alike together."""
    found: dict[tuple[object, ...], list[Asked]] = {}
    for each in asked:
        final = each.final
        # Filling gaps is done query by query.
        alone = final.name if final.query.emit_empty else None
        own = tuple(lowering.member == final.member for lowering in final.lowerings)
        found.setdefault((alone, own, _pattern(final)), []).append(each)
    return [Family(tuple(members)) for members in found.values()]


def _pattern(final: Final) -> tuple[object, ...]:
    """What queries of a family have in common."""
    lowerings = tuple((each.name, each.aggregate, each.accumulators) for each in final.lowerings)
    shown = tuple(output.value for output in final.outputs)
    columns = (tuple(final.schema.names), tuple(final.schema.types))
    return lowerings, shown, final.having, final.groups, columns
