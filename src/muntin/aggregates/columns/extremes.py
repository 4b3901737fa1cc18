"""Minimum and maximum as a column of codes."""

from __future__ import annotations

from typing import Self

import numpy as np
import pyarrow as pa

from muntin._typing import Bools, Ints
from muntin.aggregates.algebra import Part
from muntin.aggregates.columns import codes as kernels
from muntin.aggregates.columns.arrow_views import integers, live_cells
from muntin.aggregates.columns.codes import Coder, coder
from muntin.aggregates.columns.column import PartColumn, grown
from muntin.aggregates.exact.limbs import slide_sums

_FLIPS = {"min": 0, "max": -1}


class ExtremeColumn(PartColumn):
    """The smallest code a cell; for a maximum, of complemented codes.

    `marks` exists once a value has the very code that stands for no value, and then tells the
    two apart.
    """

    def __init__(self, part: Part, least: Ints, values: Coder, marks: Bools | None) -> None:
        super().__init__(part)
        self.least = least
        self.values = values
        self.marks = marks
        self.flip = _FLIPS[part.kind]

    @classmethod
    def empty(cls, part: Part, size: int) -> Self:
        """No values."""
        return cls(part, np.full(size, kernels.NOTHING), coder(part.types[0]), None)

    def __len__(self) -> int:
        return len(self.least)

    @property
    def nbytes(self) -> int:
        """Eight bytes a cell, and the dictionary of a type that needs one."""
        marks = 0 if self.marks is None else self.marks.nbytes
        return self.least.nbytes + marks + self.values.nbytes

    def update(self, cells: Ints, args: tuple[pa.Array, ...], times: Ints | None = None) -> None:
        """Keep the extreme of the values that are not NULL."""
        (values,) = args
        if self.values.moves:
            cells, values = self._winners(cells, values)
        codes, moved = self.values.encode(values)
        self._move(moved)
        cells = live_cells(cells, values)
        row = 0
        while row < len(cells):
            marks = np.zeros(0, np.bool_) if self.marks is None else self.marks
            row = kernels.keep_least(self.least, marks, cells, codes, self.flip, row)
            if row < len(cells):
                self.marks = np.zeros(len(self), np.bool_)
        if self.values.moves:
            self._move(self.values.drop_unused(self.codes()[self.seen()]))

    def _winners(self, cells: Ints, values: pa.Array) -> tuple[Ints, pa.Array]:
        """One row a cell, so that only values that may stay are sorted into the dictionary."""
        rows = pa.table({"cell": cells, "value": values}).group_by("cell", use_threads=False)
        won = rows.aggregate([("value", self.part.kind)]).combine_chunks()
        return integers(won.column(0).combine_chunks()), won.column(1).combine_chunks()

    def _move(self, moved: Ints | None) -> None:
        """Follow a dictionary whose codes have moved."""
        if moved is not None:
            seen = self.seen()
            self.least[seen] = moved[self.codes()[seen]] ^ self.flip

    def seen(self) -> Bools:
        """Which cells hold a value."""
        seen: Bools = self.least != kernels.NOTHING
        return seen if self.marks is None else seen | self.marks

    def codes(self) -> Ints:
        """The codes of the values; meaningless where nothing was seen."""
        return self.least ^ self.flip

    def result(self) -> pa.Array:
        """The values, NULL where there is none."""
        seen = self.seen()
        return self.values.decode(np.where(seen, self.codes(), 0), seen)

    def merge(self, cells: Ints, other: Self) -> None:
        """Keep the more extreme value."""
        if self.values.moves:
            self.update(cells, (other.result(),))
            return
        kernels.merge_least(self.least, cells, other.least)
        if other.marks is not None:
            if self.marks is None:
                self.marks = np.zeros(len(self), np.bool_)
            kernels.merge_marks(self.marks, cells, other.marks)

    def take(self, indices: Ints) -> Self:
        """The values at `indices`."""
        marks = None if self.marks is None else self.marks[indices]
        return type(self)(self.part, self.least[indices], self.values.copy(), marks)

    def slide(self, starts: Ints, ends: Ints) -> Self:
        """Extremes of runs of cells, by a monotone deque."""
        best = kernels.slide_least(self.least, starts, ends)
        least = np.where(best < 0, kernels.NOTHING, self.least[best]) if len(self) else _none(best)
        marks = None
        if self.marks is not None:
            marks = slide_sums(self.marks[:, None].astype(np.int64), starts, ends)[:, 0] > 0
        return type(self)(self.part, least, self.values.copy(), marks)

    def of_codes(self, least: Ints) -> Self:
        """A column of other cells, whose smallest codes are given; without marks."""
        return type(self)(self.part, least, self.values.copy(), None)

    def one_code(self, least: int) -> Self:
        """A column of one cell."""
        return self.of_codes(np.array([least], np.int64))

    def resize(self, size: int) -> None:
        """Grow with cells that hold no value."""
        self.least = grown(self.least, size, kernels.NOTHING)  # type: ignore[assignment]
        if self.marks is not None:
            self.marks = grown(self.marks, size)  # type: ignore[assignment]

    def to_arrow(self) -> pa.RecordBatch:
        """The values themselves."""
        return pa.RecordBatch.from_arrays([self.result()], names=["value"])

    @classmethod
    def from_arrow(cls, part: Part, batch: pa.RecordBatch) -> Self:
        """The values of a snapshot."""
        column = cls.empty(part, batch.num_rows)
        column.update(np.arange(batch.num_rows), (batch.column("value"),))
        return column


def _none(best: Ints) -> Ints:
    return np.full(len(best), kernels.NOTHING)
