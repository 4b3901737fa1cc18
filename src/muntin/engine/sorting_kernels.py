"""Compiled loops that sort numbers digit by digit, or slice by slice."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.compiled import compiled

Ints = npt.NDArray[np.int64]

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
