"""The rank of every value of an Arrow array among sorted cuts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin._compiled import compiled
from muntin._typing import Bytes, Ranks
from muntin.aggregates.columns.arrow_views import decimal_words, double_bits, integers
from muntin.expressions import types as t
from muntin.predicates.order import NAN, Code, double_of

Int64s = npt.NDArray[np.int64]

SHORT_DIGITS = 18  # decimals of so many digits fit 64 bits
MAX_CODE = (1 << 63) - 1
MAX_HEAD = (1 << 64) - 1
BUCKETS_PER_CUT = 16
MIN_BITS, MAX_BITS = 12, 16
MAX_LOOK_UP = 1 << 14
ORIGINS = (1.0, 0.0)
FEW_CUTS = 6  # so many are counted one by one faster than they are searched


class Ranker(ABC):
    """Finds how many of its cuts lie at a value or below."""

    def __call__(self, values: pa.Array) -> Ranks:
        """The rank of every value; NULL slots get any."""
        return self._rank(values)

    @abstractmethod
    def _rank(self, values: pa.Array) -> Ranks: ...


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
        self._starts = _starts(buckets)
        sentinels = np.full((1 << self._bucketing[3]) - 1, MAX_CODE)
        self._cuts = np.concatenate([np.array(cuts, np.int64), sentinels])

    def _number(self, cut: int) -> float:
        return float(cut)

    def _search(self, values: Int64s) -> Ranks:
        ranks = np.empty(values.size, np.int32)
        rank_integers(values, self._cuts, self._starts, self._bucketing, ranks)
        return ranks

    def _rank(self, values: pa.Array) -> Ranks:
        return self._search(integers(values))


class DoubleBuckets(Buckets):
    """FLOAT and DOUBLE."""

    def _number(self, cut: int) -> float:
        return double_of(cut)

    def _rank(self, values: pa.Array) -> Ranks:
        ranks = np.empty(len(values), np.int32)
        numbers = double_bits(values).view(np.float64)
        rank_doubles(numbers, self._cuts, self._starts, self._bucketing, ranks)
        return ranks


class ShortDecimals(Buckets):
    """Decimals whose unscaled integers fit 64 bits."""

    def _rank(self, values: pa.Array) -> Ranks:
        return self._search(np.ascontiguousarray(decimal_words(values)[:, 0]))


def _bits(cuts: int) -> int:
    """The number of bits that number a table's buckets: more for more cuts."""
    return min(max(MIN_BITS, (BUCKETS_PER_CUT * cuts).bit_length()), MAX_BITS)


def _starts(buckets: npt.NDArray[np.intp]) -> npt.NDArray[np.int32]:
    """How many cuts lie below each bucket, given the bucket of every cut."""
    return np.searchsorted(buckets, np.arange(buckets[-1] + 1), "left").astype(np.int32)


def _bucketed(numbers: list[float], origin: float) -> tuple[Bucketing, npt.NDArray[np.intp]]:
    """A table of buckets, and the bucket of every number."""
    first, last = (bucket_of(n, origin, -MAX_CODE - 1, 0) for n in (numbers[0], numbers[-1]))
    shift = max(0, (int(last) - int(first)).bit_length() - _bits(len(numbers)))
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


class Strings(Ranker):
    """Strings and binaries, by their bytes."""

    def __init__(self, cuts: Sequence[bytes]) -> None:
        offsets = np.cumsum([0, *map(len, cuts)], dtype=np.int64)
        data = np.frombuffer(b"".join(cuts), np.uint8)
        numbers = [_head(cut) for cut in cuts]
        low = numbers[0]
        shift = max(0, (numbers[-1] - low).bit_length() - _bits(len(cuts)))
        buckets = np.array([(number - low) >> shift for number in numbers], np.intp)
        steps = int(np.bincount(buckets).max()).bit_length()
        heads = np.array([*numbers, *[MAX_HEAD] * ((1 << steps) - 1)], np.uint64)
        runs = np.searchsorted(heads, heads[: len(cuts)], "left")
        self._shift, self._steps = shift, steps
        self._starts = _starts(buckets)
        self._cuts = heads, runs, offsets, data

    def _rank(self, values: pa.Array) -> Ranks:
        if pa.types.is_dictionary(values.type):
            known = self(values.dictionary)
            codes = values.indices.fill_null(0).to_numpy()
            return known[codes] if known.size else np.zeros(len(values), np.int32)
        if pa.types.is_string_view(values.type) or pa.types.is_binary_view(values.type):
            values = values.cast(pa.large_binary())
        wide = pa.types.is_large_string(values.type) or pa.types.is_large_binary(values.type)
        ranks = np.zeros(len(values), np.int32)
        _, offsets, data = values.buffers()
        if len(values) == 0:
            return ranks
        ends: npt.NDArray[np.integer] = np.frombuffer(offsets, np.int64 if wide else np.int32)
        ends = ends[values.offset : values.offset + len(values) + 1]
        content = np.frombuffer(data or b"", np.uint8)
        # The last strings may end where the buffer does: the kernel reads a longer copy.
        readable = min(content.size - 8, int(np.iinfo(ends.dtype).max))
        safe = int(np.searchsorted(ends[:-1], ends.dtype.type(readable), "right"))
        rest = np.concatenate([content[ends[safe] : ends[-1]], np.zeros(8, np.uint8)])
        self._search(ends[: safe + 1], content, ranks[:safe])
        self._search(ends[safe:] - ends[safe], rest, ranks[safe:])
        return ranks

    def _search(self, ends: npt.NDArray[np.integer], content: Bytes, ranks: Ranks) -> None:
        if ranks.size:
            table = self._starts, self._shift, self._steps
            rank_bytes(ends, content, self._cuts, *table, ranks)


def _head(string: bytes) -> int:
    """The number that orders strings by their first bytes, as the kernel computes it.

    >>> _head(b"a") < _head(b"a" + bytes(1)) < _head(b"ab") < _head(b"b")
    True
    """
    return int.from_bytes(string[:7].ljust(7, b"\0"), "big") << 8 | min(len(string), 8)


class Booleans(Ranker):
    """FALSE before TRUE."""

    def _rank(self, values: pa.Array) -> Ranks:
        if len(values) == 0:
            return np.empty(0, np.int32)
        bits = np.frombuffer(values.buffers()[1], np.uint8)
        end = values.offset + len(values)
        flags = np.unpackbits(bits, count=end, bitorder="little")
        return flags[values.offset :].astype(np.int32)


class Single(Ranker):
    """No cuts: one rank for all values."""

    def _rank(self, values: pa.Array) -> Ranks:
        return np.zeros(len(values), np.int32)


def ranker(kind: pa.DataType, cuts: Sequence[Code]) -> Ranker:
    """What ranks values of a type.

    >>> ranker(pa.float64(), [5])(pa.array([-0.0, 1.5, float("nan")])).tolist()
    [0, 1, 1]
    """
    if not cuts:
        return Single()
    if kind == t.BOOLEAN:
        return Booleans()
    if kind in (t.STRING, t.BINARY):
        return Strings([cut for cut in cuts if isinstance(cut, bytes)])
    numbers = [cut for cut in cuts if isinstance(cut, int)]
    few = len(numbers) <= FEW_CUTS
    if t.is_float(kind):
        return FewDoubles(numbers) if few and numbers[-1] != NAN else DoubleBuckets(numbers)
    if not t.is_decimal(kind):
        small = numbers[-1] - numbers[0] < MAX_LOOK_UP
        return LookUp(numbers) if small else FewIntegers(numbers) if few else Buckets(numbers)
    return ShortDecimals(numbers) if kind.precision <= SHORT_DIGITS else LongDecimals(numbers)


Int32s = npt.NDArray[np.int32]

UInt64s = npt.NDArray[np.uint64]
Float64s = npt.NDArray[np.float64]
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
