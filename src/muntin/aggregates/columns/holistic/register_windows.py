"""How many different values windows have, counted or estimated from HyperLogLog registers.

A window's registers are the largest of its cells'. Windows of one query that follow each other are
taken together as long as they share a cell: what lies before it is brought together once, from the
end on, what lies behind once, from the beginning on, and a window takes some of either. That is the
two stacks of sliding windows, with arrays of registers on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin._compiled import compiled
from muntin._typing import Bools, Ints
from muntin.aggregates.algebra import Lowered
from muntin.aggregates.columns.holistic import sliding
from muntin.aggregates.columns.holistic.registers import RANKS, bits_of, registers_of
from muntin.aggregates.columns.holistic.rolled_runs import RolledRuns, clusters
from muntin.aggregates.columns.holistic.rows import Ranges
from muntin.aggregates.columns.holistic.runs import RunColumn, RunWindows
from muntin.aggregates.columns.holistic.value_loops import sum_distinct
from muntin.aggregates.holistic.sketches import EXACT

if TYPE_CHECKING:
    from muntin.aggregates.registry import ResolvedAggregate

Int32s = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]

# Arrays of registers of so many bytes lie on a stack, and of so many stand for cells.
_STACKED, _WRITTEN = 1 << 21, 1 << 26
# So many registers of a cell are taken in as fast as one value.
_AT_ONCE = 32


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
    for windows in clusters(lows, highs, base.occurrences()):
        own, until = lows[windows], highs[windows]
        first, last = int(own.min()), int(until.max())
        ranges = base.ranges(first, last)
        counts[windows], estimated[windows] = values.counted(ranges, own - first, until - first)
    return counts, estimated


class _Values:
    """The occurrences of a column: which values they are, and which registers these set."""

    def __init__(self, column: RunColumn, bits: int) -> None:
        self._ranks, distinct = column.ranked()
        self._codes, self._bits = np.ascontiguousarray(distinct[:, 0]), bits
        self._registers = registers_of(self._codes, bits)[self._ranks]

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
        if not lows.size:
            return np.zeros((0, 2), np.int64)
        numbers = np.column_stack((np.ones(self._codes.size, np.int64), self._codes < 0))
        order = np.argsort(highs, kind="stable")
        return sum_distinct(ranges, self._ranks, lows, highs, order, numbers.astype(np.int64))

    def _estimated(
        self, ranges: Ranges, offsets: Ints, lows: Ints, highs: Ints
    ) -> tuple[Ints, Ints]:
        """Estimates of windows, and how many of their registers hold something."""
        if not lows.size:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        first, last = int(lows.min()), int(highs.max())
        size = 1 << self._bits
        cells = np.empty((0, size), np.uint8)
        moved = sliding.steps(offsets[lows], offsets[highs])
        alone = sliding.steps(lows, highs) * (size // _AT_ONCE)
        if (last - first) * size <= _WRITTEN and moved > alone + offsets[last] - offsets[first]:
            cells = write_cells(ranges, self._registers, first, last, size)
        room = max(_STACKED // size, 1)
        return estimate_windows(
            ranges, self._registers, cells, first, lows, highs, self._bits, room
        )


@compiled
def _take_in(held: Bytes, registers: Int32s, ranges: Ranges, cell: int) -> None:
    """Raise registers to those of a cell."""
    for place in range(ranges.firsts[cell], ranges.firsts[cell + 1]):
        for i in range(ranges.lows[place], ranges.highs[place]):
            register, rank = registers[i] >> 6, registers[i] & 63
            held[register] = max(held[register], rank)


@compiled
def write_cells(ranges: Ranges, registers: Int32s, first: int, last: int, size: int) -> Bytes:
    """The registers of cells, written out."""
    cells = np.zeros((last - first, size), np.uint8)
    for cell in range(first, last):
        _take_in(cells[cell - first], registers, ranges, cell)
    return cells


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
    written: int,
    lows: Ints,
    highs: Ints,
    bits: int,
    room: int,
) -> tuple[Ints, Ints]:
    """Estimate how many different values windows have; and how many registers hold something.

    ``cells`` are the registers of cells from ``written`` on, or nothing. At most ``room`` windows
    are taken together.
    """
    out, filled = np.zeros(lows.size, np.int64), np.zeros(lows.size, np.int64)
    size = np.int64(1) << bits
    front, back = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
    stack = np.zeros((min(room, lows.size), size), np.uint8)
    tops = np.zeros((4, RANKS + 1), np.int64)
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
                    _raise(front, cells[at - written])
                else:
                    _take_in(front, registers, ranges, at)
            stack[window - first] = front
        at = middle
        for window in range(first, last):
            while at < highs[window]:
                if cells.shape[0]:
                    _raise(back, cells[at - written])
                else:
                    _take_in(back, registers, ranges, at)
                at += 1
            tops[:] = 0
            before = stack[window - first]
            # Four counters of each rank: one would wait for itself.
            for place in range(0, size, 4):
                for k in range(4):
                    tops[k, max(before[place + k], back[place + k])] += 1
            for rank in range(RANKS + 1):
                tops[0, rank] += tops[1, rank] + tops[2, rank] + tops[3, rank]
            out[window], filled[window] = _estimate(tops[0], bits), size - tops[0, 0]
        first = last
    return out, filled


@compiled
def _estimate(tops: Ints, bits: int) -> np.int64:
    """The number of values, from how many registers have which rank: Ertl's algorithm 6."""
    most = 63 - bits
    size = np.float64(np.int64(1) << bits)
    z = size * _tau(1.0 - tops[most + 1] / size)
    for rank in range(most, 0, -1):
        z = 0.5 * (z + tops[rank])
    z += size * _sigma(tops[0] / size)
    return np.int64(np.rint(size * size / (2.0 * np.log(2.0) * z)))


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
    tops = np.bincount(np.array(ranks), minlength=RANKS + 1).astype(np.int64)
    tops[0] = (1 << bits) - len(ranks)
    return int(_estimate(tops, bits))
