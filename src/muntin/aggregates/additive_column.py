"""Columns whose cells are rows of integers, and combine by adding them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Self

from muntin.aggregates.column import Ints, PartColumn
from muntin.aggregates.exact_kernels import roll_up_sums

# From rows of integers to sums of some of them. These may wrap around, and back.
Sums = Callable[[Ints], Ints]


class AdditiveColumn(PartColumn):
    """Counts and exact sums: whatever adds up rows of integers can combine their cells."""

    @abstractmethod
    def summed(self, sums: Sums) -> Self:
        """A column whose cells are sums of own cells, of each at most once.

        ``sums`` is called for every array of the column.
        """

    def roll_up(self, starts: Ints, ends: Ints, cells: Ints, size: int) -> Self:
        """Differences of running totals, added up cell by cell."""
        return self.summed(lambda rows: roll_up_sums(rows, starts, ends, cells, size))
