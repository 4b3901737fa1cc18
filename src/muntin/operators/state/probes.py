"""Probes of a segment: a directory of its sorted hashes, and the rows that live together."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin._compiled import compiled
from muntin._typing import Ints, Words
from muntin.operators.rows import ALWAYS, NEVER

# Among so few entries looking at one after the other is fastest.
_FEW = 32
# The first row to meet is mostly this close to that of the row which asked before.
_NEAR = 8
# A bit stands for so many more leading bits than an entry of the directory.
_MORE = 5
_SIGN = np.uint64(1 << 63)

Places = npt.NDArray[np.int32]


@compiled
def _after(values: Ints, low: int, high: int, bound: int) -> int:
    """The first place from ``low`` to before ``high`` with a value above the bound."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] > bound:
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def _from(values: Ints, low: int, high: int, bound: int) -> int:
    """The first place from ``low`` to before ``high`` with a value of at least the bound."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] >= bound:
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def directory(hashes: Ints, bits: int) -> tuple[Places, Words]:
    """Where the sorted hashes begin that have each value of their leading bits, and the end.

    Then a bit for each value of the leading bits with some more, set where a hash has it.
    """
    heads = np.empty((1 << bits) + 1, np.int32)
    marks = np.zeros(1 << (bits + _MORE - 6), np.uint64)
    shift = np.uint64(64 - bits - _MORE)
    at = 0
    for i in range(hashes.size):
        lead = (np.uint64(hashes[i]) ^ _SIGN) >> shift
        marks[lead >> np.uint64(6)] |= np.uint64(1) << (lead & np.uint64(63))
        while at <= np.int64(lead >> np.uint64(_MORE)):
            heads[at] = i
            at += 1
    heads[at:] = hashes.size
    return heads, marks


@compiled
def _run(hashes: Ints, heads: Places, bucket: np.uint64, wanted: int) -> tuple[int, int]:
    """From where to where sorted hashes are the wanted one."""
    low: int = np.int64(heads[bucket])  # type: ignore[assignment]
    stop: int = np.int64(heads[bucket + np.uint64(1)])  # type: ignore[assignment]
    if stop - low > _FEW:
        low = _from(hashes, low, stop, wanted)
        return low, _after(hashes, low, stop, wanted)
    while low < stop and hashes[low] < wanted:
        low += 1
    high = low
    while high < stop and hashes[high] == wanted:
        high += 1
    return low, high


@compiled
def lead_bits(entries: int) -> int:
    """How many leading bits of a hash have a bit of their own beside a directory of so many."""
    bits = _MORE
    while (1 << (bits - _MORE)) < entries:
        bits += 1
    return bits


@compiled
def run_of(hashes: Ints, heads: Places, marks: Words, bits: int, wanted: int) -> tuple[int, int]:
    """From where to where sorted hashes with a directory are the wanted one; mostly one look."""
    lead = (np.uint64(wanted) ^ _SIGN) >> np.uint64(64 - bits)
    if marks[lead >> np.uint64(6)] >> (lead & np.uint64(63)) & np.uint64(1):
        return _run(hashes, heads, lead >> np.uint64(_MORE), wanted)
    return 0, 0


@compiled
def bounds(start: Ints, end: Ints) -> tuple[int, int, int]:
    """The first start, the last end and the longest life of rows."""
    first, last, longest = NEVER, ALWAYS, 0
    for i in range(start.size):
        first = min(first, start[i])
        last = max(last, end[i])
        longest = max(longest, end[i] - start[i])
    return first, last, longest


@compiled
def count_matches(
    hashes: Ints,
    start: Ints,
    end: Ints,
    kept_hashes: Ints,
    kept_start: Ints,
    kept_end: Ints,
    heads: Places,
    marks: Words,
    longest: int,
    begins: Ints,
    counts: Ints,
) -> int:
    """Where the rows that can live together with each asking row begin, how many do, and all.

    While rows of one key ask in order of time, the first row that each meets only moves on.
    """
    bits = lead_bits(heads.size - 1)
    low = high = begin = total = 0
    for i in range(hashes.size):
        if i == 0 or hashes[i] != hashes[i - 1]:
            low, high = run_of(kept_hashes, heads, marks, bits, hashes[i])
            begin = low
        elif start[i] < start[i - 1]:
            begin = low
        over = start[i] - longest
        if begin + _NEAR < high and kept_start[begin + _NEAR] <= over:
            begin = _after(kept_start, begin + _NEAR, high, over)
        while begin < high and kept_start[begin] <= over:
            begin += 1
        begins[i] = begin
        count = 0
        at = begin
        while at < high and kept_start[at] < end[i]:
            count += kept_end[at] > start[i]
            at += 1
        counts[i] = count
        total += count
    return total


@compiled
def fill_matches(
    first: int,
    start: Ints,
    end: Ints,
    begins: Ints,
    counts: Ints,
    kept_start: Ints,
    kept_end: Ints,
    asking: Ints,
    kept: Ints,
    starts: Ints,
    ends: Ints,
) -> None:
    """The pairs that were counted: who asks, where the row stands, and when the pair lives.

    Asking rows are numbered from ``first`` on.
    """
    at = 0
    for i in range(begins.size):
        place = begins[i]
        stop = at + counts[i]
        while at < stop:
            if kept_end[place] > start[i]:
                asking[at] = first + i
                kept[at] = place
                starts[at] = max(start[i], kept_start[place])
                ends[at] = min(end[i], kept_end[place])
                at += 1
            place += 1
