"""The most frequent values of windows, found through the ranks of their blocks.

Only values that are frequent in some block can be among them, so a wavelet matrix is followed down
where enough weight is left.
"""

from __future__ import annotations

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.engine.slices.values.ranks import (
    DISTINCT,
    LEVELS,
    below,
    compared,
    lower_bound,
    read_code,
    split,
    total_between,
)

# Of k values that are looked for, each is first expected to be one in so many times k; where too
# few are, rarer ones are looked for, by this factor.
_TRIED, _FEWER = 8, 16


@compiled
def heaviest_codes(
    table: Ints, begins: Ints, ends: Ints, totals: Ints, most: int, floors: Ints, offsets: Ints
) -> tuple[Ints, Ints, Ints]:
    """The most frequent values of each window that occur often enough, from its offset on.

    Codes, numbers of occurrences, and how many there are. A value that occurs n times in b blocks
    does so n / b times in one of them: only such are followed down its matrix.
    """
    blocks = table.shape[0]
    codes = np.zeros(offsets[-1], np.int64)
    counts = np.zeros(offsets[-1], np.int64)
    sizes = np.zeros(totals.size, np.int64)
    stack = np.empty((130, 5), np.int64)
    code = np.zeros(1, np.int64)
    for row in range(totals.size):
        if totals[row] == 0:
            continue
        spanned = 0
        for block in range(blocks):
            spanned += begins[row, block] < ends[row, block]
        least = max(totals[row] // (_TRIED * most), floors[row])
        while True:
            share = max((least + spanned - 1) // spanned, 1)
            first, room, held = offsets[row], offsets[row + 1] - offsets[row], 0
            for block in range(blocks):
                begin, end = begins[row, block], ends[row, block]
                if begin == end:
                    continue
                depth, levels = 1, table[block, LEVELS]
                stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, begin, end, 0
                stack[0, 4] = total_between(table, block, begin, end)
                while depth:
                    depth -= 1
                    level, low, high, rank, weight = stack[depth]
                    if weight < share:
                        continue
                    if level < levels:
                        left, right, to, until, less = split(table, block, level, low, high)
                        bit = 1 << (levels - 1 - level)
                        stack[depth, 0], stack[depth, 1], stack[depth, 2] = level + 1, left, right
                        stack[depth, 3], stack[depth, 4] = rank, less
                        depth += 1
                        stack[depth, 0], stack[depth, 1], stack[depth, 2] = level + 1, to, until
                        stack[depth, 3], stack[depth, 4] = rank | bit, weight - less
                        depth += 1
                        continue
                    read_code(table, block, rank, code)
                    count = _count_of(table, begins, ends, row, block, code, share)
                    if count >= least:
                        held = _keep(codes, counts, first, room, held, code[0], count)
            if held >= min(room, most) or least <= floors[row]:
                sizes[row] = held
                break
            least = max(least // _FEWER, floors[row])
    return codes, counts, sizes


@compiled
def _count_of(
    table: Ints, begins: Ints, ends: Ints, row: int, found: int, code: Ints, share: int
) -> int:
    """How often a value of one block occurs in a window; 0 if an earlier block has found it."""
    total = 0
    for block in range(table.shape[0]):
        begin, end = begins[row, block], ends[row, block]
        if begin == end:
            continue
        distinct = table[block, DISTINCT]
        at = lower_bound(table, block, 0, distinct, code)
        if at < distinct and compared(table, block, at, code) == 0:
            upto = below(table, block, begin, end, at + 1)
            own = upto - below(table, block, begin, end, at)
            if block < found and own >= share:
                return 0
            total += own
    return total


@compiled
def _keep(
    codes: Ints, counts: Ints, first: int, room: int, held: int, code: int, count: int
) -> int:
    """Put a value among the most frequent ones, the least of equally frequent ones first."""
    if held == room:
        last = first + held - 1
        if room == 0 or count < counts[last] or (count == counts[last] and code > codes[last]):
            return held
        held -= 1
    at = first + held
    while at > first and (
        counts[at - 1] < count or (counts[at - 1] == count and codes[at - 1] > code)
    ):
        codes[at], counts[at] = codes[at - 1], counts[at - 1]
        at -= 1
    codes[at], counts[at] = code, count
    return held + 1
