"""Compiled loops that find the rank of every value.

A table of buckets over the codes narrows the search, then a fixed number of halvings finds the
rank among the cuts of the bucket, without a branch that depends on the data. Indices are unsigned,
which spares the test for negative ones.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.compiled import compiled

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]
Float64s = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]

# Heads, runs, offsets and bytes of strings.
Cuts = tuple[UInt64s, Int64s, Int64s, Bytes]
# Origin, low, shift and steps of a table of buckets.
Bucketing = tuple[float, int, int, int]

# So many values, and their ranks, stay in the innermost cache.
_ROWS = 2048
_SIZE = np.int64((1 << 63) - 1)
_NAN = np.int64((0x7FF0 << 48) + 1)
_ALL_BITS = np.uint64((1 << 64) - 1)


@compiled
def rank_integers(
    values: Int64s, cuts: Int64s, starts: Int32s, bucketing: Bucketing, ranks: Int32s
) -> None:
    """Writes how many cuts lie at each integer or below.

    `starts[b]` is how many cuts lie below bucket b. Less than 2 ** steps cuts lie in one, and one
    less than that many sentinels behind them all, so that halving finds no end. The last steps
    are written out, here and for doubles: with constant shifts they compile to no branches, in a
    function of their own they do not.
    """
    origin, low, shift, steps = bucketing
    last = np.uint64(starts.shape[0] - 1)
    most = np.uint64(cuts.shape[0] + 1 - (1 << steps))
    for i in range(values.shape[0]):
        code = values[i]
        bucket = bucket_of(np.float64(code), origin, low, shift)
        rank = np.uint64(starts[min(bucket, last)])
        half = (np.uint64(1) << np.uint64(steps)) >> np.uint64(1)
        while half > np.uint64(4):
            rank += np.uint64(cuts[rank + half - np.uint64(1)] <= code) * half
            half >>= np.uint64(1)
        if steps >= 3:
            rank += np.uint64(cuts[rank + np.uint64(3)] <= code) << np.uint64(2)
        if steps >= 2:
            rank += np.uint64(cuts[rank + np.uint64(1)] <= code) << np.uint64(1)
        if steps >= 1:
            rank += np.uint64(cuts[rank] <= code)
        ranks[i] = min(rank, most)


@compiled
def rank_doubles(
    values: Float64s, cuts: Int64s, starts: Int32s, bucketing: Bucketing, ranks: Int32s
) -> None:
    """As `rank_integers`, for doubles; cuts are codes of `order.double_code`."""
    origin, low, shift, steps = bucketing
    last = np.uint64(starts.shape[0] - 1)
    for i in range(values.shape[0]):
        bits = np.float64(values[i]).view(np.int64)
        size = min(bits & _SIZE, _NAN)
        # -1 for negative numbers, 0 for others and for NaN of either sign.
        sign = (bits >> 63) & -np.int64(size < _NAN)
        code = (size ^ sign) - sign
        bucket = bucket_of(values[i], origin, low, shift)
        rank = np.uint64(starts[min(bucket, last)])
        half = (np.uint64(1) << np.uint64(steps)) >> np.uint64(1)
        while half > np.uint64(4):
            rank += np.uint64(cuts[rank + half - np.uint64(1)] <= code) * half
            half >>= np.uint64(1)
        if steps >= 3:
            rank += np.uint64(cuts[rank + np.uint64(3)] <= code) << np.uint64(2)
        if steps >= 2:
            rank += np.uint64(cuts[rank + np.uint64(1)] <= code) << np.uint64(1)
        if steps >= 1:
            rank += np.uint64(cuts[rank] <= code)
        ranks[i] = rank


@compiled
def count_cuts(values: Int64s | Float64s, cuts: Int64s | Float64s, ranks: Int32s) -> None:
    """Writes how many of a few cuts lie at each number or below; NaN has all of them below it.

    Cut by cut over rows that stay in the cache: every comparison is of many values at once.
    """
    for begin in range(0, values.shape[0], _ROWS):
        some, counts = values[begin : begin + _ROWS], ranks[begin : begin + _ROWS]
        first = cuts[0]
        for i in range(some.shape[0]):
            counts[i] = np.int32(not some[i] < first)
        for place in range(1, cuts.shape[0]):
            cut = cuts[place]
            for i in range(some.shape[0]):
                counts[i] += np.int32(not some[i] < cut)


@compiled
def look_up(values: Int64s, starts: Int32s, low: int, ranks: Int32s) -> None:
    """Writes ranks read from a table that has an entry for each integer from `low` on."""
    last = np.uint64(starts.shape[0] - 1)
    for i in range(values.shape[0]):
        place = np.uint64(max(values[i], low)) - np.uint64(low)
        ranks[i] = starts[min(place, last)]


@compiled
def bucket_of(value: float, origin: float, low: int, shift: int) -> np.uint64:
    """The bucket of a number: equal shares of the floating-point scale from `low` on.

    Adding `origin` to the size spreads small numbers evenly, instead of by their exponents.
    """
    bits = np.float64(abs(value) + origin).view(np.int64)
    place = -bits if value < 0 else bits
    return (np.uint64(max(place, np.int64(low))) - np.uint64(low)) >> np.uint64(shift)


@compiled
def rank_wide(words: Int64s, cuts: Int64s, ranks: Int32s) -> None:
    """Writes ranks of 128-bit integers, given as pairs of words with the low word first."""
    for i in range(words.shape[0]):
        low, high = np.uint64(words[i, 0]), words[i, 1]
        first, last = 0, cuts.shape[0]
        while first < last:
            middle = (first + last) >> 1
            equal = cuts[middle, 1] == high and np.uint64(cuts[middle, 0]) <= low
            if cuts[middle, 1] < high or equal:
                first = middle + 1
            else:
                last = middle
        ranks[i] = first


@compiled
def rank_bytes(
    offsets: npt.NDArray[np.integer],
    data: Bytes,
    cuts: Cuts,
    starts: Int32s,
    shift: int,
    steps: int,
    ranks: Int32s,
) -> None:
    """Writes ranks of byte strings in bytewise order; eight bytes from each start can be read.

    A head is a string's first seven bytes and its length up to 8, as a number: heads are ordered
    as strings are, and only strings of eight bytes or more share one. The cuts are their heads,
    with sentinels behind as in `rank_integers`; for each, where the run of equal heads begins;
    their offsets and their bytes. Only a long string that begins like a cut is compared byte by
    byte.
    """
    heads, runs, cut_offsets, cut_data = cuts
    low = heads[0]
    last = np.uint64(starts.shape[0] - 1)
    for i in range(offsets.shape[0] - 1):
        start = np.uint64(offsets[i])
        size = np.uint64(offsets[i + 1]) - start
        # Eight bytes read one by one compile to one load.
        head = np.uint64(0)
        for place in range(8):
            head = (head << np.uint64(8)) | np.uint64(data[start + np.uint64(place)])
        head &= ~(_ALL_BITS >> (min(size, np.uint64(7)) << np.uint64(3)))
        head |= min(size, np.uint64(8))
        bucket = (max(head, low) - low) >> np.uint64(shift)
        rank = np.uint64(starts[min(bucket, last)])
        half = (np.uint64(1) << np.uint64(steps)) >> np.uint64(1)
        while half > np.uint64(4):
            rank += np.uint64(heads[rank + half - np.uint64(1)] <= head) * half
            half >>= np.uint64(1)
        if steps >= 3:
            rank += np.uint64(heads[rank + np.uint64(3)] <= head) << np.uint64(2)
        if steps >= 2:
            rank += np.uint64(heads[rank + np.uint64(1)] <= head) << np.uint64(1)
        if steps >= 1:
            rank += np.uint64(heads[rank] <= head)
        if size > np.uint64(7) and rank > np.uint64(0) and heads[rank - np.uint64(1)] == head:
            first, after = runs[rank - np.uint64(1)], np.int64(rank)
            while first < after:
                middle = (first + after) >> 1
                begin, stop = cut_offsets[middle], cut_offsets[middle + 1]
                row = data[start : start + size]
                if _at_most(cut_data[begin:stop], row):
                    first = middle + 1
                else:
                    after = middle
            rank = np.uint64(first)
        ranks[i] = rank


@compiled
def _at_most(left: Bytes, right: Bytes) -> bool:
    """Whether the left string is not greater than the right one."""
    for i in range(min(left.shape[0], right.shape[0])):
        if left[i] != right[i]:
            return bool(left[i] < right[i])
    return bool(left.shape[0] <= right.shape[0])


@compiled
def append_digit(keys: Int64s, size: int, ranks: npt.NDArray[np.integer]) -> None:
    """Appends a digit to mixed-radix keys, in place."""
    for i in range(keys.shape[0]):
        keys[i] = keys[i] * size + ranks[i]


@compiled
def append_last(keys: Int64s, size: int, ranks: npt.NDArray[np.integer], wanted: Flags) -> None:
    """Appends the last digit in place; the key of a cell that is not `wanted` becomes -1."""
    for i in range(keys.shape[0]):
        key = keys[i] * size + ranks[i]
        keys[i] = key if wanted[key] else -1
