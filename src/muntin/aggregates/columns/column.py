"""The contract of a part's column: the accumulators of one part for many cells, as arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin._typing import Ints
from muntin.aggregates.algebra import Part
from muntin.aggregates.exact.limbs import roll_up_sums

Slide = Callable[[Ints, Ints], "PartColumn"]


class PartColumn(ABC):
    """The state of one part for `len(self)` cells; a fresh cell holds the identity.

    `update`, `merge` and `resize` change the column, the other methods give a column of its own.
    A cell index of -1 leaves the row (or the other column's cell) out.
    """

    def __init__(self, part: Part) -> None:
        self.part = part

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes held by the arrays."""

    @abstractmethod
    def update(self, cells: Ints, args: tuple[pa.Array, ...], times: Ints | None = None) -> None:
        """Add row i to cell `cells[i]`, leaving out rows that the part's NULL rules leave out."""

    @abstractmethod
    def merge(self, cells: Ints, other: Self) -> None:
        """Combine cell i of `other` into own cell `cells[i]`."""

    def merge_all(self, cells: Sequence[Ints], others: Sequence[Self]) -> None:
        """Combine the cells of several columns into own ones; each says to which of these."""
        for places, other in zip(cells, others, strict=True):
            self.merge(places, other)

    @abstractmethod
    def take(self, indices: Ints) -> Self:
        """The cells at `indices`, in that order, repeats allowed."""

    @abstractmethod
    def slide(self, starts: Ints, ends: Ints) -> Self:
        """A column whose cell i combines own cells `starts[i]` to `ends[i] - 1`.

        Cheapest where starts and ends do not fall; each place where they do starts a run anew.
        """

    def sliding(self, longest: int) -> Slide:
        """What `slide` does, for many calls with runs of up to `longest` cells."""
        return self.slide

    def roll_up(self, starts: Ints, ends: Ints, cells: Ints, size: int) -> Self:
        """A column of `size` cells: cell `cells[i]` takes own cells `starts[i]` to `ends[i] - 1`.

        Runs of the same cell are combined.
        """
        rolled = self.take(np.empty(0, np.int64))
        rolled.resize(size)
        rolled.merge(cells, self.slide(starts, ends))
        return rolled

    @abstractmethod
    def resize(self, size: int) -> None:
        """Grow to `size` cells. Copies: grow by a factor, not by one."""

    @abstractmethod
    def to_arrow(self) -> pa.RecordBatch:
        """A snapshot, one row per cell."""

    @classmethod
    @abstractmethod
    def from_arrow(cls, part: Part, batch: pa.RecordBatch) -> Self:
        """The column of a snapshot."""


def grown(array: npt.NDArray[np.generic], size: int, fill: int = 0) -> npt.NDArray[np.generic]:
    """A copy of `array` with `size` rows, the added ones filled."""
    out = np.full((size, *array.shape[1:]), fill, array.dtype)
    out[: len(array)] = array
    return out


# From rows of integers, in one array or several, to sums of some of them. These may wrap around,
# and back.
Sums = Callable[..., Ints]


class AdditiveColumn(PartColumn):
    """Counts and exact sums: whatever adds up rows of integers can combine their cells."""

    @abstractmethod
    def summed(self, sums: Sums, others: Sequence[Self] = ()) -> Self:
        """A column whose cells are sums of own cells and those of others, of each at most once.

        ``sums`` is called for every array of the column, together with those of the others.
        """

    def roll_up(self, starts: Ints, ends: Ints, cells: Ints, size: int) -> Self:
        """Differences of running totals, added up cell by cell."""
        return self.summed(lambda rows: roll_up_sums(rows, starts, ends, cells, size))
