"""The loop that slides the deques of many groups: least codes, the smaller the better."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.aggregators.bank_intrinsics import prefetch
from muntin.compiled import compiled

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# A group's row of heads: where its deque begins, how many nodes it has, partials so far.
FIRST, LENGTH, NUMBER = range(3)
# A node: a code, and the number of its partial.
CODE, WHEN = range(2)
# Totals of a bank: comparisons at insertion, moves of the answer loop, answers without a value.
COMPARED, MOVED, EMPTY = range(3)
_AHEAD = 8


@compiled
def advance_deques(
    nodes: Ints, heads: Ints, slots: Ints, codes: Ints, valid: Bools, ranges: Ints,
    places: Ints, answers: Ints, nulls: Bools, totals: Ints, row: int,
) -> int:  # fmt: skip
    """Take in the codes from `row` on, one a slot, and answer every range.

    A code that is not valid moves the window and leaves no node; an empty `valid` says that all
    are. Stops at a row whose deque is full and returns it, otherwise the number of rows.
    `nodes` has dimensions (group, 2**k nodes, 2).
    """
    flat, room = nodes.reshape(-1), nodes.shape[1]
    mask, window = room - 1, ranges[0]
    for i in range(row, len(slots)):
        if i + _AHEAD < len(slots):
            ahead = slots[i + _AHEAD]
            prefetch(flat, 2 * (ahead * room + heads[ahead, FIRST]))
        group = slots[i]
        start, length, number = heads[group, FIRST], heads[group, LENGTH], heads[group, NUMBER]
        ring = nodes[group]
        if length > 0 and ring[start, WHEN] == number - window:
            start, length = (start + 1) & mask, length - 1
        if len(valid) == 0 or valid[i]:
            left = _not_beaten(ring, start, length, codes[i])
            if left == room:
                return i
            totals[COMPARED] += min(length - left + 1, length)
            last = (start + left) & mask
            ring[last, CODE], ring[last, WHEN] = codes[i], number
            length = left + 1
        number += 1
        at = 0
        for j in range(len(ranges)):
            while at < length and ring[(start + at) & mask, WHEN] < number - ranges[j]:
                at += 1
                totals[MOVED] += 1
            if at < length:
                answers[places[j], i] = ring[(start + at) & mask, CODE]
            else:
                answers[places[j], i] = 0
                nulls[places[j], i] = True
                totals[EMPTY] += 1
        heads[group, FIRST], heads[group, LENGTH], heads[group, NUMBER] = start, length, number
    return len(slots)


@compiled
def _not_beaten(ring: Ints, start: int, length: int, code: int) -> int:
    """How many nodes stay when a code comes: those of smaller codes."""
    mask = len(ring) - 1
    while length > 0 and ring[(start + length - 1) & mask, CODE] >= code:
        length -= 1
    return length


@compiled
def widen_rings(nodes: Ints, heads: Ints, wider: Ints) -> None:
    """Copy every deque to the start of a larger ring."""
    mask = nodes.shape[1] - 1
    for group in range(len(nodes)):
        start = heads[group, FIRST]
        for k in range(heads[group, LENGTH]):
            wider[group, k, CODE] = nodes[group, (start + k) & mask, CODE]
            wider[group, k, WHEN] = nodes[group, (start + k) & mask, WHEN]
        heads[group, FIRST] = 0
