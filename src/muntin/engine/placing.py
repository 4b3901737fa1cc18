"""Answers of grouped queries, written in their final order: by query, window and group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates.column import Bools, PartColumn
from muntin.aggregates.count_column import CountColumn
from muntin.aggregates.exact_pairs import pairs_of, scales
from muntin.aggregates.parts import Lowered
from muntin.aggregates.sum_column import SumColumn
from muntin.engine.asking import Asking, ask
from muntin.engine.encoding import compact
from muntin.engine.families import Family
from muntin.engine.partials import SliceTable
from muntin.engine.placing_kernels import Asked, Slots, count_rows, lay_out, write_rows
from muntin.engine.rollup import truth_of
from muntin.engine.taking import take_once
from muntin.plan.nodes import Lowering
from muntin.plan.selection import Cells

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]

# Windows of so many groups together, in numbers of four bytes, stay in the cache.
_BLOCK = 1 << 15
# Beyond these, other ways are better: entries of all predicates, windows of a group per entry.
_MOST_QUESTIONS = 1 << 28
_MOST_RUNS = 1 << 22
_MOST_WINDOWS = 64
_READ = {"count", "count_if", "sum", "avg"}
_NO_FACTORS = np.empty(0)
_NO_OWNERS = np.empty(0, np.int32)


class Placer:
    """Places the rows of families over one table of partials with groups."""

    def __init__(self, table: SliceTable, selection: Cells) -> None:
        self._table = table
        self._selection = selection
        self._pairs: dict[int, tuple[Words, int] | None] = {}
        low = int(table.starts.min())
        distances, found = compact(table.starts - low)
        order = np.argsort(found)
        ranks = np.empty(order.size, np.int32)
        ranks[order] = np.arange(order.size)
        self._starts = found[order] + low
        self._slots = lay_out(table.groups, ranks[distances])

    def place(self, family: Family) -> Placement | None:
        """Where the rows of a family go; None where another way must be taken."""
        members = family.members
        if len(members) * self._table.starts.size > _MOST_QUESTIONS or not self._reads(family):
            return None
        asking = ask(family, self._starts, members)
        # The runs of every predicate are found in a table of all its windows.
        if asking is None or asking.lows.size * len(members) > _MOST_RUNS:
            return None
        reach = asking.reach(self._starts.size)
        slots = self._slots
        firsts, lasts = slots.slices[slots.slots[:-1]], slots.slices[slots.slots[1:] - 1]
        asked = int((reach[1][lasts] - reach[0][firsts]).sum())
        if asked > _MOST_WINDOWS * slots.slices.size:
            return None
        cells, held = truth_of(self._table, self._selection, members)
        return Placement(slots, asking, reach, cells, held)

    def _reads(self, family: Family) -> bool:
        """Whether all aggregates are differences of running totals that fit pairs of words."""
        if any(set(read) != {read[0]} for read in family.reads):
            return False
        return all(
            lowering.aggregate.name in _READ
            and not (lowering.aggregate.name == "avg" and _is_decimal(lowering))
            and all(self._pair(index) is not None for index in lowering.accumulators)
            for lowering in family.lowerings
        )

    def _pair(self, index: int) -> tuple[Words, int] | None:
        if index not in self._pairs:
            self._pairs[index] = _pairs(self._table.columns[index])
        return self._pairs[index]

    def lower(self, lowering: Lowering, placement: Placement) -> Lowered:
        """An aggregate of all rows."""
        columns = [self._read(index, lowering, placement) for index in lowering.accumulators]
        return lowering.aggregate.lower(columns)

    def _read(self, index: int, lowering: Lowering, placement: Placement) -> PartColumn:
        column, pair = self._table.columns[index], self._pair(index)
        assert pair is not None
        if not isinstance(column, CountColumn):
            return cast("PartColumn", _Sums(placement, *pair))
        if lowering.aggregate.name == "sum" and column.counts.min() > 0:
            # Every entry counts something, so every window does: how much is not asked.
            return CountColumn(column.part, np.broadcast_to(np.int64(1), placement.size))
        counts = placement.write(pair[0]).reshape(-1).view(np.int64)
        return CountColumn(column.part, counts)


class Placement:
    """The rows of a family: ``rows[r]`` is the first one of run r.

    Runs without rows are there as well.
    """

    def __init__(
        self, slots: Slots, asking: Asking, reach: tuple[Ints, Ints], cells: Ints, held: Bools
    ) -> None:
        windows = asking.lows.size
        keys = asking.members * windows + asking.windows
        self._order = np.argsort(keys, kind="stable")
        bounds = np.arange(len(held))[:, None] * windows + np.arange(windows + 1)
        self._slots = slots
        self._asked = Asked(
            asking.lows,
            asking.highs,
            *reach,
            cells.astype(np.uint32),
            held,
            asking.windows[self._order].astype(np.uint32),
            np.searchsorted(keys[self._order], bounds),
        )
        self._block = max(_BLOCK // max(windows, 1), 1)
        counts = np.zeros(keys.size, np.int64)
        count_rows(slots, self._asked, self._block, counts)
        self.asking = asking
        self.rows = np.zeros(keys.size + 1, np.int64)
        self.rows[1:][self._order] = counts
        self.rows = np.cumsum(self.rows)
        self.size = int(self.rows[-1])
        self.steps = int((held @ np.bincount(cells, minlength=held.shape[1])).sum())
        self._owners: npt.NDArray[np.int32] | None = None

    def take(self, keys: Sequence[pa.Array]) -> list[pa.Array]:
        """The keys of the groups, row by row; once, when all else is written."""
        if self._owners is None:
            self.write(np.zeros((self._asked.cells.size, 2), np.uint64))
        assert self._owners is not None
        spare = [self._owners.copy() for _ in keys[1:]]
        return [take_once(*each) for each in zip(keys, (*spare, self._owners), strict=True)]

    def write(self, pairs: Words, factors: Floats = _NO_FACTORS, width: int = 1) -> Words:
        """The sums of entries' pairs, row by row: rounded with ``factors``, or as words."""
        owners, out = _NO_OWNERS, np.empty((self.size, width), np.uint64)
        if self._owners is None:
            owners = self._owners = np.empty(self.size + 1, np.int32)
        ends = self.rows[:-1][self._order]
        write_rows(self._slots, self._asked, self._block, ends, pairs, factors, owners, out)
        return out


class _Sums:
    """Sums of the rows of a placement, as a column of sums is read."""

    def __init__(self, placement: Placement, pairs: Words, base: int) -> None:
        self._placement = placement
        self._pairs = pairs
        self._base = base

    def doubles(self) -> Floats:
        """Each rounded once to the nearest double."""
        factors = scales(self._base)
        assert factors is not None
        return self._placement.write(self._pairs, factors).reshape(-1).view(np.float64)

    def words(self) -> tuple[Ints, Bools]:
        """Each as a 128-bit integer; all of them fit."""
        words = self._placement.write(self._pairs, width=2).view(np.int64)
        return words, np.zeros(len(words), np.bool_)


def _pairs(column: object) -> tuple[Words, int] | None:
    """The numbers of a column as pairs, and the limb that is their unit; None if they are none."""
    if isinstance(column, CountColumn):
        pairs = np.zeros((len(column), 2), np.uint64)
        pairs[:, 0] = column.counts
        return pairs, 0
    if not isinstance(column, SumColumn) or column.specials is not None:
        return None
    whole = not pa.types.is_floating(column.part.types[0])
    found = pairs_of(column.limbs, column.base, whole=whole)
    return None if found is None or scales(found[1]) is None else found


def _is_decimal(lowering: Lowering) -> bool:
    return bool(pa.types.is_decimal(lowering.aggregate.type))
