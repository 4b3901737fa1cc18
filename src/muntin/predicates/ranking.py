"""The rank of every value of an Arrow array among sorted cuts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates.arrow_views import decimal_words, double_bits, integers
from muntin.expressions import types as t
from muntin.predicates import kernels
from muntin.predicates.order import NAN, Code, double_of

Ranks = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

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
        kernels.look_up(integers(values), self._table, self._low, ranks)
        return ranks


class FewIntegers(Ranker):
    """Integers, among few cuts."""

    def __init__(self, cuts: Sequence[int]) -> None:
        self._cuts = np.array(cuts, np.int64)

    def _rank(self, values: pa.Array) -> Ranks:
        ranks = np.empty(len(values), np.int32)
        kernels.count_cuts(integers(values), self._cuts, ranks)
        return ranks


class FewDoubles(Ranker):
    """FLOAT and DOUBLE, among few cuts, none of them at NaN."""

    def __init__(self, cuts: Sequence[int]) -> None:
        self._cuts = np.array([double_of(cut) for cut in cuts])

    def _rank(self, values: pa.Array) -> Ranks:
        ranks = np.empty(len(values), np.int32)
        kernels.count_cuts(double_bits(values).view(np.float64), self._cuts, ranks)
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
        kernels.rank_integers(values, self._cuts, self._starts, self._bucketing, ranks)
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
        kernels.rank_doubles(numbers, self._cuts, self._starts, self._bucketing, ranks)
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


def _bucketed(
    numbers: list[float], origin: float
) -> tuple[kernels.Bucketing, npt.NDArray[np.intp]]:
    """A table of buckets, and the bucket of every number."""
    first, last = (
        kernels.bucket_of(n, origin, -MAX_CODE - 1, 0) for n in (numbers[0], numbers[-1])
    )
    shift = max(0, (int(last) - int(first)).bit_length() - _bits(len(numbers)))
    low = int(first) - MAX_CODE - 1
    buckets = np.array([kernels.bucket_of(n, origin, low, shift) for n in numbers], np.intp)
    return (origin, low, shift, int(np.bincount(buckets).max()).bit_length()), buckets


class LongDecimals(Ranker):
    """Decimals of 128 bits."""

    def __init__(self, cuts: Sequence[int]) -> None:
        packed = b"".join(cut.to_bytes(16, "little", signed=True) for cut in cuts)
        self._cuts = np.frombuffer(packed, np.int64).reshape(-1, 2)

    def _rank(self, values: pa.Array) -> Ranks:
        ranks = np.empty(len(values), np.int32)
        kernels.rank_wide(decimal_words(values), self._cuts, ranks)
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
            kernels.rank_bytes(ends, content, self._cuts, *table, ranks)


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
