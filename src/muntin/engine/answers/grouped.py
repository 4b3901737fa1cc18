"""Answers of grouped queries, written in their final order: by query, window and group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin._compiled import compiled
from muntin._typing import Bools, Floats, Ints, Words
from muntin.aggregates.algebra import Lowered
from muntin.aggregates.columns.column import PartColumn
from muntin.aggregates.columns.counts import CountColumn
from muntin.aggregates.columns.sums import SumColumn
from muntin.aggregates.exact.limbs import LOW32
from muntin.aggregates.exact.pairs import pairs_of, round_pair, scales
from muntin.engine.answers.families import Family
from muntin.engine.answers.group_keys import take_once
from muntin.engine.answers.rollup import truth_of
from muntin.engine.answers.windows import Asking, ask
from muntin.engine.rows.dictionary import compact
from muntin.engine.slices.partials import SliceTable
from muntin.plan.nodes import Lowering
from muntin.plan.selection import Cells

# Windows of so many groups together, in numbers of four bytes, stay in the cache.
_BLOCK = 1 << 15
# Beyond these, other ways are better: entries of all predicates, windows of a group per entry.
_MOST_QUESTIONS = 1 << 28
_MOST_RUNS = 1 << 22
_MOST_WINDOWS = 64
_READ = {"count", "count_if", "sum", "avg"}
_READ |= {f"kept {name}" for name in _READ}
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

    def settled(self) -> tuple[Ints, int]:
        """Each as four limbs, without carries, and the place of the first limb."""
        words = self._placement.write(self._pairs, width=2).view(np.int64)
        limbs = np.empty((len(words), 4), np.int64)
        limbs[:, 0], limbs[:, 1] = words[:, 0] & LOW32, (words[:, 0] >> 32) & LOW32
        limbs[:, 2], limbs[:, 3] = words[:, 1] & LOW32, words[:, 1] >> 32
        return limbs, self._base


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


Int32s = npt.NDArray[np.int32]
# Places are unsigned: numba would make each of a signed one ready to count from the end.
Places = npt.NDArray[np.uint32]

_ZERO, _ONE = np.uint64(0), np.uint64(1)


class Slots(NamedTuple):
    """Entries sorted by group and slice; those of one group and one slice share a slot.

    Group number i is ``groups[i]``, with the entries from ``entries[i]`` on and the slots from
    ``slots[i]`` on. ``places`` numbers each entry's slot in its group from 1 on; ``slices`` gives
    the number of each slot's slice, in order of time.
    """

    groups: Int32s
    entries: Ints
    slots: Ints
    places: Places
    slices: Int32s


class Asked(NamedTuple):
    """What is asked of all groups: windows of predicates.

    Window w covers the slices from ``lows[w]`` to ``highs[w] - 1``; lows do not fall. Windows
    from ``firsts[s]`` on reach beyond slice s, those before ``lasts[s]`` begin before its end.
    Entry e satisfies predicate p where ``held[p, cells[e]]``. Run r is of window ``windows[r]``;
    the runs of predicate p from window w on begin at ``runs[p, w]``.
    """

    lows: Ints
    highs: Ints
    firsts: Ints
    lasts: Ints
    cells: Places
    held: Bools
    windows: Places
    runs: Ints


class Covered(NamedTuple):
    """The slots that windows cover in each group of a block, from ``lows`` to ``highs - 1``.

    Only windows from ``reach[i, 0]`` to ``reach[i, 1] - 1`` are there for group i of the block.
    """

    lows: Places
    highs: Places
    reach: Ints


@compiled
def lay_out(groups: Ints, slices: Int32s) -> Slots:
    """The slots of sorted entries."""
    numbers = np.empty(groups.size, np.int32)
    entries = np.empty(groups.size + 1, np.int64)
    begins = np.empty(groups.size + 1, np.int64)
    places = np.empty(groups.size, np.uint32)
    held = np.empty(groups.size, np.int32)
    owners = count = place = 0
    for i in range(groups.size):
        fresh = i == 0 or groups[i] != groups[i - 1]
        if fresh:
            numbers[owners], entries[owners], begins[owners] = groups[i], i, count
            owners += 1
            place = 0
        if fresh or slices[i] != slices[i - 1]:
            held[count] = slices[i]
            count += 1
            place += 1
        places[i] = place
    entries[owners], begins[owners] = groups.size, count
    ends = owners + 1
    return Slots(
        numbers[:owners].copy(), entries[:ends].copy(), begins[:ends].copy(), places, held[:count]
    )


@compiled
def _make_room(asked: Asked, block: int) -> Covered:
    windows = asked.lows.size
    lows, highs = np.empty((block, windows), np.uint32), np.empty((block, windows), np.uint32)
    return Covered(lows, highs, np.empty((block, 2), np.int64))


@compiled
def _cover(slots: Slots, asked: Asked, begin: int, end: int, ranks: Places, to: Covered) -> None:
    """Find the slots that windows cover in groups number ``begin`` to ``end - 1``.

    ``ranks`` is room for one number a slice, and one more.
    """
    for number in range(begin, end):
        first, last = slots.slots[number], slots.slots[number + 1]
        low, high = np.int64(slots.slices[first]), np.int64(slots.slices[last - 1]) + 1
        at = low
        for slot in range(first, last):
            while at <= slots.slices[slot]:
                ranks[at] = slot - first
                at += 1
        ranks[high] = last - first
        row = number - begin
        reach = asked.firsts[low], asked.lasts[high - 1]
        to.reach[row, 0], to.reach[row, 1] = reach
        for window in range(reach[0], reach[1]):
            to.lows[row, window] = ranks[min(max(asked.lows[window], low), high)]
            to.highs[row, window] = ranks[min(max(asked.highs[window], low), high)]


@compiled
def count_rows(slots: Slots, asked: Asked, block: int, counts: Ints) -> None:
    """Count the groups of each run; ``block`` groups are looked at together."""
    covered = _make_room(asked, block)
    ranks = np.empty(asked.firsts.size + 1, np.uint32)
    seen = np.zeros(asked.firsts.size + 1, np.uint32)
    for begin in range(0, slots.groups.size, block):
        end = min(begin + block, slots.groups.size)
        _cover(slots, asked, begin, end, ranks, covered)
        for member in range(asked.held.shape[0]):
            held = asked.held[member]
            for number in range(begin, end):
                total = np.uint32(0)
                for entry in range(slots.entries[number], slots.entries[number + 1]):
                    total += held[asked.cells[entry]]
                    seen[slots.places[entry]] = total
                if not total:
                    continue
                lows, highs = covered.lows[number - begin], covered.highs[number - begin]
                first, last = covered.reach[number - begin]
                for run in range(asked.runs[member, first], asked.runs[member, last]):
                    window = asked.windows[run]
                    counts[run] += seen[highs[window]] != seen[lows[window]]


@compiled
def write_rows(
    slots: Slots,
    asked: Asked,
    block: int,
    ends: Ints,
    pairs: Words,
    factors: Floats,
    owners: Int32s,
    out: Words,
) -> None:
    """Write the sums of the entries' pairs of words, run by run.

    ``ends`` holds the first row of each run, and is moved to one past its last. With ``factors``
    a sum is written as the bits of the nearest double, without as words, as many as ``out`` is
    wide. ``owners`` gets the group of every row, unless it is empty.
    """
    covered = _make_room(asked, block)
    ranks = np.empty(asked.firsts.size + 1, np.uint32)
    totals = np.zeros((asked.firsts.size + 1, 4), np.uint64)
    for begin in range(0, slots.groups.size, block):
        end = min(begin + block, slots.groups.size)
        _cover(slots, asked, begin, end, ranks, covered)
        for member in range(asked.held.shape[0]):
            held = asked.held[member]
            for number in range(begin, end):
                low, high, seen = _ZERO, _ZERO, _ZERO
                for entry in range(slots.entries[number], slots.entries[number + 1]):
                    holds = np.uint64(held[asked.cells[entry]])
                    mask = _ZERO - holds
                    before = low
                    low += pairs[entry, 0] & mask
                    high += (pairs[entry, 1] & mask) + np.uint64(low < before)
                    seen += holds
                    place = slots.places[entry]
                    totals[place, 0], totals[place, 1], totals[place, 2] = low, high, seen
                if not seen:
                    continue
                lows, highs = covered.lows[number - begin], covered.highs[number - begin]
                first, last = covered.reach[number - begin]
                for run in range(asked.runs[member, first], asked.runs[member, last]):
                    window = asked.windows[run]
                    a, b = lows[window], highs[window]
                    if totals[a, 2] == totals[b, 2]:
                        continue
                    low = totals[b, 0] - totals[a, 0]
                    high = totals[b, 1] - totals[a, 1] - np.uint64(low > totals[b, 0])
                    row = np.uint64(ends[run])
                    ends[run] += 1
                    if factors.size:
                        rounded = np.float64(round_pair(low, np.int64(high), factors))
                        out[row, 0] = rounded.view(np.uint64)
                    else:
                        out[row, 0] = low
                        if out.shape[1] > 1:
                            out[row, 1] = high
                    if owners.size:
                        owners[row] = slots.groups[number]
