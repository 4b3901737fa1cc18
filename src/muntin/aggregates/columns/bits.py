"""Combined bits of integers as a column of 64-bit words."""

from __future__ import annotations

from typing import Self

import numpy as np
import pyarrow as pa

from muntin._compiled import compiled
from muntin._typing import Bools, Ints
from muntin.aggregates.algebra import Part
from muntin.aggregates.columns.arrow_views import integers, live_cells
from muntin.aggregates.columns.column import PartColumn, grown

_AND, _OR, _XOR = range(3)
_OPERATORS = {"bit_and": _AND, "bit_or": _OR, "bit_xor": _XOR}


class BitColumn(PartColumn):
    """A word a cell, in two's complement; a fresh one changes nothing that it is combined with.

    >>> column = BitColumn.empty(Part("bit_or", (pa.int64(),)), 2)
    >>> column.update(np.array([0, 0, 1]), (pa.array([4, 1, None]),))
    >>> column.words
    array([5, 0])
    """

    def __init__(self, part: Part, words: Ints) -> None:
        super().__init__(part)
        self.words = words
        self._operator = _OPERATORS[part.kind]

    @classmethod
    def empty(cls, part: Part, size: int) -> Self:
        """All bits set for `bit_and`, none for the others."""
        return cls(part, np.full(size, _fill(part)))

    def __len__(self) -> int:
        return len(self.words)

    @property
    def nbytes(self) -> int:
        """Eight bytes a cell."""
        return self.words.nbytes

    def update(self, cells: Ints, args: tuple[pa.Array, ...], times: Ints | None = None) -> None:
        """Combine the values that are not NULL."""
        (values,) = args
        wide = values.view(pa.int64()) if pa.types.is_uint64(values.type) else values
        combine_bits(self.words, live_cells(cells, values), integers(wide), self._operator)

    def merge(self, cells: Ints, other: Self) -> None:
        """Combine the words."""
        combine_bits(self.words, cells, other.words, self._operator)

    def take(self, indices: Ints) -> Self:
        """The words at `indices`."""
        return type(self)(self.part, self.words[indices])

    def slide(self, starts: Ints, ends: Ints) -> Self:
        """Words of runs of cells, by two stacks."""
        return type(self)(
            self.part, slide_bits(self.words, starts, ends, self._operator, _fill(self.part))
        )

    def resize(self, size: int) -> None:
        """Grow with cells that hold no value."""
        self.words = grown(self.words, size, _fill(self.part))  # type: ignore[assignment]

    def to_arrow(self) -> pa.RecordBatch:
        """One column of words."""
        return pa.RecordBatch.from_arrays([pa.array(self.words)], names=["bits"])

    @classmethod
    def from_arrow(cls, part: Part, batch: pa.RecordBatch) -> Self:
        """The words of a snapshot."""
        return cls(part, batch.column("bits").to_numpy().copy())

    def values(self, seen: Bools, kind: pa.DataType) -> pa.Array:
        """The words as integers of a type, NULL where nothing was seen."""
        words = pa.array(np.where(seen, self.words, 0), mask=~seen)
        return words.view(kind) if pa.types.is_uint64(kind) else words.cast(kind)


def _fill(part: Part) -> int:
    return -1 if part.kind == "bit_and" else 0


@compiled
def _combined(a: int, b: int, operator: int) -> int:
    if operator == _AND:
        return a & b
    return a | b if operator == _OR else a ^ b


@compiled
def combine_bits(words: Ints, cells: Ints, others: Ints, operator: int) -> None:
    """Combine other words into the cells they go to; -1 skips one."""
    for i in range(cells.shape[0]):
        cell = cells[i]
        if cell >= 0:
            words[cell] = _combined(words[cell], others[i], operator)


@compiled
def slide_bits(words: Ints, starts: Ints, ends: Ints, operator: int, fill: int) -> Ints:
    """The words from starts[i] to ends[i] - 1, combined.

    Two stacks: words combined from each cell to a turning point, and one word from there on. A
    cell is combined three times at most while starts and ends do not fall.
    """
    out = np.empty(starts.shape[0], np.int64)
    fronts = np.empty(words.shape[0] + 1, np.int64)
    turn, low, high = 0, 0, 0
    back = fill
    for i in range(starts.shape[0]):
        start, end = starts[i], max(ends[i], starts[i])
        if not low <= start < high or end < high:
            turn, high, back = start, start, fill
        while high < end:
            back = _combined(back, words[high], operator)
            high += 1
        low = start
        if start > turn:
            word = fill
            for k in range(high - 1, start - 1, -1):
                word = _combined(word, words[k], operator)
                fronts[k] = word
            turn, back = high, fill
        out[i] = _combined(fronts[start], back, operator) if start < turn else back
    return out
