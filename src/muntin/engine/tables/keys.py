"""Keys of joined tables as small integers, found for every row of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin._typing import Bools, Bytes, Ints, Offsets
from muntin.engine.tables.loops import (
    NO_TEXT,
    Codes,
    check_long,
    find,
    find_dense,
    find_short,
    pair_codes,
    place,
    text_keys,
)

_ALL_VALID = np.empty(0, np.bool_)
_WIDTHS = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
_DECIMAL = 16


class Numbering:
    """The distinct keys of all tables that are joined on the same expressions, numbered once.

    Args:
        columns: For each part of the key, the values in each of the tables; all of one type.

    A batch is looked up once for all these tables, and NULL finds nothing. ``numbers`` are those
    of each table's rows, -1 where a part is NULL. ``size`` stands for a key that no table has.

    >>> tables = [pa.array(["a", "b"]), pa.array(["c", None, "a"])]
    >>> numbering = Numbering([tables])
    >>> [numbers.tolist() for numbers in numbering.numbers], numbering.size
    ([[0, 1], [2, -1, 0]], 3)
    >>> codes, misses = numbering.find([pa.array(["c", "b", "x", None])])
    >>> codes.tolist(), misses
    ([2, 1, 3, 3], 2)
    """

    def __init__(self, columns: Sequence[Sequence[pa.Array]]) -> None:
        self._parts = [_part(arrays) for arrays in columns]
        self._pairs: list[_Pairs] = []
        self.numbers, self.size = self._parts[0].numbers, self._parts[0].size
        for part in self._parts[1:]:
            pairs = _Pairs(self.numbers, self.size, part.numbers, part.size)
            self._pairs.append(pairs)
            self.numbers, self.size = pairs.numbers, pairs.size

    def find(self, values: Sequence[pa.Array]) -> tuple[Codes, int]:
        """The number of every row's key, ``size`` where no table has it; how many have none."""
        codes, misses = self._parts[0].find(values[0])
        for pairs, part, column in zip(self._pairs, self._parts[1:], values[1:], strict=True):
            others, _ = part.find(column)
            codes, misses = pairs.find(codes, others)
        return codes, misses


class _Part(Protocol):
    numbers: list[Ints]
    size: int

    def find(self, values: pa.Array) -> tuple[Codes, int]: ...


def _part(arrays: Sequence[pa.Array]) -> _Part:
    kind = arrays[0].type
    if pa.types.is_null(kind):
        return _Nothing(arrays)
    return _Texts(arrays) if _is_text(kind) else _Numbers(arrays)


def _is_text(kind: pa.DataType) -> bool:
    text = pa.types.is_string(kind) or pa.types.is_binary(kind)
    return bool(text or pa.types.is_decimal(kind))


class _Nothing:
    """Keys that are all NULL."""

    def __init__(self, arrays: Sequence[pa.Array]) -> None:
        self.numbers = [np.full(len(array), -1, np.int64) for array in arrays]
        self.size = 0

    def find(self, values: pa.Array) -> tuple[Codes, int]:
        return np.zeros(len(values), np.int32), len(values)


class _Numbers:
    """Keys of a fixed width: numbers, booleans, dates and times."""

    def __init__(self, arrays: Sequence[pa.Array]) -> None:
        keys = [_fixed(array) for array in arrays]
        valid = [array.is_valid().to_numpy(zero_copy_only=False) for array in arrays]
        pairs = list(zip(keys, valid, strict=True))
        distinct = np.unique(np.concatenate([part[mask] for part, mask in pairs]))
        self.size = distinct.size
        self.numbers = [_numbered(distinct, part, mask) for part, mask in pairs]
        self._index = Index(distinct)

    def find(self, values: pa.Array) -> tuple[Codes, int]:
        return self._index.find(_fixed(values), _valid(values))


class _Texts:
    """Keys of any number of bytes."""

    def __init__(self, arrays: Sequence[pa.Array]) -> None:
        encoded = pa.concat_arrays(arrays).dictionary_encode()
        self.size = len(encoded.dictionary)
        numbers = encoded.indices.fill_null(-1).to_numpy().astype(np.int64)
        self.numbers = np.split(numbers, np.cumsum([len(array) for array in arrays])[:-1])
        self._known = _bytes(encoded.dictionary)
        self._seed = 1
        keys, self._long = text_keys(*self._known, self._seed)
        while np.unique(keys).size < self.size:
            self._seed += 1
            keys, _ = text_keys(*self._known, self._seed)
        self._index = Index(keys)
        self._short = None if self._long else ShortIndex(keys)

    def find(self, values: pa.Array) -> tuple[Codes, int]:
        ends, data, words = _bytes(values)
        if self._short is not None:
            return self._short.find(ends, data, _valid(values))
        keys, long = text_keys(ends, data, words, self._seed)
        codes, misses = self._index.find(keys, _valid(values))
        if long and self._long:
            known_ends, known_data, _ = self._known
            misses = check_long(codes, keys, ends, data, known_ends, known_data, self.size)
        return codes, misses


class _Pairs:
    """Keys of two parts, each of them numbered."""

    def __init__(
        self, left: list[Ints], left_size: int, right: list[Ints], right_size: int
    ) -> None:
        self._sizes = left_size, right_size
        keys = [
            np.where((a >= 0) & (b >= 0), a * right_size + b, -1)
            for a, b in zip(left, right, strict=True)
        ]
        distinct = np.unique(np.concatenate([part[part >= 0] for part in keys]))
        self.size = distinct.size
        self.numbers = [_numbered(distinct, part, part >= 0) for part in keys]
        self._index = Index(distinct)

    def find(self, left: Codes, right: Codes) -> tuple[Codes, int]:
        return self._index.find(pair_codes(left, right, *self._sizes), _ALL_VALID)


def _numbered(distinct: Ints, keys: Ints, known: Bools) -> Ints:
    return np.where(known, np.searchsorted(distinct, keys), -1)


def _valid(values: pa.Array) -> Bools:
    """Which values are not NULL; nothing where all are."""
    if values.null_count == 0:
        return _ALL_VALID
    valid: Bools = values.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _fixed(values: pa.Array) -> Ints:
    """Values as integers, equal where the values are; anything at all where they are NULL."""
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    if not len(values):
        return np.empty(0, np.int64)
    width = values.type.bit_width
    stored = np.frombuffer(values.buffers()[1], _WIDTHS[width])
    stored = stored[values.offset : values.offset + len(values)]
    if pa.types.is_floating(values.type):
        stored = _canonical(stored.view(f"f{width // 8}")).view(_WIDTHS[width])
    return stored.astype(np.int64, copy=False)


def _canonical(values: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """One bit pattern for all NaN, and one for both zeros: as in SQL they are equal."""
    # A sum with 0.0 turns -0.0 into 0.0 and leaves all else as it is.
    values = values + values.dtype.type(0)
    return np.where(np.isnan(values), values.dtype.type(np.nan), values)


def _bytes(values: pa.Array) -> tuple[Offsets, Bytes, npt.NDArray[np.uint64]]:
    """Where each value's bytes end, the bytes, and these 8 at a time."""
    begin, end = values.offset, values.offset + len(values)
    buffer = values.buffers()[-1]
    data = np.frombuffer(buffer if buffer is not None else b"", np.uint8)
    if pa.types.is_decimal(values.type):
        ends: Offsets = _DECIMAL * np.arange(begin, end + 1, dtype=np.int64)
    elif len(values):
        ends = np.frombuffer(values.buffers()[1], np.int32)[begin : end + 1]
    else:
        ends = np.zeros(1, np.int32)
    return ends, data, data[: data.size // 8 * 8].view(np.uint64)


# Keys that lie this close together are found in a plain table.
_SPARSE = 4
_SMALL = 1024
# A table of few short strings is so large that hardly two of them meet.
_SHORT_BITS = 10


class Index:
    """Where distinct keys are found: key ``i`` of these has the number ``i``."""

    def __init__(self, keys: Ints) -> None:
        self.size = keys.size
        low, high = (int(keys.min()), int(keys.max())) if keys.size else (0, -1)
        self._dense = high - low < max(_SPARSE * keys.size, _SMALL)
        if self._dense:
            self._low = low
            self._numbers = np.full(high - low + 1, -1, np.int32)
            self._numbers[keys - low] = np.arange(keys.size, dtype=np.int32)
        else:
            bits = (_SPARSE * keys.size - 1).bit_length()
            self._shift = np.uint64(64 - bits)
            self._slots = np.zeros(1 << bits, np.int64)
            self._numbers = np.full(1 << bits, -1, np.int32)
            place(keys, self._slots, self._numbers, self._shift)

    def find(self, keys: Ints, valid: Bools) -> tuple[Codes, int]:
        """The number of every key, ``size`` where there is none; how many have none."""
        if self._dense:
            return find_dense(keys, valid, self._low, self._numbers, self.size)
        return find(keys, valid, self._slots, self._numbers, self._shift, self.size)


class ShortIndex:
    """Where keys of strings of up to 7 bytes are found by the strings themselves."""

    def __init__(self, keys: Ints) -> None:
        self.size = keys.size
        bits = max((_SPARSE * keys.size).bit_length(), _SHORT_BITS)
        self._shift = np.uint64(64 - bits)
        slots = np.zeros(1 << bits, np.int64)
        self._numbers = np.full(1 << bits, -1, np.int32)
        place(keys, slots, self._numbers, self._shift)
        self._slots = np.where(self._numbers < 0, NO_TEXT, slots.view(np.uint64))
        self._numbers[self._numbers < 0] = self.size

    def find(self, ends: Offsets, data: Bytes, valid: Bools) -> tuple[Codes, int]:
        """The number of every string, ``size`` where there is none; how many have none."""
        codes = np.empty(ends.size - 1, np.int32)
        # The last strings may end where the buffer does: the kernel reads a longer copy.
        readable = min(data.size - 8, int(np.iinfo(ends.dtype).max))
        safe = int(np.searchsorted(ends[:-1], ends.dtype.type(readable), "right"))
        rest = np.concatenate([data[ends[safe] : ends[-1]], np.zeros(8, np.uint8)])
        self._find(ends[: safe + 1], data, codes[:safe])
        self._find(ends[safe:] - ends[safe], rest, codes[safe:])
        if valid.size:
            codes[~valid] = self.size
        return codes, int(np.count_nonzero(codes == self.size))

    def _find(self, ends: Offsets, data: Bytes, codes: Codes) -> None:
        find_short(ends, data, self._slots, self._numbers, self._shift, codes)
