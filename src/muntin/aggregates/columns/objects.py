"""Users' aggregates as a column of Python partials."""

from __future__ import annotations

import pickle
from typing import Any, Self

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.aggregates.algebra import USER, Part
from muntin.aggregates.columns.column import PartColumn
from muntin.aggregates.registry import registered

# Characters of a value that an error shows.
_LONGEST = 80


class ObjectColumn(PartColumn):
    """One Python partial a cell: the slow path, for aggregates that know no arrays.

    Rows are combined in the order given. Snapshots pickle the partials.
    """

    def __init__(self, part: Part, partials: list[Any]) -> None:
        super().__init__(part)
        self.aggregate = registered(part.kind.removeprefix(USER))
        self.partials = partials

    @classmethod
    def empty(cls, part: Part, size: int) -> Self:
        """All cells at the identity."""
        column = cls(part, [])
        column.resize(size)
        return column

    def __len__(self) -> int:
        return len(self.partials)

    @property
    def nbytes(self) -> int:
        """A pointer a cell; what the partials hold is not counted."""
        return 8 * len(self.partials)

    def update(self, cells: Ints, args: tuple[pa.Array, ...], times: Ints | None = None) -> None:
        """Lift the rows and combine them, one by one."""
        rows = self._rows(args, times, len(cells))
        row: Any = None
        try:
            for cell, row in zip(cells.tolist(), rows, strict=True):
                if cell >= 0:
                    partial = self.aggregate.partial(row)
                    self.partials[cell] = self.aggregate.combine(self.partials[cell], partial)
        except Exception as error:
            error.add_note(
                f"the aggregate {self.aggregate.name!r} raised this while it took in {_shown(row)}"
            )
            raise

    def _rows(self, args: tuple[pa.Array, ...], times: Ints | None, count: int) -> list[Any]:
        lists: list[list[Any]] = [array.to_pylist() for array in args]
        if self.aggregate.timed and times is not None:
            lists.append(times.tolist())
        if len(lists) == 1:
            return lists[0]
        return list(zip(*lists, strict=True)) if lists else [()] * count

    def merge(self, cells: Ints, other: Self) -> None:
        """Combine own partials with the other's, which hold the later rows."""
        for cell, partial in zip(cells.tolist(), other.partials, strict=True):
            if cell >= 0:
                self.partials[cell] = self.aggregate.combine(self.partials[cell], partial)

    def take(self, indices: Ints) -> Self:
        """The partials at `indices`, shared: partials are values."""
        return type(self)(self.part, [self.partials[i] for i in indices.tolist()])

    def slide(self, starts: Ints, ends: Ints) -> Self:
        """Each window combined from its cells, in their order.

        Windows that move on share what they have in common: two stacks, one of totals from each
        cell to a turning point, and one total from there on. A cell is combined three times at
        most, however many windows cover it.
        """
        combine, identity = self.aggregate.combine, self.aggregate.identity
        partials, found = self.partials, []
        # Totals of [begin, turn), [begin + 1, turn) and so on, and that of [turn, high).
        fronts: list[Any] = []
        begin = turn = low = high = 0
        back = identity
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            if not low <= start < high or end < high:
                begin = turn = high = start
                fronts, back = [], identity
            for partial in partials[high:end]:
                back = combine(back, partial)
            low, high = start, max(high, end)
            if start > turn:
                fronts = self._totals(start, high)
                begin, turn, back = start, high, identity
            front = fronts[start - begin] if start < turn else identity
            found.append(combine(front, back) if turn < high else front)
        return type(self)(self.part, found)

    def _totals(self, start: int, end: int) -> list[Any]:
        """The totals of all cells from each one on."""
        totals = self.partials[start:end]
        for place in range(len(totals) - 2, -1, -1):
            totals[place] = self.aggregate.combine(totals[place], totals[place + 1])
        return totals

    def resize(self, size: int) -> None:
        """Grow with identities."""
        self.partials.extend(self.aggregate.identity for _ in range(size - len(self.partials)))

    def to_arrow(self) -> pa.RecordBatch:
        """Pickled partials."""
        blobs = pa.array([pickle.dumps(partial) for partial in self.partials], pa.binary())
        return pa.RecordBatch.from_arrays([blobs], names=["partial"])

    @classmethod
    def from_arrow(cls, part: Part, batch: pa.RecordBatch) -> Self:
        """The partials of a snapshot."""
        return cls(part, [pickle.loads(blob) for blob in batch.column("partial").to_pylist()])

    def answers(self) -> tuple[list[Any], np.ndarray[tuple[int], np.dtype[np.bool_]]]:
        """The lowered partials, and which of them failed and are None."""
        values: list[Any] = []
        failed = np.zeros(len(self), np.bool_)
        for i, partial in enumerate(self.partials):
            try:
                values.append(self.aggregate.lower(partial))
            except ArithmeticError:
                values.append(None)
                failed[i] = True
            except Exception as error:
                shown = _shown(partial)
                error.add_note(
                    f"the aggregate {self.aggregate.name!r} raised this lowering {shown}"
                )
                raise
        return values, failed


def _shown(value: Any) -> str:
    """A value as an error shows it, cut short."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
