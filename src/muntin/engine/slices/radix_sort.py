"""The order of entries: by group, then start, then code."""

from __future__ import annotations

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.engine.rows.dictionary import compact
from muntin.engine.rows.entries import distinct_in_order

# Entries are sorted by one number below this where all their parts fit into it.
_KEY_LIMIT = 1 << 62
# A few sorted runs are merged faster than they are sorted anew, and few keys by comparing them.
_FEW_RUNS = 256
_FEW_KEYS = 1 << 13


def sort_entries(groups: Ints, starts: Ints, codes: Ints) -> tuple[Ints, Ints]:
    """The number of each entry among the different ones in order, and one entry for each number.

    ``codes`` is empty where entries have none.

    >>> none = np.empty(0, np.int64)
    >>> numbers, kept = sort_entries(np.array([1, 0, 1]), np.array([5, 9, 5]), none)
    >>> numbers.tolist(), kept.tolist()
    ([1, 0, 1], [1, 0])
    """
    if not starts.size:
        return starts, starts
    distances, ticks = compact(starts - starts.min())
    ranks = np.empty(ticks.size, np.int64)
    ranks[np.argsort(ticks)] = np.arange(ticks.size)
    size = int(codes.max(initial=0)) + 1
    if (int(groups.max()) + 1) * ticks.size * size >= _KEY_LIMIT:
        columns = (codes, starts, groups) if codes.size else (starts, groups)
        return distinct_in_order(np.lexsort(columns), groups, starts, codes)
    # One key sorts several times as fast as three columns do.
    keys = groups * ticks.size + ranks[distances]
    keys = keys * size + codes if codes.size else keys
    return number_sorted(*_sorted(keys))


def sort_in_time(starts: Ints, codes: Ints) -> tuple[Ints, Ints]:
    """The same where all entries are of one group.

    >>> numbers, kept = sort_in_time(np.array([5, 5, 9, 9]), np.array([0, 1, 1, 1]))
    >>> numbers.tolist(), kept.tolist()
    ([0, 1, 2, 2], [0, 1, 2])
    """
    if codes.size:
        numbers, kept = number_in_time(starts, codes)
        if kept.size:
            return numbers, kept
    return sort_entries(np.zeros(starts.size, np.int64), starts, codes)


def _sorted(keys: Ints) -> tuple[Ints, Ints]:
    """Keys of zero or more in order, and where each stood."""
    falls = int(np.count_nonzero(keys[1:] < keys[:-1]))
    if falls < _FEW_RUNS or keys.size < _FEW_KEYS:
        order: Ints = np.argsort(keys, kind="stable")
        return keys[order], order
    order = np.empty(0, np.int64)
    room = np.empty((4, keys.size), np.int64)
    for digit in range(-(-int(keys.max()).bit_length() // DIGIT_BITS)):
        to_keys, to_order = room[2 * (digit % 2) : 2 * (digit % 2) + 2]
        sort_by_digit(keys, order, digit * DIGIT_BITS, to_keys, to_order)
        keys, order = to_keys, to_order
    return keys, order


DIGIT_BITS = 11
_SIZE = 1 << DIGIT_BITS
# So few numbers are sorted fastest by insertion.
_FEW = 48


@compiled
def sort_by_digit(keys: Ints, order: Ints, shift: int, to_keys: Ints, to_order: Ints) -> None:
    """Sort keys by the eleven bits from bit ``shift`` on, equal ones as they stand.

    ``order`` holds what goes along with each key; empty, it is the place of the key.
    """
    places = np.zeros(_SIZE, np.int64)
    for i in range(keys.size):
        places[(keys[i] >> shift) & (_SIZE - 1)] += 1
    total = 0
    for digit in range(_SIZE):
        count = places[digit]
        places[digit] = total
        total += count
    for i in range(keys.size):
        digit = (keys[i] >> shift) & (_SIZE - 1)
        at = places[digit]
        places[digit] = at + 1
        to_keys[at] = keys[i]
        to_order[at] = order[i] if order.size else i


@compiled
def number_sorted(keys: Ints, order: Ints) -> tuple[Ints, Ints]:
    """For sorted keys, the number of each among the different ones, and one of each.

    ``order`` says where each key stood; numbers are given, and keys named, by where they stood.
    """
    numbers = np.empty(keys.size, np.int64)
    kept = np.empty(keys.size, np.int64)
    count = 0
    for i in range(keys.size):
        if i == 0 or keys[i] != keys[i - 1]:
            kept[count] = order[i]
            count += 1
        numbers[order[i]] = count - 1
    return numbers, kept[:count].copy()


@compiled
def number_in_time(starts: Ints, codes: Ints) -> tuple[Ints, Ints]:
    """The same for entries in order of start, then of code; nothing where starts descend.

    Only entries of one start are brought into order, where they are not: a few of them mostly.
    """
    numbers = np.empty(starts.size, np.int64)
    kept = np.empty(starts.size, np.int64)
    order = np.empty(0, np.int64)
    count = begin = 0
    while begin < starts.size:
        end = begin + 1
        ordered = True
        while end < starts.size and starts[end] == starts[begin]:
            ordered &= codes[end - 1] < codes[end]
            end += 1
        if end < starts.size and starts[end] < starts[begin]:
            return order[:0], order[:0]
        if ordered:
            for i in range(begin, end):
                numbers[i], kept[count] = count, i
                count += 1
        else:
            if order.size < end - begin:
                order = np.empty(2 * (end - begin), np.int64)
            _sort_few(codes[begin:end], order)
            for i in range(end - begin):
                at = begin + order[i]
                if i == 0 or codes[at] != codes[begin + order[i - 1]]:
                    kept[count] = at
                    count += 1
                numbers[at] = count - 1
        begin = end
    return numbers, kept[:count].copy()


@compiled
def _sort_few(codes: Ints, order: Ints) -> None:
    """Write the places of some codes in order, equal ones as they stand."""
    if codes.size > _FEW:
        order[: codes.size] = np.argsort(codes, kind="mergesort")
        return
    for i in range(codes.size):
        at = i
        while at > 0 and codes[order[at - 1]] > codes[i]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = i
