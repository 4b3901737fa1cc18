"""Compiled loops that number and order entries: slices, groups and cells."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.compiled import compiled

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@compiled
def number_runs(starts: Ints) -> tuple[Ints, Ints]:
    """Number the different starts of rows in time order, and list them; nothing if out of order."""
    ids = np.empty(starts.size, np.int64)
    found = np.empty(starts.size, np.int64)
    count = 0
    for i in range(starts.size):
        if i == 0 or starts[i] != starts[i - 1]:
            if i > 0 and starts[i] < starts[i - 1]:
                return np.empty(0, np.int64), np.empty(0, np.int64)
            found[count] = starts[i]
            count += 1
        ids[i] = count - 1
    return ids, found[:count].copy()


@compiled
def number_cells(slices: Ints, codes: Ints, size: int) -> tuple[Ints, Ints, Ints]:
    """Number the pairs of slice and code of rows that come slice by slice, in that order.

    Returns the number of every row (-1 for a code of -1), and the slice and code of each number.
    Returns nothing where a row belongs to an earlier slice than the row before it, or to none.
    """
    ids = np.empty(slices.size, np.int64)
    owners = np.empty(slices.size, np.int64)
    found = np.empty(slices.size, np.int64)
    # Places are codes plus one, so that -1 has a place and rows need no branch. They are read
    # eight at a time: most cells are not seen in a slice.
    seen = np.zeros((size + 8) // 8 * 8, np.uint8)
    eights = seen.view(np.uint64)
    numbers = np.empty(seen.size, np.int32)
    numbers[0] = -1
    nothing = np.empty(0, np.int64)
    count = 0
    begin = 0
    while begin < slices.size:
        current = slices[begin]
        end = begin
        while end < slices.size and slices[end] == current:
            seen[np.uint64(codes[end] + 1)] = 1
            end += 1
        if current < 0 or (end < slices.size and slices[end] < current):
            return nothing, nothing, nothing
        seen[0] = 0
        for eight in range(eights.size):
            if eights[eight] == 0:
                continue
            for place in range(8 * eight, 8 * eight + 8):
                if seen[place]:
                    numbers[place] = count
                    owners[count], found[count] = current, place - 1
                    count += 1
            eights[eight] = 0
        for i in range(begin, end):
            ids[i] = numbers[np.uint64(codes[i] + 1)]
        begin = end
    return ids, owners[:count].copy(), found[:count].copy()


@compiled
def ascending(groups: Ints, starts: Ints, codes: Ints) -> bool:
    """Whether entries lie in order of group, start and code, and no two are equal.

    ``codes`` is empty where entries have none.
    """
    for i in range(1, starts.size):
        if groups[i] != groups[i - 1]:
            if groups[i] < groups[i - 1]:
                return False
        elif starts[i] != starts[i - 1]:
            if starts[i] < starts[i - 1]:
                return False
        elif codes.size == 0 or codes[i] <= codes[i - 1]:
            return False
    return True


@compiled
def distinct_in_order(order: Ints, groups: Ints, starts: Ints, codes: Ints) -> tuple[Ints, Ints]:
    """For sorted entries, the number of each among the different ones, and one of each.

    ``order`` sorts the entries; numbers are given to the entries as they stand.
    """
    numbers = np.empty(order.size, np.int64)
    kept = np.empty(order.size, np.int64)
    count = 0
    for i in range(order.size):
        at = order[i]
        if i > 0:
            before = order[i - 1]
            same = groups[at] == groups[before] and starts[at] == starts[before]
            if same and (codes.size == 0 or codes[at] == codes[before]):
                numbers[at] = count - 1
                continue
        numbers[at] = count
        kept[count] = at
        count += 1
    return numbers, kept[:count].copy()


@compiled
def number_neighbours(left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """Number the pairs of two sorted columns, equal neighbours alike; and where each begins."""
    numbers = np.empty(left.size, np.int64)
    begins = np.empty(left.size, np.int64)
    count = 0
    for i in range(left.size):
        if i == 0 or left[i] != left[i - 1] or right[i] != right[i - 1]:
            begins[count] = i
            count += 1
        numbers[i] = count - 1
    return numbers, begins[:count].copy()
