"""Loops that keep the row with the smallest (key, value) a cell, or the greatest.

A row is three numbers: the key's code, whether the value is not NULL, the value's code. They are
compared in that order; `flip` is 0 for the smallest row and -1 for the greatest, whose
complemented numbers are smallest.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.aggregates.order_kernels import NOTHING
from muntin.compiled import compiled

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@compiled
def _before(
    keys: Ints,
    valid: Bools,
    values: Ints,
    i: int,
    other_keys: Ints,
    other_valid: Bools,
    other_values: Ints,
    j: int,
    flip: int,
) -> bool:
    """Whether row i comes before row j of the others."""
    if keys[i] != other_keys[j]:
        return bool((keys[i] ^ flip) < (other_keys[j] ^ flip))
    if valid[i] != other_valid[j]:
        return bool(valid[i] == (flip != 0))
    return bool(valid[i] and (values[i] ^ flip) < (other_values[j] ^ flip))


@compiled
def key_winners(cells: Ints, keys: Ints, size: int, flip: int) -> Ints:
    """The rows that no other row of the same cell precedes by its key alone; `size` cells."""
    best = np.full(size, NOTHING, np.int64)
    for i in range(cells.shape[0]):
        if cells[i] >= 0:
            best[cells[i]] = min(best[cells[i]], keys[i] ^ flip)
    out = np.empty(cells.shape[0], np.int64)
    found = 0
    for i in range(cells.shape[0]):
        if cells[i] >= 0 and best[cells[i]] == (keys[i] ^ flip):
            out[found] = i
            found += 1
    return out[:found]


@compiled
def keep_picks(
    seen: Bools,
    keys: Ints,
    valid: Bools,
    values: Ints,
    flip: int,
    cells: Ints,
    other_keys: Ints,
    other_valid: Bools,
    other_values: Ints,
) -> None:
    """Keep the row that comes first a cell; -1 skips a row."""
    for i in range(cells.shape[0]):
        cell = cells[i]
        # Most rows are settled by their key alone, without a call.
        if cell < 0 or (seen[cell] and (keys[cell] ^ flip) < (other_keys[i] ^ flip)):
            continue
        if not seen[cell] or _before(
            other_keys, other_valid, other_values, i, keys, valid, values, cell, flip
        ):
            seen[cell] = True
            keys[cell] = other_keys[i]
            valid[cell] = other_valid[i]
            values[cell] = other_values[i]


@compiled
def slide_picks(
    seen: Bools, keys: Ints, valid: Bools, values: Ints, flip: int, starts: Ints, ends: Ints
) -> Ints:
    """The index of the first row in [starts[i], ends[i]), -1 where none was seen.

    The same deque as for a minimum, with rows for codes.
    """
    out = np.empty(starts.shape[0], np.int64)
    queue = np.empty(keys.shape[0], np.int64)
    head, tail, entered, before = 0, 0, 0, 0
    for i in range(starts.shape[0]):
        start, end = starts[i], ends[i]
        if i == 0 or start < before or end < entered or start >= entered:
            head, tail, entered = 0, 0, start
        before = start
        while entered < end:
            if seen[entered]:
                while tail > head and _before(
                    keys, valid, values, entered, keys, valid, values, queue[tail - 1], flip
                ):
                    tail -= 1
                queue[tail] = entered
                tail += 1
            entered += 1
        while head < tail and queue[head] < start:
            head += 1
        out[i] = queue[head] if head < tail else -1
    return out
