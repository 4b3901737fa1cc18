"""Partials on their way into a bank: what room they need, and how they are written as words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin._typing import Ints, Words
from muntin.aggregates import Part
from muntin.aggregates.columns import by_part
from muntin.aggregates.columns.arrow_views import double_bits, integers, valid_mask
from muntin.aggregates.columns.column import PartColumn
from muntin.aggregates.exact.limbs import ONE_LIMB, ORIGIN
from muntin.aggregators.banks import numbers

SPECIALS = 3
WORD = 64


@dataclass(frozen=True)
class Extent:
    """Where the bits of some numbers lie: from limb `low` of the grid up to bit `high` of it."""

    low: int
    high: int


@dataclass(frozen=True)
class Number:
    """An exact sum as words.

    Attributes:
        part: What is summed.
        unit: The limb of the grid that its lowest bit starts; None before any value but 0.
        high: The bit of the grid that all partials lie below.
        width: How many words it has.
    """

    part: Part
    unit: int | None
    high: int
    width: int

    @classmethod
    def of(cls, part: Part) -> Number:
        """A number that has seen no value: doubles will need two words."""
        if pa.types.is_floating(part.types[0]):
            return cls(part, None, 0, 2)
        return cls(part, ONE_LIMB, 0, 1)

    def covering(self, extent: Extent | None, room: int) -> Number:
        """A number with a place for `extent` as well, and `room` bits above it for sums."""
        if extent is None:
            return self
        high = max(self.high, extent.high)
        low = extent.low if self.unit is None else min(extent.low, self.unit)
        need = high + room + 1 - 32 * low
        width = max(self.width, -(-need // WORD))
        if self.unit is None:
            # Half of the room to spare is for smaller values to come.
            low = max(low - (WORD * width - need) // WORD, 0)
        return Number(self.part, low, high, width)

    def moved(self, other: Number) -> bool:
        """Whether what is held has to move for the number to become `other`."""
        return self.width != other.width or self.unit not in {None, other.unit}


class Source(Protocol):
    """The partials of one number, one a group that advances."""

    @property
    def extent(self) -> Extent | None:
        """Where the bits lie; None if all numbers are zero."""

    @property
    def special(self) -> bool:
        """Whether NaN or an infinity is among the values."""

    def write(self, unit: int, out: Words, first: int, width: int, specials: int) -> None:
        """Write the numbers as words, and counts of specials where `specials` says."""


class IntegerValues:
    """Integers, one row each."""

    special = False

    def __init__(self, values: Ints) -> None:
        self.values = values

    @property
    def extent(self) -> Extent | None:
        """As many bits as the largest needs."""
        if len(self.values) == 0:
            return None
        low, high = int(self.values.min()), int(self.values.max())
        bits = max(high, ~low, 0).bit_length()
        return Extent(ONE_LIMB, ORIGIN + bits)

    def write(self, unit: int, out: Words, first: int, width: int, specials: int) -> None:
        """As they are."""
        numbers.put_integers(self.values, out, first, width)


class DoubleValues:
    """Doubles, given as bits, one row each."""

    def __init__(self, bits: Ints) -> None:
        self._bits = bits
        self._least, self._largest, self.special = numbers.double_extent(bits)

    @property
    def extent(self) -> Extent | None:
        """From the last bit of the least exponent to the first of the largest."""
        if self._least > self._largest:
            return None
        last = self._least - 1075 + ORIGIN
        return Extent(last >> 5, self._largest - 1075 + ORIGIN + 53)

    def write(self, unit: int, out: Words, first: int, width: int, specials: int) -> None:
        """Shifted to the unit."""
        numbers.put_doubles(self._bits, unit, out, first, width, specials)


class ColumnValues:
    """Exact sums, or sums of squares, of any number of rows each."""

    def __init__(self, column: Any, counts_specials: bool) -> None:
        self._column = column.take(np.arange(len(column)))
        self._column.settle()
        self._counts_specials = counts_specials
        self.special = column.specials is not None and bool(column.specials.any())

    @property
    def extent(self) -> Extent | None:
        """From the lowest to the highest limb that is in use."""
        limbs = self._column.limbs
        low, high = numbers.limbs_extent(limbs) if limbs.size else (0, 0)
        base = self._column.base
        return Extent(base + low, 32 * (base + high)) if low < high else None

    def write(self, unit: int, out: Words, first: int, width: int, specials: int) -> None:
        """Limbs two by two."""
        column = self._column
        if column.limbs.shape[1]:
            numbers.put_limbs(column.limbs, column.base - unit, out, first, width)
        if self.special and self._counts_specials:
            out[:, specials : specials + SPECIALS] = column.specials.view(np.uint64)


@dataclass(frozen=True)
class Batch:
    """One partial a group: a source a number, and counts of rows unless each is one row."""

    numbers: tuple[Source, ...]
    counts: Ints | None

    @property
    def plain(self) -> Ints | None:
        """The partials as they are, where they are integers."""
        only = self.numbers[0] if len(self.numbers) == 1 else None
        return only.values if isinstance(only, IntegerValues) else None

    @property
    def special(self) -> bool:
        """Whether any partial holds NaN or an infinity."""
        return any(source.special for source in self.numbers)


def read_values(parts: Sequence[Part], values: pa.Array) -> Batch:
    """Partials of one row each; NULL is none."""
    kinds = [part.kind for part in parts]
    if kinds == ["sum", "count"] and not pa.types.is_decimal(values.type):
        valid = valid_mask(values)
        if pa.types.is_floating(values.type):
            bits = double_bits(values)
            bits = bits if valid is None else np.where(valid, bits, 0)
            return Batch((DoubleValues(bits),), _as_counts(valid))
        if values.type != pa.uint64():
            plain = integers(values)
            plain = plain if valid is None else np.where(valid, plain, 0)
            return Batch((IntegerValues(plain),), _as_counts(valid))
    lifted = []
    for part in parts:
        column = by_part.empty(part, len(values))
        column.update(np.arange(len(values)), (values,) if part.types else ())
        lifted.append(column)
    return read_columns(lifted)


def read_columns(lifted: Sequence[PartColumn]) -> Batch:
    """Partials as the columns of an aggregate's parts hold them."""
    sources: list[Source] = []
    counts: Ints | None = None
    for column in lifted:
        if column.part.kind in {"count", "count_if"}:
            counts = column.counts  # type: ignore[attr-defined]
        else:
            sources.append(ColumnValues(column, counts_specials=column.part.kind == "sum"))
    if counts is not None and sources and bool((counts == 1).all()):
        counts = None
    return Batch(tuple(sources), counts)


def _as_counts(valid: npt.NDArray[np.bool_] | None) -> Ints | None:
    return None if valid is None else valid.astype(np.int64)
