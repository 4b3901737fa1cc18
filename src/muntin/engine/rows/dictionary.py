"""A column's distinct values as small integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from muntin._compiled import compiled
from muntin._typing import Bools, Ints, Offsets

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


Slots = npt.NDArray[np.int32]

# Fibonacci hashing: the golden ratio in 64 bits spreads consecutive keys over the table.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@compiled
def number_keys(
    keys: Ints, begin: int, ids: Ints, slots: Slots, uniques: Ints, count: int, shift: np.uint64
) -> tuple[int, int]:
    """Number keys from ``begin`` on by an open-addressing hash table, until it is full.

    ``slots`` holds the numbers given so far, or -1, at the place where the hash of their key
    leads. Returns the first row that is not done and how many numbers are given. The caller
    makes more room and goes on: arrays that are replaced inside a compiled loop cost five times
    as much a row.
    """
    mask = np.uint64(slots.size - 1)
    last_key, last_id = np.int64(-1), np.int64(-1)
    for i in range(begin, keys.size):
        key = keys[i]
        if key != last_key:
            last_key = key
            if key < 0:
                last_id = np.int64(-1)
            else:
                slot = (np.uint64(key) * _GOLDEN) >> shift
                at = slots[slot]
                while at >= 0 and uniques[at] != key:
                    slot = (slot + np.uint64(1)) & mask
                    at = slots[slot]
                if at < 0:
                    if count == uniques.size:
                        return i, count
                    uniques[count] = key
                    slots[slot] = count
                    at = count
                    count += 1
                last_id = np.int64(at)
        ids[i] = last_id
    return keys.size, count


@compiled
def place_keys(slots: Slots, uniques: Ints, count: int, shift: np.uint64) -> None:
    """Put numbered keys into an empty hash table."""
    mask = np.uint64(slots.size - 1)
    for number in range(count):
        slot = (np.uint64(uniques[number]) * _GOLDEN) >> shift
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = number


@compiled
def number_dense(numbers: Ints, low: int, span: int) -> tuple[Ints, Ints]:
    """The place of each number among the different ones, and these, in order.

    All lie in ``[low, low + span)``; it takes a table of that size.
    """
    places = np.zeros(span, np.int32)
    for i in range(numbers.size):
        places[numbers[i] - low] = 1
    distinct = np.empty(min(span, numbers.size), np.int64)
    count = 0
    for i in range(span):
        if places[i]:
            distinct[count] = low + i
            places[i] = count
            count += 1
    codes = np.empty(numbers.size, np.int64)
    for i in range(numbers.size):
        codes[i] = places[numbers[i] - low]
    return codes, distinct[:count].copy()


@compiled
def pair_keys(left: Ints, right: Ints, right_count: int, where: Bools) -> Ints:
    """A key for each pair of numbers, -1 where ``where`` (if not empty) or the left is out."""
    keys = np.empty(left.size, np.int64)
    for i in range(left.size):
        out = left[i] < 0 or (where.size > 0 and not where[i])
        keys[i] = -1 if out else left[i] * right_count + right[i]
    return keys


@compiled
def number_pairs(
    left: Ints, right: Ints, left_count: int, right_count: int, where: Bools
) -> tuple[Ints, Ints]:
    """Number the keys of pairs by a look-up table: the ids of all rows, and the keys in order."""
    ids = np.empty(left.size, np.int64)
    table = np.full(left_count * right_count, -1, np.int64)
    uniques = np.empty(min(table.size, left.size), np.int64)
    count = 0
    for i in range(left.size):
        if left[i] < 0 or (where.size > 0 and not where[i]):
            ids[i] = -1
            continue
        key = left[i] * right_count + right[i]
        if table[key] < 0:
            table[key] = count
            uniques[count] = key
            count += 1
        ids[i] = table[key]
    return ids, uniques[:count].copy()


@compiled
def pack_short(offsets: Offsets, data: npt.NDArray[np.uint8], valid: Bools) -> Ints:
    """Each string as an integer of its bytes and length; empty if one is longer than 7 bytes.

    NULL (where ``valid``, if not empty, is false) has a key that no string has.
    """
    keys = np.empty(offsets.size - 1, np.int64)
    for i in range(keys.size):
        if valid.size > 0 and not valid[i]:
            keys[i] = np.int64(8) << 56
            continue
        begin, end = np.int64(offsets[i]), np.int64(offsets[i + 1])
        if end - begin > 7:
            return np.empty(0, np.int64)
        key = end - begin
        for at in range(begin, end):
            key = (key << 8) | np.int64(data[at])
        keys[i] = key << (8 * (7 - (end - begin)))
    return keys


# A look-up table beats a hash table while it stays in the cache or near the number of rows.
_DENSE_PAIRS = 1 << 16
_EVERY_ROW = np.empty(0, np.bool_)


@dataclass(frozen=True)
class Groups:
    """The group of every row: ``codes[i]`` is the row of ``keys`` that holds its key."""

    codes: Ints
    keys: tuple[pa.Array, ...]
    count: int


def group(columns: Sequence[tuple[Ints, pa.Array]], rows: int) -> Groups:
    """Number the distinct keys over some encoded columns.

    >>> from muntin.engine.rows.dictionary import encode
    >>> groups = group([encode(pa.array(["a", "b", "a"])), encode(pa.array([1, 1, 2]))], 3)
    >>> groups.codes.tolist(), [key.to_pylist() for key in groups.keys]
    ([0, 1, 2], [['a', 'b', 'a'], [1, 1, 2]])
    """
    if not columns:
        return Groups(np.zeros(rows, np.int64), (), 1)
    codes, values = columns[0]
    keys = [values]
    for inner_codes, inner_values in columns[1:]:
        codes, outer, inner = pairs(codes, len(keys[0]), inner_codes, len(inner_values))
        keys = [*(key.take(pa.array(outer)) for key in keys), inner_values.take(pa.array(inner))]
    return Groups(codes, tuple(keys), len(keys[0]))


def pairs(
    left: Ints, left_count: int, right: Ints, right_count: int, where: Bools | None = None
) -> tuple[Ints, Ints, Ints]:
    """Number the distinct pairs of two numberings, on the rows of a mask.

    Returns the number of every row (-1 where the mask or the left number leaves it out), and
    for each number its left and its right one.
    """
    wanted = _EVERY_ROW if where is None else where
    if left_count * right_count <= max(_DENSE_PAIRS, 4 * left.size):
        ids, used = number_pairs(left, right, left_count, right_count, wanted)
    else:
        ids, used = compact(pair_keys(left, right, right_count, wanted))
    outer, inner = np.divmod(used, max(right_count, 1))
    return ids, outer, inner
