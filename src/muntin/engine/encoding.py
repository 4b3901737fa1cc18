"""A column's distinct values as small integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from muntin.engine.kernels import number_dense, number_keys, pack_short, place_keys

Ints = npt.NDArray[np.int64]


# A table of all numbers between the least and the greatest beats hashing up to so many per row.
_DENSE = 8
# The hash table starts small enough for the first-level cache and grows fourfold.
_BITS = 10


def compact(keys: Ints) -> tuple[Ints, Ints]:
    """Number distinct keys by first appearance: the number of every key, and the keys.

    Negative keys get -1. A key equal to the one before it costs a comparison, any other a probe
    of a hash table.

    >>> ids, keys = compact(np.array([7, 7, 3, -1, 7]))
    >>> ids.tolist(), keys.tolist()
    ([0, 0, 1, -1, 0], [7, 3])
    """
    bits, done, count = _BITS, 0, 0
    ids = np.empty(keys.size, np.int64)
    uniques = np.empty(1 << (bits - 1), np.int64)
    slots = np.full(1 << bits, -1, np.int32)
    while True:
        shift = np.uint64(64 - bits)
        done, count = number_keys(keys, done, ids, slots, uniques, count, shift)
        if done == keys.size:
            return ids, uniques[:count].copy()
        bits += 2
        uniques = np.concatenate((uniques, np.empty(3 * uniques.size, np.int64)))
        slots = np.full(1 << bits, -1, np.int32)
        place_keys(slots, uniques, count, np.uint64(64 - bits))


def encode(column: pa.Array) -> tuple[Ints, pa.Array]:
    """The number of every value and the distinct values; NULL is a value like any other.

    As in SQL, NaN equals NaN and -0.0 equals 0.0.

    >>> codes, values = encode(pa.array(["a", None, "a"]))
    >>> codes.tolist(), values.to_pylist()
    ([0, 1, 0], ['a', None])
    """
    if pa.types.is_floating(column.type):
        column = canonical(column)
    elif pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        keys = _packed(column)
        if keys is not None:
            codes, distinct = compact(keys)
            return codes, column.take(pa.array(_firsts(codes, distinct.size)))
    elif is_whole(column):
        numbers = column.view(pa.int64()).to_numpy()
        found = _whole_numbers(numbers)
        if found is not None:
            codes, distinct = found
            return codes, pa.array(distinct).view(column.type)
    encoded = column.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary


def is_whole(column: pa.Array) -> bool:
    """Whether values are whole numbers or times of 64 bits, some of them, and none NULL."""
    kind = column.type
    timed = pa.types.is_timestamp(kind) or pa.types.is_date64(kind)
    return len(column) > 0 and not column.null_count and (kind == pa.int64() or timed)


def _whole_numbers(numbers: Ints) -> tuple[Ints, Ints] | None:
    """Integers numbered by a table of all between the least and the greatest, or by hashing.

    None where their distances do not fit 63 bits.
    """
    low, high = int(numbers.min()), int(numbers.max())
    span = high - low + 1
    if span <= _DENSE * numbers.size:
        return number_dense(numbers, low, span)
    if span >= 1 << 63:
        return None
    codes, distinct = compact(numbers - low)
    return codes, distinct + low


def _packed(column: pa.Array) -> Ints | None:
    """Strings of up to seven bytes as integers: three times as fast as hashing the bytes."""
    validity, offsets, data = column.buffers()
    if data is None or not len(column):
        return None
    wide = pa.types.is_large_string(column.type)
    ends: Any = np.frombuffer(offsets, np.int64 if wide else np.int32)
    ends = ends[column.offset : column.offset + len(column) + 1]
    valid = np.empty(0, np.bool_)
    if validity is not None and column.null_count:
        valid = column.is_valid().to_numpy(zero_copy_only=False)
    keys: Ints = pack_short(ends, np.frombuffer(data, np.uint8), valid)
    return keys if keys.size else None


def _firsts(codes: Ints, count: int) -> Ints:
    """Where each number appears first: written last to first, the first stays."""
    firsts = np.empty(count, np.int64)
    firsts[codes[::-1]] = np.arange(codes.size - 1, -1, -1)
    return firsts


def canonical(column: pa.Array) -> pa.Array:
    """The column with one NaN and one zero, as SQL groups them."""
    if not pa.types.is_floating(column.type):
        return column
    nan = pa.scalar(float("nan"), column.type)
    zero = pa.scalar(0.0, column.type)
    column = pc.if_else(pc.is_nan(column), nan, column)
    return pc.if_else(pc.equal(column, zero), zero, column)
