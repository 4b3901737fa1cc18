"""Ranks of strings and binaries, by their bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin._compiled import compiled
from muntin._typing import Bytes, Ranks
from muntin.predicates.ranks.ranker import Ranker, bucket_bits, bucket_starts

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
UInt64s = npt.NDArray[np.uint64]
# Heads, runs, offsets and bytes of strings.
Cuts = tuple[UInt64s, Int64s, Int64s, Bytes]

MAX_HEAD = (1 << 64) - 1
_ALL_BITS = np.uint64((1 << 64) - 1)


class Strings(Ranker):
    """Strings and binaries, by their bytes."""

    def __init__(self, cuts: Sequence[bytes]) -> None:
        offsets = np.cumsum([0, *map(len, cuts)], dtype=np.int64)
        data = np.frombuffer(b"".join(cuts), np.uint8)
        numbers = [_head(cut) for cut in cuts]
        low = numbers[0]
        shift = max(0, (numbers[-1] - low).bit_length() - bucket_bits(len(cuts)))
        buckets = np.array([(number - low) >> shift for number in numbers], np.intp)
        steps = int(np.bincount(buckets).max()).bit_length()
        heads = np.array([*numbers, *[MAX_HEAD] * ((1 << steps) - 1)], np.uint64)
        runs = np.searchsorted(heads, heads[: len(cuts)], "left")
        self._shift, self._steps = shift, steps
        self._starts = bucket_starts(buckets)
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
    with sentinels behind as for numbers; for each, where the run of equal heads begins; their
    offsets and their bytes. Only a long string that begins like a cut is compared byte by byte.
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
