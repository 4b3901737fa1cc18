"""HyperLogLog registers as a column: hashes of few values, or the registers of many.

A cell's codes are hashes, which are not negative, or registers: `-1 - (64 * place + rank)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numba import types
from numba.extending import intrinsic

from muntin._compiled import compiled
from muntin._typing import Bytes, Ints
from muntin.aggregates.algebra import REGISTERS, Part
from muntin.aggregates.columns.arrow_views import live_cells
from muntin.aggregates.columns.codes import IntegerCoder
from muntin.aggregates.columns.column import Slide
from muntin.aggregates.columns.holistic.hashes import hashes_of
from muntin.aggregates.columns.holistic.rows import Rows
from muntin.aggregates.columns.holistic.runs import RunColumn, RunWindows
from muntin.aggregates.holistic.sketches import EXACT

RANKS = 64
_NONE = np.empty(0, np.int64)
# Up to so many codes are put in order as they come; of more, the different ones are found first.
_SHORT = 24
# A table that holds as many hashes as are told apart, and a few empty slots for each.
_SLOTS = 4 * EXACT


class RegisterColumn(RunColumn):
    """The codes of every cell, sorted: up to 256 hashes, or the registers that hold something."""

    @classmethod
    def empty(cls, part: Part, size: int) -> Self:
        """No values."""
        rows = Rows(np.zeros(size + 1, np.int64), _NONE.reshape(0, 1), _NONE)
        return cls(part, rows, IntegerCoder(pa.int64()), None)

    @property
    def weighted(self) -> bool:
        """It does not matter how often a value occurs."""
        return False

    def update(self, cells: Ints, args: tuple[pa.Array, ...], times: Ints | None = None) -> None:
        """Add the rows whose argument is not NULL."""
        offsets, codes = place_codes(live_cells(cells, *args), hashes_of(args[0]), len(self))
        found = self._reduced(offsets, codes)
        if len(self.rows.codes):
            self.merge(np.arange(len(self)), self.holding(found))
        else:
            self.rows = found

    def merge_all(self, cells: Sequence[Ints], others: Sequence[Self]) -> None:
        """Add the codes of other columns to own cells."""
        cells, others = list(cells), list(others)
        if len(self.rows.codes):
            cells.append(np.arange(len(self)))
            others.append(self)
        rows = self._behind_one_another(others)
        lows, highs = rows.offsets[:-1], rows.offsets[1:]
        placed = place_runs(lows, highs, np.concatenate(cells), rows.codes[:, 0], len(self))
        self.rows = self._reduced(*placed)

    def holding(self, rows: Rows) -> Self:
        """A column of other codes."""
        reduced = self._reduced(rows.offsets, np.ascontiguousarray(rows.codes[:, 0]))
        return type(self)(self.part, reduced, self.values, None)

    def sliding(self, longest: int) -> Slide:
        """Windows over these cells, which are looked through when they are lowered."""
        return lambda starts, ends: RegisterWindows(self, starts, ends)

    def _reduced(self, offsets: Ints, codes: Ints) -> Rows:
        offsets, codes = reduce_codes(offsets, codes, bits_of(self.part))
        return Rows(offsets, codes.reshape(-1, 1), _NONE)

    @classmethod
    def from_arrow(cls, part: Part, batch: pa.RecordBatch) -> Self:
        """The codes of a snapshot."""
        column = cls.empty(part, batch.num_rows)
        lists = batch.column("value")
        offsets = np.concatenate(([0], np.cumsum(np.diff(lists.offsets.to_numpy()))))
        codes = np.array(lists.flatten().to_numpy(), np.int64)
        column.rows = Rows(offsets, codes.reshape(-1, 1), _NONE)
        return column


class RegisterWindows(RunWindows, RegisterColumn):
    """Windows over the cells of a column of registers."""

    def holding(self, rows: Rows) -> RunColumn:  # type: ignore[override]
        """A column that is written out."""
        return self.base.holding(rows)


def bits_of(part: Part) -> int:
    """How many bits of a hash choose its register."""
    return int(part.kind.removeprefix(REGISTERS))


def _zeros(typing_context: Any, word: Any) -> Any:
    """How many bits of an unsigned word come before the first one set."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctlz(args[0], context.get_constant(types.boolean, False))

    return types.uint64(types.uint64), generate


leading_zeros: Any = intrinsic(_zeros)


@compiled
def _register(code: int, bits: int) -> np.int64:
    """A code as one number: 64 times the register's place, and the rank.

    The rank is the place of the first bit set behind the register's number, from 1 on.
    """
    if code < 0:
        return np.int64(-1 - code)
    rest = np.uint64(code) << np.uint64(bits + 1)
    rank = min(np.int64(leading_zeros(rest)) + 1, np.int64(RANKS - bits))
    return np.int64(RANKS * (code >> (63 - bits)) + rank)


@compiled
def registers_of(codes: Ints, bits: int) -> npt.NDArray[np.int32]:
    """Codes as numbers of registers and ranks."""
    out = np.empty(codes.shape[0], np.int32)
    for i in range(codes.shape[0]):
        out[i] = _register(codes[i], bits)
    return out


@compiled
def place_codes(cells: Ints, codes: Ints, size: int) -> tuple[Ints, Ints]:
    """Offsets of so many cells, and codes by cell, as they come in each; -1 leaves one out."""
    offsets = np.zeros(size + 1, np.int64)
    in_order = True
    before = 0
    for i in range(cells.shape[0]):
        cell = cells[i]
        in_order &= cell >= before
        before = cell
        if cell >= 0:
            offsets[cell + 1] += 1
    for cell in range(size):
        offsets[cell + 1] += offsets[cell]
    if in_order:
        return offsets, codes
    out, at = np.empty(offsets[size], np.int64), offsets[:-1].copy()
    for i in range(cells.shape[0]):
        cell = cells[i]
        if cell >= 0:
            out[at[cell]] = codes[i]
            at[cell] += 1
    return offsets, out


@compiled
def place_runs(lows: Ints, highs: Ints, cells: Ints, codes: Ints, size: int) -> tuple[Ints, Ints]:
    """Offsets of so many cells, and by cell the codes of the ranges that go to it; -1 is none."""
    offsets = np.zeros(size + 1, np.int64)
    for i in range(cells.shape[0]):
        if cells[i] >= 0:
            offsets[cells[i] + 1] += highs[i] - lows[i]
    for cell in range(size):
        offsets[cell + 1] += offsets[cell]
    out, at = np.empty(offsets[size], np.int64), offsets[:-1].copy()
    for i in range(cells.shape[0]):
        if cells[i] >= 0:
            first, many = at[cells[i]], highs[i] - lows[i]
            out[first : first + many] = codes[lows[i] : highs[i]]
            at[cells[i]] += many
    return offsets, out


@compiled
def reduce_codes(offsets: Ints, codes: Ints, bits: int) -> tuple[Ints, Ints]:
    """Codes of cells in order, each once: registers where a cell has too many, or one already."""
    out = np.empty(codes.shape[0], np.int64)
    ends = np.zeros(offsets.shape[0], np.int64)
    held, slots = np.zeros(1 << bits, np.uint8), np.full(_SLOTS, -1, np.int64)
    at = np.int64(0)
    for cell in range(offsets.shape[0] - 1):
        first, last = offsets[cell], offsets[cell + 1]
        if _is_reduced(codes, first, last):
            out[at : at + last - first] = codes[first:last]
            at += last - first
        else:
            many = _different(codes, first, last, out, at, slots)
            if many < 0:
                many = _raised(codes, first, last, out, at, held, bits)
            at += many
        ends[cell + 1] = at
    return ends, out[:at].copy()


@compiled
def _is_reduced(codes: Ints, first: int, last: int) -> bool:
    """Whether codes are few hashes in order, or registers in order."""
    if first == last:
        return True
    is_few = codes[first] >= 0
    if (is_few and last - first > EXACT) or is_few != (codes[last - 1] >= 0):
        return False
    # Of two ranks of one register the greater counts.
    shift = np.int64(0 if is_few else 6)
    at = first + 1
    while at < last and codes[at - 1] >> shift < codes[at] >> shift:
        at += 1
    return at == last


@compiled
def _different(
    codes: Ints, first: int, last: int, out: Ints, at: np.int64, slots: Ints
) -> np.int64:
    """Write different hashes in order, and return how many; -1 if too many, or none are."""
    many = np.int64(0)
    if last - first <= _SHORT:
        for i in range(first, last):
            code = codes[i]
            if code < 0:
                return np.int64(-1)
            place = at + many
            while place > at and out[place - 1] > code:
                place -= 1
            if place > at and out[place - 1] == code:
                continue
            for k in range(at + many, place, -1):
                out[k] = out[k - 1]
            out[place] = code
            many += 1
        return many
    for i in range(first, last):
        code = codes[i]
        if code < 0 or many > EXACT:
            slots[:] = -1
            return np.int64(-1)
        place = code & (_SLOTS - 1)
        while slots[place] >= 0 and slots[place] != code:
            place = (place + 1) & (_SLOTS - 1)
        if slots[place] < 0:
            slots[place] = code
            out[at + many] = code
            many += 1
    slots[:] = -1
    if many > EXACT:
        return np.int64(-1)
    out[at : at + many].sort()
    return many


@compiled
def _raised(
    codes: Ints, first: int, last: int, out: Ints, at: np.int64, held: Bytes, bits: int
) -> np.int64:
    """Write the registers of codes in order, and return how many; ``held`` is left empty."""
    for i in range(first, last):
        number = _register(codes[i], bits)
        place = number >> 6
        held[place] = max(held[place], np.uint8(number & (RANKS - 1)))
    many = np.int64(0)
    eights = held.view(np.uint64)
    for eight in range(eights.shape[0] - 1, -1, -1):
        if eights[eight] == 0:
            continue
        for k in range(8 * eight + 7, 8 * eight - 1, -1):
            if held[k]:
                out[at + many] = -1 - (RANKS * k + held[k])
                many += 1
    held[:] = 0
    return many
