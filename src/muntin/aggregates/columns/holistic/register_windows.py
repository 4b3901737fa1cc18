"""How many different values windows have, counted or estimated from HyperLogLog registers.

A window's registers are the largest of its cells'. Windows of one query that follow each other are
taken together as long as they share a cell: what lies before it is brought together once, from the
end on, what lies behind once, from the beginning on, and a window takes some of either. That is the
two stacks of sliding windows, with arrays of registers on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin._compiled import compiled
from muntin._typing import Bools, Bytes, Ints
from muntin.aggregates.algebra import Lowered
from muntin.aggregates.columns.holistic import sliding
from muntin.aggregates.columns.holistic.registers import RANKS, bits_of, registers_of
from muntin.aggregates.columns.holistic.rolled_runs import RolledRuns, clusters
from muntin.aggregates.columns.holistic.rows import Ranges
from muntin.aggregates.columns.holistic.runs import RunColumn, RunWindows
from muntin.aggregates.columns.holistic.value_loops import count_ascending, sum_distinct
from muntin.aggregates.holistic.sketches import EXACT

if TYPE_CHECKING:
    from muntin.aggregates.registry import ResolvedAggregate

Int32s = npt.NDArray[np.int32]

# Arrays of registers of so many bytes lie on a stack, and of so many stand for cells.
_STACKED, _WRITTEN = 1 << 21, 1 << 26
# So many registers of a cell are taken in as fast as one value.
_AT_ONCE = 32
# Occurrences that are put together at once: predicates that have more go one after the other.
_ENOUGH = 1 << 14
_0U, _1U = np.uint64(0), np.uint64(1)


def lower_counts(aggregate: ResolvedAggregate, columns: Sequence[Any]) -> Lowered:
    """The answers of `approx_count_distinct`."""
    column = columns[0]
    if isinstance(column, RunWindows) and not column.is_written:
        base, lows, highs = column.base, column.lows, column.highs
    else:
        base, lows = column, np.arange(len(column))
        highs = lows + 1
    bits = bits_of(column.part)
    counts, estimated = _counted(base, lows, np.maximum(highs, lows), bits)
    if aggregate.facet:
        # Three standard errors of the estimate; few values are counted.
        error = 3 * 1.04 / 2 ** (bits / 2)
        far = counts * (1 + error if aggregate.facet == "high" else 1 - error)
        whole = np.ceil(far) if aggregate.facet == "high" else np.floor(far)
        counts = np.where(estimated, np.maximum(whole, 0).astype(np.int64), counts)
    return Lowered(pa.array(counts))


def _counted(base: RunColumn, lows: Ints, highs: Ints, bits: int) -> tuple[Ints, Bools]:
    """How many different values windows have, and which are estimated."""
    if not isinstance(base, RolledRuns) or base.is_written:
        return _Values(base, bits).counted(Ranges.of(base.rows.offsets), lows, highs)
    counts, estimated = np.zeros(lows.size, np.int64), np.zeros(lows.size, np.bool_)
    values = _Values(base.source, bits)
    pieces = []
    for windows in clusters(lows, highs, base.occurrences(), _ENOUGH):
        first, last = int(lows[windows].min()), int(highs[windows].max())
        pieces.append((windows, first, base.ranges(first, last)))
    # Of predicates that hold for ever more rows, each goes on from the one before.
    for windows, first, ranges in sorted(pieces, key=lambda piece: piece[2].size):
        found = values.counted(ranges, lows[windows] - first, highs[windows] - first)
        counts[windows], estimated[windows] = found
    return counts, estimated


class _Values:
    """The occurrences of a column: which values they are, and which registers these set."""

    def __init__(self, column: RunColumn, bits: int) -> None:
        self._column, self._codes, self._bits = column, column.rows.codes[:, 0], bits
        self._cells = _Cells(1 << bits)

    @cached_property
    def _registers(self) -> Int32s:
        return registers_of(self._codes, self._bits)

    def counted(self, ranges: Ranges, lows: Ints, highs: Ints) -> tuple[Ints, Bools]:
        """Count different codes, and estimate where these are many, or registers already."""
        offsets = ranges.offsets()
        counts, estimated = np.zeros(lows.size, np.int64), np.zeros(lows.size, np.bool_)
        many = np.flatnonzero(offsets[highs] - offsets[lows] > EXACT)
        counts[many], held = self._estimated(ranges, offsets, lows[many], highs[many])
        # As many registers as hold something, so many values there are at least.
        estimated[many] = held > EXACT
        rest = np.flatnonzero(~estimated)
        exact = self._exact(ranges, lows[rest], highs[rest])
        few = (exact[:, 1] == 0) & (exact[:, 0] <= EXACT)
        counts[rest[few]] = exact[few, 0]
        left = rest[~few]
        estimated[left] = True
        left = np.setdiff1d(left, many)
        counts[left], _ = self._estimated(ranges, offsets, lows[left], highs[left])
        return counts, estimated

    def _exact(self, ranges: Ranges, lows: Ints, highs: Ints) -> Ints:
        """How many different codes windows have, and how many of these are registers."""
        found = np.zeros((lows.size, 2), np.int64)
        found[:, 0], leasts = count_ascending(ranges, self._codes, lows, highs)
        # In order, they are hashes if the first one is.
        found[:, 1] = leasts < 0
        rest = np.flatnonzero(found[:, 0] < 0)
        if rest.size:
            ranks, distinct = self._column.ranked()
            numbers = np.column_stack((np.ones(len(distinct), np.int64), distinct[:, 0] < 0))
            lows, highs = lows[rest], highs[rest]
            order = np.argsort(highs, kind="stable")
            found[rest] = sum_distinct(ranges, ranks, lows, highs, order, numbers.astype(np.int64))
        return found

    def _estimated(
        self, ranges: Ranges, offsets: Ints, lows: Ints, highs: Ints
    ) -> tuple[Ints, Ints]:
        """Estimates of windows, and how many of their registers hold something."""
        if not lows.size:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        first, last = int(lows.min()), int(highs.max())
        size = 1 << self._bits
        moved = sliding.steps(offsets[lows], offsets[highs])
        alone = sliding.steps(lows, highs) * (size // _AT_ONCE)
        cells, places = np.empty((0, size), np.uint8), np.empty(0, np.int64)
        if (last - first) * size <= _WRITTEN and moved > alone + offsets[last] - offsets[first]:
            cells, places = self._cells.written(ranges.between(first, last), self._registers)
        room = max(_STACKED // size, 1)
        return estimate_windows(
            ranges, self._registers, cells, places, first, lows, highs, self._bits, room
        )


class _Cells:
    """The registers of cells written out, those of one predicate after those of another.

    Cells that have all that one of the last predicate had, and more, go on with its registers.
    """

    def __init__(self, size: int) -> None:
        self._rows = np.zeros((0, size), np.uint8)
        self._held = np.zeros((3, 0), np.int64)

    def written(self, ranges: Ranges, registers: Int32s) -> tuple[Bytes, Ints]:
        """Registers, and the row of each cell's among them."""
        cells = ranges.firsts.size - 1
        room = cells + self._held.shape[1]
        if room > len(self._rows):
            self._held = self._held[:, :0]
            self._rows = np.zeros((2 * cells, self._rows.shape[1]), np.uint8)
        self._held = write_cells(ranges, registers, self._rows, self._held)
        return self._rows, self._held[2]


@compiled
def _take_in(held: Bytes, registers: Int32s, low: int, high: int) -> None:
    """Raise registers to those of some occurrences."""
    for i in range(low, high):
        register = np.uint32(registers[i])
        place, rank = register >> np.uint32(6), np.uint8(register & np.uint32(RANKS - 1))
        held[place] = max(held[place], rank)


@compiled
def _take_cell(held: Bytes, registers: Int32s, ranges: Ranges, cell: int) -> None:
    """Raise registers to those of a cell."""
    for place in range(ranges.firsts[cell], ranges.firsts[cell + 1]):
        _take_in(held, registers, ranges.lows[place], ranges.highs[place])


@compiled
def write_cells(ranges: Ranges, registers: Int32s, rows: Bytes, before: Ints) -> Ints:
    """Write the registers of cells, and return the range of each and its row.

    ``before`` is what was returned for other cells: one whose range lies in that of a cell lends it
    its row, and what it lacks is added. A cell of several ranges has none.
    """
    cells = ranges.firsts.size - 1
    out = np.zeros((3, cells), np.int64)
    is_free = np.ones(rows.shape[0], np.bool_)
    for row in before[2]:
        is_free[row] = False
    given, free = 0, 0
    for cell in range(cells):
        first = ranges.firsts[cell]
        if ranges.firsts[cell + 1] == first + 1:
            low, high = ranges.lows[first], ranges.highs[first]
            while given < before.shape[1] and before[0, given] < low:
                is_free[before[2, given]] = True
                free = min(free, before[2, given])
                given += 1
            out[0, cell], out[1, cell] = low, high
            if given < before.shape[1] and before[0, given] < before[1, given] <= high:
                row = out[2, cell] = before[2, given]
                _take_in(rows[row], registers, low, before[0, given])
                _take_in(rows[row], registers, before[1, given], high)
                given += 1
                continue
        while not is_free[free]:
            free += 1
        is_free[free] = False
        out[2, cell] = free
        rows[free] = 0
        _take_cell(rows[free], registers, ranges, cell)
    return out


@compiled
def _raise(held: Bytes, others: Bytes) -> None:
    """Raise registers to others."""
    for place in range(held.size):
        held[place] = max(held[place], others[place])


@compiled
def estimate_windows(
    ranges: Ranges,
    registers: Int32s,
    cells: Bytes,
    places: Ints,
    written: int,
    lows: Ints,
    highs: Ints,
    bits: int,
    room: int,
) -> tuple[Ints, Ints]:
    """Estimate how many different values windows have; and how many registers hold something.

    ``cells`` has the registers of cells from ``written`` on at their ``places``, or nothing. At
    most ``room`` windows are taken together.
    """
    out, filled = np.zeros(lows.size, np.int64), np.zeros(lows.size, np.int64)
    size = np.int64(1) << bits
    front, back = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
    stack = np.zeros((min(room, lows.size), size), np.uint8)
    first = 0
    while first < lows.size:
        middle, last = highs[first], first + 1
        while (
            last < lows.size
            and last - first < room
            and lows[last - 1] <= lows[last] < middle
            and highs[last - 1] <= highs[last]
        ):
            last += 1
        front[:] = 0
        back[:] = 0
        at = middle
        for window in range(last - 1, first - 1, -1):
            while at > lows[window]:
                at -= 1
                if cells.shape[0]:
                    _raise(front, cells[places[at - written]])
                else:
                    _take_cell(front, registers, ranges, at)
            stack[window - first] = front
        at = middle
        for window in range(first, last):
            while at < highs[window]:
                if cells.shape[0]:
                    _raise(back, cells[places[at - written]])
                else:
                    _take_cell(back, registers, ranges, at)
                at += 1
            _raise(stack[window - first], back)
            out[window], filled[window] = _estimate(stack[window - first], bits)
        first = last
    return out, filled


@compiled
def _estimate(held: Bytes, bits: int) -> tuple[np.int64, np.int64]:
    """The number of values, and how many registers hold something: Ertl's algorithm 6.

    Registers count by powers of two, which are added up as whole numbers: in any order, and many
    at a time.
    """
    # Numbers without a sign wrap around, and back.
    total, empty, full = np.uint64(0), np.uint64(0), np.uint64(0)
    most = np.uint64(RANKS - bits)
    for place in range(held.size):
        rank = np.uint64(held[place])
        total += _1U << (most - rank)
        empty += np.uint64(rank == _0U)
        full += np.uint64(rank == most)
    total -= (empty << most) + full
    size = np.float64(held.size)
    z = (np.float64(total) + 2.0 * size * _tau(1.0 - full / size)) * 0.5 ** np.int64(most)
    z += size * _sigma(empty / size)
    count = np.int64(np.rint(size * size / (2.0 * np.log(2.0) * z)))
    return count, np.int64(held.size) - np.int64(empty)


@compiled
def _sigma(x: float) -> float:
    if x == 1.0:
        return np.inf
    y, z, before = 1.0, x, -1.0
    while z != before:
        x *= x
        before = z
        z += x * y
        y += y
    return z


@compiled
def _tau(x: float) -> float:
    if x in (0.0, 1.0):
        return 0.0
    y, z, before = 1.0, 1.0 - x, -1.0
    while z != before:
        x = np.sqrt(x)
        before = z
        y *= 0.5
        z -= (1.0 - x) ** 2 * y
    return z / 3.0


def estimates(ranks: Sequence[int], bits: int) -> int:
    """The number of values, from the ranks of the registers that hold something."""
    held = np.zeros(1 << bits, np.uint8)
    held[: len(ranks)] = ranks
    return int(_estimate(held, bits)[0])
