"""Compiled loops that number keys, pairs of numbers and short strings."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.compiled import compiled

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Slots = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int32] | npt.NDArray[np.int64]

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
