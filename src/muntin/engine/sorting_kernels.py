"""Compiled loops that sort numbers digit by digit."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.compiled import compiled

Ints = npt.NDArray[np.int64]

DIGIT_BITS = 11
_SIZE = 1 << DIGIT_BITS


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
