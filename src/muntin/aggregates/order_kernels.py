"""Loops over values that are ordered as 64-bit codes: smallest code, smallest pair of codes.

A greatest value is the smallest of its complemented codes, so one loop serves both ends. The
identity is the largest code; a value with that code is marked apart.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.compiled import compiled

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

NOTHING = (1 << 63) - 1
_NAN = 0x7FF8 << 48
_INFINITY = 0x7FF0 << 48


@compiled
def double_codes(bits: Ints) -> Ints:
    """Codes that order doubles: -0.0 before 0.0, all NaN equal and greatest."""
    out = np.empty(bits.shape[0], np.int64)
    for i in range(bits.shape[0]):
        b = bits[i]
        size = b & NOTHING
        if size > _INFINITY:
            out[i] = _NAN
        else:
            out[i] = b ^ ((b >> 63) & NOTHING)
    return out


@compiled
def keep_least(least: Ints, marks: Bools, cells: Ints, codes: Ints, flip: int, first: int) -> int:
    """Keep the smallest `code ^ flip` a cell.

    Stops at a row whose code is the identity's while `marks` is empty, and returns it; otherwise
    marks such cells and returns the number of rows.
    """
    for i in range(first, cells.shape[0]):
        cell = cells[i]
        if cell < 0:
            continue
        code = codes[i] ^ flip
        if code < least[cell]:
            least[cell] = code
        elif code == NOTHING:
            if marks.shape[0] == 0:
                return i
            marks[cell] = True
    return len(cells)


@compiled
def merge_least(least: Ints, cells: Ints, others: Ints) -> None:
    """Keep the smaller of own and other codes."""
    for i in range(cells.shape[0]):
        cell = cells[i]
        if cell >= 0 and others[i] < least[cell]:
            least[cell] = others[i]


@compiled
def merge_marks(marks: Bools, cells: Ints, others: Bools) -> None:
    """Mark the cells whose other is marked."""
    for i in range(cells.shape[0]):
        if cells[i] >= 0 and others[i]:
            marks[cells[i]] = True


@compiled
def slide_least(least: Ints, starts: Ints, ends: Ints) -> Ints:
    """The index of the smallest code in [starts[i], ends[i]), -1 for an empty range.

    A deque of indices with rising codes; an index enters and leaves it once a run, so a window
    costs less than two comparisons on average.
    """
    out = np.empty(starts.shape[0], np.int64)
    queue = np.empty(least.shape[0], np.int64)
    head, tail, entered, before = 0, 0, 0, 0
    for i in range(starts.shape[0]):
        start, end = starts[i], ends[i]
        if i == 0 or start < before or end < entered or start >= entered:
            head, tail, entered = 0, 0, start
        before = start
        while entered < end:
            while tail > head and least[queue[tail - 1]] >= least[entered]:
                tail -= 1
            queue[tail] = entered
            tail += 1
            entered += 1
        while head < tail and queue[head] < start:
            head += 1
        out[i] = queue[head] if head < tail else -1
    return out
