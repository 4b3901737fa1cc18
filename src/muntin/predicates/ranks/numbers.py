"""Ranks of numbers: by a table of all integers in reach, by counting, or by buckets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numba import types
from numba.extending import overload

from muntin._compiled import compiled
from muntin._typing import Ranks
from muntin.aggregates.columns.arrow_views import decimal_words, double_bits, integers
from muntin.predicates.order import double_of
from muntin.predicates.ranks.ranker import Ranker, bucket_bits, bucket_starts

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Float64s = npt.NDArray[np.float64]
# Origin, low, shift and steps of a table of buckets.
Bucketing = tuple[float, int, int, int]

MAX_CODE = (1 << 63) - 1
ORIGINS = (1.0, 0.0)
# So many values, and their ranks, stay in the innermost cache.
_ROWS = 2048
_SIZE = np.int64((1 << 63) - 1)
_NAN = np.int64((0x7FF0 << 48) + 1)


class LookUp(Ranker):
    """Integers in a small range: a table with an entry for each."""

    def __init__(self, cuts: Sequence[int]) -> None:
        self._low = cuts[0] - 1
        places = np.array([cut - self._low for cut in cuts])
        self._table = np.searchsorted(places, np.arange(places[-1] + 1), "right").astype(np.int32)

    def _rank(self, values: pa.Array) -> Ranks:
        ranks = np.empty(len(values), np.int32)
        look_up(integers(values), self._table, self._low, ranks)
        return ranks


class FewIntegers(Ranker):
    """Integers, among few cuts."""

    def __init__(self, cuts: Sequence[int]) -> None:
        self._cuts = np.array(cuts, np.int64)

    def _rank(self, values: pa.Array) -> Ranks:
        ranks = np.empty(len(values), np.int32)
        count_cuts(integers(values), self._cuts, ranks)
        return ranks


class FewDoubles(Ranker):
    """FLOAT and DOUBLE, among few cuts, none of them at NaN."""

    def __init__(self, cuts: Sequence[int]) -> None:
        self._cuts = np.array([double_of(cut) for cut in cuts])

    def _rank(self, values: pa.Array) -> Ranks:
        ranks = np.empty(len(values), np.int32)
        count_cuts(double_bits(values).view(np.float64), self._cuts, ranks)
        return ranks


class Buckets(Ranker):
    """Numbers: a table of buckets, then as many halvings as the fullest bucket needs.

    Few cuts get finer buckets than many, within what the processor's caches hold.
    """

    def __init__(self, cuts: Sequence[int]) -> None:
        numbers = [self._number(cut) for cut in cuts]
        self._bucketing, buckets = min(
            (_bucketed(numbers, origin) for origin in ORIGINS),
            key=lambda bucketed: bucketed[0][3],
        )
        self._starts = bucket_starts(buckets)
        self._count = np.int32(len(cuts))
        sentinels = np.full((1 << self._bucketing[3]) - 1, MAX_CODE)
        self._cuts = np.concatenate([np.array(cuts, np.int64), sentinels])

    def _number(self, cut: int) -> float:
        return float(cut)

    def _search(self, values: Int64s) -> Ranks:
        ranks = np.empty(values.size, np.int32)
        rank_numbers(values, self._cuts, self._starts, self._bucketing, ranks)
        # The greatest integer of all is not below the sentinels behind the cuts.
        return np.minimum(ranks, self._count, out=ranks)

    def _rank(self, values: pa.Array) -> Ranks:
        return self._search(integers(values))


class DoubleBuckets(Buckets):
    """FLOAT and DOUBLE."""

    def _number(self, cut: int) -> float:
        return double_of(cut)

    def _rank(self, values: pa.Array) -> Ranks:
        ranks = np.empty(len(values), np.int32)
        numbers = double_bits(values).view(np.float64)
        rank_numbers(numbers, self._cuts, self._starts, self._bucketing, ranks)
        return ranks


class ShortDecimals(Buckets):
    """Decimals whose unscaled integers fit 64 bits."""

    def _rank(self, values: pa.Array) -> Ranks:
        return self._search(np.ascontiguousarray(decimal_words(values)[:, 0]))


def _bucketed(numbers: list[float], origin: float) -> tuple[Bucketing, npt.NDArray[np.intp]]:
    """A table of buckets, and the bucket of every number."""
    first, last = (bucket_of(n, origin, -MAX_CODE - 1, 0) for n in (numbers[0], numbers[-1]))
    shift = max(0, (int(last) - int(first)).bit_length() - bucket_bits(len(numbers)))
    low = int(first) - MAX_CODE - 1
    buckets = np.array([bucket_of(n, origin, low, shift) for n in numbers], np.intp)
    return (origin, low, shift, int(np.bincount(buckets).max()).bit_length()), buckets


class LongDecimals(Ranker):
    """Decimals of 128 bits."""

    def __init__(self, cuts: Sequence[int]) -> None:
        packed = b"".join(cut.to_bytes(16, "little", signed=True) for cut in cuts)
        self._cuts = np.frombuffer(packed, np.int64).reshape(-1, 2)

    def _rank(self, values: pa.Array) -> Ranks:
        ranks = np.empty(len(values), np.int32)
        rank_wide(decimal_words(values), self._cuts, ranks)
        return ranks


@compiled
def rank_numbers(
    values: Int64s | Float64s, cuts: Int64s, starts: Int32s, bucketing: Bucketing, ranks: Int32s
) -> None:
    """Writes how many cuts lie at each number or below; cuts of doubles are their codes.

    `starts[b]` is how many cuts lie below bucket b. Less than 2 ** steps cuts lie in one, and one
    less than that many sentinels behind them all, so that halving finds no end. The last steps
    are written out: with constant shifts they compile to no branches, in a function of their own
    they do not.
    """
    origin, low, shift, steps = bucketing
    last = np.uint64(starts.shape[0] - 1)
    for i in range(values.shape[0]):
        code = _code(values[i])
        bucket = bucket_of(np.float64(values[i]), origin, low, shift)
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


def _code(value: Any) -> Any:
    """The code of a number in kernels, which choose one of the two below by its type."""


@overload(_code)
def _code_of(value: Any) -> Callable[..., Any]:
    return _double_code if isinstance(value, types.Float) else _itself


def _itself(value: Any) -> Any:
    return value


def _double_code(value: Any) -> Any:
    """As `order.double_code`: a sign for the size of the bits."""
    bits = np.float64(value).view(np.int64)
    size = min(bits & _SIZE, _NAN)
    # -1 for negative numbers, 0 for others and for NaN of either sign.
    sign = (bits >> 63) & -np.int64(size < _NAN)
    return (size ^ sign) - sign


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
