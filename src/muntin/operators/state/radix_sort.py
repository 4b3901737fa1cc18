"""Orders of rows by hashes or codes, found by counting digits instead of comparing values."""

from __future__ import annotations

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Ints, Words
from muntin.operators.rows import empty_ints

# From so many rows on, counting digits beats sorting by comparisons.
_RADIX = 1 << 12
_DIGIT = 11
# Rows are split into parts of about 4,096, which stay in the processor's cache while they are
# sorted, and at most into 2,048 of them.
_PART, _MOST_PARTS = 12, 11
# Runs that are no longer are sorted by insertion.
_FEW = 32
_SIGN = np.uint64(1 << 63)


def order_of(hashes: Ints, start: Ints) -> tuple[Ints, Ints]:
    """The order of rows by hash, then by start, equal ones as they stand; and the hashes in it.

    >>> order, hashes = order_of(np.array([5, -1, 5]), np.array([9, 9, 3]))
    >>> order.tolist(), hashes.tolist()
    ([1, 2, 0], [-1, 5, 5])
    """
    if hashes.size < _RADIX:
        order: Ints = np.lexsort((start, hashes))
        return order, hashes[order]
    words, split = (empty_ints(hashes.size).view(np.uint64) for _ in range(2))
    np.bitwise_xor(hashes.view(np.uint64), _SIGN, out=words)
    rows, order = empty_ints(words.size), empty_ints(words.size)
    bits = min(words.size.bit_length() - _PART, _MOST_PARTS)
    cuts = split_rows(words, bits, split, rows)
    sort_parts(split, rows, cuts, start, np.uint64(64 - bits - _PART), words, order)
    words ^= _SIGN
    return order, words.view(np.int64)


def order_of_codes(codes: Ints, most: int) -> Ints:
    """The order of rows by their codes, which are below ``most``; equal ones stay as they stand."""
    if codes.size < _RADIX:
        order: Ints = np.argsort(codes, kind="stable")
        return order
    words, order = codes.view(np.uint64), np.empty(0, np.int64)
    for shift in range(0, max(most - 1, 1).bit_length(), _DIGIT):
        after = np.empty(codes.size, np.int64)
        radix_pass(words, order, np.uint64(shift), after)
        order = after
    return order


def order_of_times(times: Ints) -> Ints:
    """The order of rows by some instant of theirs; equal ones stay as they stand."""
    if times.size >= _RADIX:
        first, last = int(times.min()), int(times.max())
        if (last - first) >> (4 * _DIGIT) == 0:
            return order_of_codes(times - first, last - first + 1)
    order: Ints = np.argsort(times, kind="stable")
    return order


@compiled
def radix_pass(words: Words, before: Ints, shift: np.uint64, after: Ints) -> None:
    """Sort places by eleven bits of their words, equal ones as they stand in ``before``."""
    places = np.zeros(1 << _DIGIT, np.int64)
    mask = np.uint64((1 << _DIGIT) - 1)
    for i in range(words.size):
        places[(words[i] >> shift) & mask] += 1
    total = 0
    for digit in range(places.size):
        count = places[digit]
        places[digit] = total
        total += count
    for i in range(words.size):
        row = before[i] if before.size else i
        digit = (words[row] >> shift) & mask
        after[places[digit]] = row
        places[digit] += 1


@compiled
def split_rows(words: Words, bits: int, split: Words, rows: Ints) -> Ints:
    """Bring words, and the rows they are of, into parts by their leading bits; where these end."""
    ends = np.zeros(1 << bits, np.int64)
    shift = np.uint64(64 - bits)
    for i in range(words.size):
        ends[words[i] >> shift] += 1
    total = 0
    for part in range(ends.size):
        count = ends[part]
        ends[part] = total
        total += count
    for i in range(words.size):
        part = words[i] >> shift
        split[ends[part]] = words[i]
        rows[ends[part]] = i
        ends[part] += 1
    return ends


@compiled
def sort_parts(
    split: Words,
    rows: Ints,
    ends: Ints,
    start: Ints,
    shift: np.uint64,
    words: Words,
    order: Ints,
) -> None:
    """Sort parts one by one by their next twelve bits, then what has these in common."""
    # Rows that come in order of time stay in it.
    timely = _is_sorted(start)
    mask = np.uint64((1 << _PART) - 1)
    places = np.empty(1 << _PART, np.int64)
    low = 0
    for high in ends:
        places[:] = 0
        for i in range(low, high):
            places[(split[i] >> shift) & mask] += 1
        total = low
        for digit in range(places.size):
            count = places[digit]
            places[digit] = total
            total += count
        for i in range(low, high):
            digit = (split[i] >> shift) & mask
            words[places[digit]] = split[i]
            order[places[digit]] = rows[i]
            places[digit] += 1
        _sort_runs(words[low:high], order[low:high], start, timely, shift)
        low = high


@compiled
def _is_sorted(values: Ints) -> bool:
    is_sorted = True
    for i in range(1, values.size):
        is_sorted &= values[i - 1] <= values[i]
    return is_sorted


@compiled
def _sort_runs(words: Words, order: Ints, start: Ints, timely: bool, shift: np.uint64) -> None:
    """Bring rows that agree in their leading bits into order of word and start."""
    begin = 0
    while begin < order.size:
        end = begin + 1
        is_done = True
        while end < order.size and words[end] >> shift == words[begin] >> shift:
            if words[end] == words[end - 1]:
                is_done &= timely or start[order[end]] >= start[order[end - 1]]
            else:
                is_done &= words[end] > words[end - 1]
            end += 1
        if not is_done and end - begin > _FEW:
            by_start = np.argsort(start[order[begin:end]], kind="mergesort")
            by_word = by_start[np.argsort(words[begin:end][by_start], kind="mergesort")]
            words[begin:end] = words[begin:end][by_word]
            order[begin:end] = order[begin:end][by_word]
        elif not is_done:
            _insert(words[begin:end], order[begin:end], start)
        begin = end


@compiled
def _insert(words: Words, order: Ints, start: Ints) -> None:
    """Sort a few rows by word and start."""
    for i in range(1, order.size):
        word, row = words[i], order[i]
        at = i
        while at > 0 and (
            words[at - 1] > word or (words[at - 1] == word and start[order[at - 1]] > start[row])
        ):
            words[at], order[at] = words[at - 1], order[at - 1]
            at -= 1
        words[at], order[at] = word, row
