"""Compiled loops of joins with tables: keys, their numbers, and the rows they lead to."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from muntin._compiled import compiled
from muntin._typing import Bools, Bytes, Ints, Offsets, Words

Codes = npt.NDArray[np.int32]

_Value = TypeVar("_Value", bound=np.generic)

SHORT = 7
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_PRIME = np.uint64(0x00000100000001B3)
_LONG = np.uint64(1 << 63)
_ONE = np.uint64(1)
# The key of no string: the first byte of a short one's key is its length.
NO_TEXT = np.uint64((1 << 64) - 1)


@compiled
def text_keys(ends: Offsets, data: Bytes, words: Words, seed: int) -> tuple[Ints, bool]:
    """A key for each string of bytes, and whether some are longer than 7 bytes.

    Up to 7 bytes the key is the bytes and their number, so that equal keys are equal strings. A
    longer string has a negative key, which others may share. ``words`` are the same bytes, 8 at a
    time: a short string is cut out of two words, without a loop over its bytes.
    """
    keys = np.empty(ends.size - 1, np.int64)
    some = False
    for i in range(keys.size):
        begin, end = np.int64(ends[i]), np.int64(ends[i + 1])
        length = np.uint64(end - begin)
        word = begin >> 3
        if length <= SHORT and word + 1 < words.size:
            shift = np.uint64((begin & 7) << 3)
            low = words[word] >> shift
            high = (words[word + 1] << _ONE) << (np.uint64(63) - shift)
            mask = (_ONE << (length << np.uint64(3))) - _ONE
            keys[i] = np.int64(((low | high) & mask) | (length << np.uint64(56)))
        elif length <= SHORT:
            key = length << np.uint64(56)
            for at in range(begin, end):
                key |= np.uint64(data[at]) << np.uint64((at - begin) << 3)
            keys[i] = np.int64(key)
        else:
            key = np.uint64(seed)
            for at in range(begin, end):
                key = (key ^ np.uint64(data[at])) * _PRIME
            key = (key ^ (key >> np.uint64(32))) * _GOLDEN
            keys[i] = np.int64(key | _LONG)
            some = True
    return keys, some


@compiled
def place(keys: Ints, slots: Ints, numbers: Codes, shift: np.uint64) -> None:
    """Put distinct keys with their numbers into an empty hash table; ``numbers`` is -1 there."""
    mask = np.uint64(slots.size - 1)
    for i in range(keys.size):
        slot = (np.uint64(keys[i]) * _GOLDEN) >> shift
        while numbers[slot] >= 0:
            slot = (slot + _ONE) & mask
        slots[slot], numbers[slot] = keys[i], i


@compiled
def find(
    keys: Ints, valid: Bools, slots: Ints, numbers: Codes, shift: np.uint64, missing: int
) -> tuple[Codes, int]:
    """The number of every key, ``missing`` where it has none; and how many have none."""
    mask = np.uint64(slots.size - 1)
    codes = np.empty(keys.size, np.int32)
    misses = 0
    for i in range(keys.size):
        code = np.int32(missing)
        if valid.size == 0 or valid[i]:
            key = keys[i]
            slot = (np.uint64(key) * _GOLDEN) >> shift
            while numbers[slot] >= 0 and slots[slot] != key:
                slot = (slot + _ONE) & mask
            if numbers[slot] >= 0:
                code = numbers[slot]
        codes[i] = code
        misses += code == missing
    return codes, misses


@compiled
def find_short(
    ends: Offsets, data: Bytes, slots: Words, numbers: Codes, shift: np.uint64, codes: Codes
) -> None:
    """Write the number of every string, where no known one is longer than 7 bytes.

    Does at once what `text_keys` and `find` do. Eight bytes from the start of each string can be
    read, and empty slots hold ``NO_TEXT`` with the number of what is missing; there is one.
    """
    mask = np.uint64(slots.size - 1)
    nothing = numbers[np.argmax(slots == NO_TEXT)]
    begin = np.uint64(ends[0])
    for i in range(codes.size):
        end = np.uint64(ends[i + 1])
        length = end - begin
        code = nothing
        if length <= np.uint64(SHORT):
            # Eight bytes read one by one compile to one load.
            key = np.uint64(0)
            for at in range(8):
                key |= np.uint64(data[begin + np.uint64(at)]) << np.uint64(8 * at)
            key &= (_ONE << (length << np.uint64(3))) - _ONE
            key |= length << np.uint64(56)
            slot = (key * _GOLDEN) >> shift
            while slots[slot] != key and slots[slot] != NO_TEXT:
                slot = (slot + _ONE) & mask
            code = numbers[slot]
        codes[i] = code
        begin = end


@compiled
def find_dense(
    keys: Ints, valid: Bools, low: int, numbers: Codes, missing: int
) -> tuple[Codes, int]:
    """The same where numbers stand in a table by key, from the lowest key on."""
    codes = np.empty(keys.size, np.int32)
    misses = 0
    for i in range(keys.size):
        code = np.int32(missing)
        if valid.size == 0 or valid[i]:
            # A difference that wraps around lies far outside the table, too.
            at = np.uint64(keys[i]) - np.uint64(low)
            if at < np.uint64(numbers.size) and numbers[at] >= 0:
                code = numbers[at]
        codes[i] = code
        misses += code == missing
    return codes, misses


@compiled
def check_long(
    codes: Codes,
    keys: Ints,
    ends: Offsets,
    data: Bytes,
    known_ends: Offsets,
    known_data: Bytes,
    missing: int,
) -> int:
    """Take back the numbers of long strings that only share a key; how many have none after."""
    misses = 0
    for i in range(codes.size):
        code = codes[i]
        if code != missing and keys[i] < 0:
            begin, other = np.int64(ends[i]), np.int64(known_ends[code])
            length = np.int64(ends[i + 1]) - begin
            same = length == np.int64(known_ends[code + 1]) - other
            at = np.int64(0)
            while same and at < length:
                same = data[begin + at] == known_data[other + at]
                at += 1
            if not same:
                codes[i] = missing
        misses += codes[i] == missing
    return misses


@compiled
def pair_codes(left: Codes, right: Codes, left_missing: int, right_missing: int) -> Ints:
    """A key for each pair of numbers, -1 where one of them is missing."""
    keys = np.empty(left.size, np.int64)
    for i in range(left.size):
        out = left[i] == left_missing or right[i] == right_missing
        keys[i] = -1 if out else np.int64(left[i]) * right_missing + right[i]
    return keys


@compiled
def expand(codes: Codes, starts: Ints, counts: Ints, total: int) -> tuple[Ints, Ints]:
    """A row for each match: which row it comes from, and its place among the table's rows.

    Number ``k`` leads to the places ``starts[k]`` to ``starts[k] + counts[k] - 1``, in order.
    """
    rows = np.empty(total, np.int64)
    places = np.empty(total, np.int64)
    at = 0
    for i in range(codes.size):
        code = codes[i]
        for match in range(counts[code]):
            rows[at], places[at] = i, starts[code] + match
            at += 1
    return rows, places


@compiled
def gather(values: npt.NDArray[_Value], codes: Codes | Ints) -> npt.NDArray[_Value]:
    """The values at some places, none of them negative."""
    found = np.empty(codes.size, values.dtype)
    for i in range(codes.size):
        found[i] = values[np.uint64(codes[i])]
    return found


@compiled
def gather_bits(values: Bytes, codes: Codes | Ints) -> Bytes:
    """A bitmap of the values (0 or 1) at some places: four times as fast as Arrow's take."""
    bits = np.zeros((codes.size + 7) // 8, np.uint8)
    whole = codes.size // 8
    for byte in range(whole):
        packed = np.uint8(0)
        for bit in range(8):
            packed |= values[codes[8 * byte + bit]] << np.uint8(bit)
        bits[byte] = packed
    for i in range(8 * whole, codes.size):
        bits[whole] |= values[codes[i]] << np.uint8(i & 7)
    return bits
