"""Values of any ordered type as 64-bit codes that compare like the values."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin._compiled import compiled
from muntin._typing import Bools, Ints
from muntin.aggregates.columns.arrow_views import decimal_words, double_bits, integers

_SIZE = (1 << 63) - 1


class Coded(NamedTuple):
    """Codes of an array. `moved` maps codes given out earlier to their new ones, None if equal."""

    codes: Ints
    moved: Ints | None = None


class Coder(ABC):
    """Gives codes to values of one type, and values back for codes.

    Attributes:
        moves: Whether codes depend on the values seen, and move as more are seen.
    """

    moves: ClassVar[bool] = False

    def __init__(self, kind: pa.DataType) -> None:
        self.type = kind

    @abstractmethod
    def encode(self, array: pa.Array) -> Coded:
        """Codes of the values; NULL slots get any code."""

    @abstractmethod
    def decode(self, codes: Ints, valid: Bools) -> pa.Array:
        """The values of the valid codes, NULL elsewhere."""

    def drop_unused(self, used: Ints) -> Ints | None:
        """Forget values whose codes are not `used`; the codes' map if any moved."""
        return None

    @property
    def nbytes(self) -> int:
        """Bytes held for decoding."""
        return 0

    def copy(self) -> Self:
        """A coder that knows the same codes and goes its own way from here."""
        return copy.copy(self) if self.moves else self


class IntegerCoder(Coder):
    """Integers, booleans, dates, times and timestamps are their own codes."""

    def encode(self, array: pa.Array) -> Coded:
        """The integers themselves."""
        return Coded(integers(array))

    def decode(self, codes: Ints, valid: Bools) -> pa.Array:
        """Back to the type, through an integer of its width."""
        plain = pa.array(codes, mask=~valid)
        if plain.type == self.type:
            return plain
        if pa.types.is_boolean(self.type) or pa.types.is_integer(self.type):
            return plain.cast(self.type)
        if self.type.bit_width == 32:
            plain = plain.cast(pa.int32())
        return plain.view(self.type)


class FloatCoder(Coder):
    """Floats by their bits, rearranged so that they compare as integers.

    >>> coded = FloatCoder(pa.float64()).encode(pa.array([float("-inf"), -0.0, 0.0, float("nan")]))
    >>> bool(np.all(np.diff(coded.codes) > 0))
    True
    """

    def encode(self, array: pa.Array) -> Coded:
        """Codes of the values as doubles, which every narrower float is."""
        return Coded(double_codes(double_bits(array)))

    def decode(self, codes: Ints, valid: Bools) -> pa.Array:
        """Undo the rearrangement, which is its own inverse."""
        bits = codes ^ ((codes >> 63) & _SIZE)
        plain = pa.array(bits.view(np.float64), mask=~valid)
        return plain if plain.type == self.type else plain.cast(self.type)


class ShortDecimalCoder(Coder):
    """Decimals of up to 18 digits are their unscaled integers."""

    def encode(self, array: pa.Array) -> Coded:
        """The low words, which hold all of each value."""
        return Coded(np.ascontiguousarray(decimal_words(array)[:, 0]))

    def decode(self, codes: Ints, valid: Bools) -> pa.Array:
        """Sign-extend to 128 bits."""
        words = np.column_stack([codes, codes >> 63])
        return decimal_array(words, valid, self.type)


class DictionaryCoder(Coder):
    """Strings, binaries and long decimals by their rank in a sorted dictionary that grows.

    Work is done per distinct value; rows only pass through the encoding to indices.

    >>> coder = DictionaryCoder(pa.string())
    >>> coder.encode(pa.array(["m", "z", "m"])).codes.tolist()
    [0, 1, 0]
    >>> coded = coder.encode(pa.array(["a"]))
    >>> coded.codes.tolist(), coded.moved.tolist()
    ([0], [1, 2])
    """

    moves = True

    def __init__(self, kind: pa.DataType) -> None:
        super().__init__(kind)
        self.dictionary = pa.array([], kind)

    def encode(self, array: pa.Array) -> Coded:
        """Ranks in the dictionary, which takes in the values it lacks."""
        indexed = array.dictionary_encode()
        moved = self._take_in(indexed.dictionary)
        ranks = integers(pc.index_in(indexed.dictionary, value_set=self.dictionary))
        if len(ranks) == 0:
            return Coded(np.zeros(len(array), np.int64), moved)
        return Coded(ranks[integers(indexed.indices.fill_null(0))], moved)

    def _take_in(self, values: pa.Array) -> Ints | None:
        if pc.index_in(values, value_set=self.dictionary).null_count == 0:
            return None
        earlier = self.dictionary
        union = pa.concat_arrays([earlier, values]).unique()
        self.dictionary = union.take(pc.sort_indices(union))
        return integers(pc.index_in(earlier, value_set=self.dictionary))

    def decode(self, codes: Ints, valid: Bools) -> pa.Array:
        """The dictionary's values."""
        return self.dictionary.take(pa.array(codes, mask=~valid))

    def drop_unused(self, used: Ints) -> Ints | None:
        """Shrink the dictionary once most of it serves no cell."""
        kept = np.unique(used)
        if len(self.dictionary) < 2 * len(kept) + 1000:
            return None
        moved = np.zeros(len(self.dictionary), np.int64)
        moved[kept] = np.arange(len(kept))
        self.dictionary = self.dictionary.take(pa.array(kept))
        return moved

    @property
    def nbytes(self) -> int:
        """Bytes of the dictionary."""
        return int(self.dictionary.nbytes)


def coder(kind: pa.DataType) -> Coder:
    """The coder for a type."""
    if pa.types.is_floating(kind):
        return FloatCoder(kind)
    if pa.types.is_decimal128(kind) and kind.precision <= 18:
        return ShortDecimalCoder(kind)
    numeric = pa.types.is_integer(kind) and kind != pa.uint64()
    if numeric or pa.types.is_boolean(kind) or pa.types.is_temporal(kind):
        return IntegerCoder(kind)
    return DictionaryCoder(kind)


def decimal_array(words: Ints, valid: Bools, kind: pa.DataType) -> pa.Array:
    """Decimals from unscaled 128-bit integers."""
    bitmap = pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
    data = pa.py_buffer(np.ascontiguousarray(words).tobytes())
    return pa.Array.from_buffers(kind, len(words), [bitmap, data])


NOTHING = (1 << 63) - 1
_NAN = 0x7FF8 << 48
_INFINITY = 0x7FF0 << 48


@compiled
def double_codes(bits: Ints) -> Ints:
    """Codes that order doubles: -0.0 before 0.0, all NaN equal and greatest."""
    out = np.empty(bits.shape[0], np.int64)
    for i in range(bits.shape[0]):
        b = bits[i]
        size = b & NOTHING
        if size > _INFINITY:
            out[i] = _NAN
        else:
            out[i] = b ^ ((b >> 63) & NOTHING)
    return out


@compiled
def keep_least(least: Ints, marks: Bools, cells: Ints, codes: Ints, flip: int, first: int) -> int:
    """Keep the smallest `code ^ flip` a cell.

    Stops at a row whose code is the identity's while `marks` is empty, and returns it; otherwise
    marks such cells and returns the number of rows.
    """
    for i in range(first, cells.shape[0]):
        cell = cells[i]
        if cell < 0:
            continue
        code = codes[i] ^ flip
        if code < least[cell]:
            least[cell] = code
        elif code == NOTHING:
            if marks.shape[0] == 0:
                return i
            marks[cell] = True
    return len(cells)


@compiled
def merge_least(least: Ints, cells: Ints, others: Ints) -> None:
    """Keep the smaller of own and other codes."""
    for i in range(cells.shape[0]):
        cell = cells[i]
        if cell >= 0 and others[i] < least[cell]:
            least[cell] = others[i]


@compiled
def merge_marks(marks: Bools, cells: Ints, others: Bools) -> None:
    """Mark the cells whose other is marked."""
    for i in range(cells.shape[0]):
        if cells[i] >= 0 and others[i]:
            marks[cells[i]] = True


@compiled
def slide_least(least: Ints, starts: Ints, ends: Ints) -> Ints:
    """The index of the smallest code in [starts[i], ends[i]), -1 for an empty range.

    A deque of indices with rising codes; an index enters and leaves it once a run, so a window
    costs less than two comparisons on average.
    """
    out = np.empty(starts.shape[0], np.int64)
    queue = np.empty(least.shape[0], np.int64)
    head, tail, entered, before = 0, 0, 0, 0
    for i in range(starts.shape[0]):
        start, end = starts[i], ends[i]
        if i == 0 or start < before or end < entered or start >= entered:
            head, tail, entered = 0, 0, start
        before = start
        while entered < end:
            while tail > head and least[queue[tail - 1]] >= least[entered]:
                tail -= 1
            queue[tail] = entered
            tail += 1
            entered += 1
        while head < tail and queue[head] < start:
            head += 1
        out[i] = queue[head] if head < tail else -1
    return out
