"""What lowering asks of the values of windows, wherever these lie."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin._typing import Ints
from muntin.aggregates.columns.arrow_views import integers
from muntin.aggregates.columns.codes import DictionaryCoder
from muntin.aggregates.columns.holistic.runs import RunColumn
from muntin.aggregates.columns.sums import SumColumn


class Windows(ABC):
    """Windows of one column of values. Values go by *ranks*, which order those of one answer.

    Attributes:
        totals: How many values each window has, with repeats.
        occurrences: At most so many different values each window has.
        is_listed: Whether windows hold lists, whose values are all counted.
        longest: The most bytes that a value has.
        known: At most so many bytes all different values together have.
    """

    totals: Ints
    occurrences: Ints
    is_listed: bool
    longest: int
    known: int = 1 << 62

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def only(self, kept: Ints) -> Self:
        """Some of the windows."""

    @abstractmethod
    def measured(self) -> tuple[Ints, Ints]:
        """How many different values each window has, or values of a list, and their bytes."""

    def counts(self) -> Ints:
        """How many different values each window has."""
        return self.measured()[0]

    def over(self, most: int, most_bytes: int) -> Ints:
        """The windows that have more values than so many, or more bytes of values.

        Judged by the window's own values: different ones, or all of a list.
        """
        many = self.totals if self.is_listed else self.occurrences
        least = most
        if self.is_listed or self.known > most_bytes:
            least = min(most, most_bytes // max(self.longest, 1))
        doubtful = np.flatnonzero(many > least)
        if not doubtful.size:
            return doubtful
        counts, sizes = self.only(doubtful).measured()
        chosen: Ints = doubtful[(counts > most) | (sizes > most_bytes)]
        return chosen

    @abstractmethod
    def codes_at(self, ranks: Ints) -> Ints:
        """The codes of ranks."""

    @abstractmethod
    def values(self, ranks: Ints) -> pa.Array:
        """The values of ranks."""

    @abstractmethod
    def sums(self, types: tuple[pa.DataType, ...]) -> SumColumn:
        """The exact sum of each window's different values."""

    @abstractmethod
    def select(self, windows: Ints, places: Ints) -> Ints:
        """The rank of the value at a place, from 0 on, among the sorted values of a window."""

    @abstractmethod
    def heaviest(self, most: int, floors: Ints) -> tuple[Ints, Ints, Ints]:
        """The most frequent values of each window, at most so many, that occur often enough.

        Offsets by window, ranks and numbers of occurrences: the most frequent first, of equally
        frequent ones the least.
        """

    @abstractmethod
    def different(self) -> tuple[Ints, Ints]:
        """Offsets by window, and the ranks of its different values, in order."""

    @abstractmethod
    def every(self) -> tuple[Ints, pa.Array]:
        """Offsets by window, and its values in order, each as often as it occurs."""


def value_bytes(column: RunColumn, codes: Ints) -> Ints:
    """The bytes of each code's value."""
    if _is_text(column):
        return integers(pc.binary_length(column.decoded(codes)).fill_null(0)).astype(np.int64)
    return np.full(len(codes), longest_value(column))


def fixed_width(column: RunColumn) -> int | None:
    """The bytes of every value; None where values differ."""
    if _is_text(column):
        return None
    return 16 if pa.types.is_decimal(column.part.types[0]) else 8


def longest_value(column: RunColumn) -> int:
    """The most bytes that a value of a column may have."""
    width = fixed_width(column)
    if width is not None:
        return width
    assert isinstance(column.values, DictionaryCoder)
    longest = pc.max(pc.binary_length(column.values.dictionary)).as_py()
    return max(longest or 0, 1)


def _is_text(column: RunColumn) -> bool:
    kind = column.part.types[0]
    is_number = pa.types.is_decimal(kind) or pa.types.is_integer(kind)
    return isinstance(column.values, DictionaryCoder) and not is_number
