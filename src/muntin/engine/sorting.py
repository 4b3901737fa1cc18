"""The order of entries: by group, then start, then code."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.engine.encoding import compact
from muntin.engine.entry_kernels import distinct_in_order
from muntin.engine.sorting_kernels import DIGIT_BITS, number_in_time, number_sorted, sort_by_digit

Ints = npt.NDArray[np.int64]

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
    if codes.size and not groups.any():
        numbers, kept = number_in_time(starts, codes)
        if kept.size:
            return numbers, kept
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
