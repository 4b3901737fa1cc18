"""Counters as a column: rows, rows that are not NULL, rows that are true."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.aggregates.algebra import Part
from muntin.aggregates.columns.arrow_views import add_counts, count_rows, live_cells, true_cells
from muntin.aggregates.columns.column import AdditiveColumn, Slide, Sums, grown
from muntin.aggregates.exact.limbs import differences, running_totals, slide_sums


class CountColumn(AdditiveColumn):
    """One 64-bit counter a cell.

    >>> column = CountColumn(Part("count", (pa.int64(),)), np.zeros(2, np.int64))
    >>> column.update(np.array([0, 1, 1, -1]), (pa.array([5, 6, None, 7]),))
    >>> column.counts
    array([1, 1])
    """

    def __init__(self, part: Part, counts: Ints) -> None:
        super().__init__(part)
        self.counts = counts

    @classmethod
    def empty(cls, part: Part, size: int) -> Self:
        """All counters at zero."""
        return cls(part, np.zeros(size, np.int64))

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def nbytes(self) -> int:
        """Eight bytes a cell."""
        return self.counts.nbytes

    def update(self, cells: Ints, args: tuple[pa.Array, ...], times: Ints | None = None) -> None:
        """Count each row that is not NULL, or that is true for `count_if`."""
        if self.part.kind == "count_if":
            cells = true_cells(cells, args[0])
        else:
            cells = live_cells(cells, *args)
        count_rows(self.counts, cells)

    def merge(self, cells: Ints, other: Self) -> None:
        """Add the counters."""
        add_counts(self.counts, cells, other.counts)

    def take(self, indices: Ints) -> Self:
        """The counters at `indices`."""
        return type(self)(self.part, self.counts[indices])

    def slide(self, starts: Ints, ends: Ints) -> Self:
        """Differences of running totals."""
        return type(self)(self.part, slide_sums(self.counts[:, None], starts, ends)[:, 0])

    def sliding(self, longest: int) -> Slide:
        """Running totals, made once."""
        totals = running_totals(self.counts[:, None])

        def slide(starts: Ints, ends: Ints) -> CountColumn:
            return CountColumn(self.part, differences(totals, starts, ends)[:, 0])

        return slide

    def summed(self, sums: Sums, others: Sequence[Self] = ()) -> Self:
        """Sums of counters."""
        counts = [each.counts[:, None] for each in (self, *others)]
        return type(self)(self.part, sums(*counts)[:, 0])

    def resize(self, size: int) -> None:
        """Grow with zeros."""
        self.counts = grown(self.counts, size)  # type: ignore[assignment]

    def to_arrow(self) -> pa.RecordBatch:
        """One column of counts."""
        return pa.RecordBatch.from_arrays([pa.array(self.counts)], names=["count"])

    @classmethod
    def from_arrow(cls, part: Part, batch: pa.RecordBatch) -> Self:
        """The counters of a snapshot."""
        return cls(part, batch.column("count").to_numpy().copy())
