"""SlickDeque(Non-Inv) for one range over codes, a block of partials at a time.

On random input the comparisons at insertion are as good as coin tosses, and a loop that branches on
them waits for a mispredicted branch at every other partial. But within a block no longer than the
window only two things matter for the answers: the first node of the deque, until it expires, and
the least code of the block so far. The rest of the deque is put in order when the block is done,
walking backwards. The deque after a block, the answers, and the operations that are counted are
those of partials inserted one by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from muntin._typing import Ints
from muntin.aggregators.contract import FIRST, OPERATIONS, SIZE, shared
from muntin.aggregators.techniques.slickdeque_noninv import END, LENGTH, walk

_FEWEST, _BLOCK = 4, 64
_1U = np.uint64(1)


def slide_codes(
    op: Any, state: Any, ranges: Ints, partials: Ints, answers: Ints, first: int
) -> int:
    """Slide a window over codes; the smallest is the answer."""
    while ranges[0] >= _FEWEST and len(partials) - first >= _FEWEST:
        stop = first + min(ranges[0], _BLOCK, len(partials) - first)
        if not slide_block(op, state, ranges[0], partials[first:stop], answers[first:stop]):
            return first
        first = stop
    return walk(op, state, ranges, partials, answers, first)


@shared
def slide_block(op: Any, state: Any, window: int, codes: Ints, answers: Ints) -> bool:
    """Slide a block of codes; false, and nothing done, if the ring has no room for them."""
    head, nodes = state.head, state.partials
    flip, mask, size = op.flip, len(nodes) - 1, len(codes)
    at, left = head[FIRST], head[LENGTH]
    expired = emptied = 0
    front, until = first_node(op, state, window, at, left)
    best, least = front, op.nothing
    for k in range(size):
        if k == until:
            # Only a node that no code of the block has beaten is there to expire; and if the first
            # is beaten, so are all.
            alive = k == 0 or front < least
            expired += int(alive)
            at, left = (at + 1) & mask, left - 1 if alive else 0
            front, until = first_node(op, state, window, at, left)
            best = min(front, least)
        code = codes[k] ^ flip
        emptied += int(code <= best)
        best = min(best, code)
        least = min(least, code)
        answers[k] = best ^ flip
    while left > 0 and least <= nodes[(at + left - 1) & mask]:
        left -= 1
    if left + size > len(nodes):
        return False
    count = place_block(op, state, codes, least, at + left)
    # Every code is compared with the nodes it beats and with one more, unless none is left.
    beaten = head[LENGTH] + size - (left + count) - expired
    head[OPERATIONS] += beaten + size - emptied
    head[FIRST], head[LENGTH] = at, left + count
    head[END] += size
    head[SIZE] = min(head[END], window)
    return True


@shared
def first_node(op: Any, state: Any, window: int, at: int, left: int) -> tuple[int, int]:
    """The code of the deque's first node, and the index of the code that it expires with."""
    if left == 0:
        return op.nothing, -1
    return state.partials[at], state.numbers[at] + window - state.head[END]


@shared
def place_block(op: Any, state: Any, codes: Ints, least: int, start: int) -> int:
    """Append the codes that no later one beats, from `start` on; returns how many.

    They are found last to first, each below all that follow. So they are written to the end of the
    space that a whole block would take, and then moved down.
    """
    # Unsigned indices spare the loop a check for negative ones.
    nodes, numbers, mask = state.partials, state.numbers, np.uint64(len(state.partials) - 1)
    k = np.uint64(len(codes) - 1)
    top = np.uint64(start) + k
    place = top
    below, last = codes[k] ^ op.flip, k
    nodes[place & mask] = below
    numbers[place & mask] = np.int64(last) + state.head[END]
    while below != least:
        k -= _1U
        code = codes[k] ^ op.flip
        # Without a branch: a node is written again and again until a code below it is found.
        place -= np.uint64(code < below)
        last = k if code < below else last
        below = min(below, code)
        nodes[place & mask] = below
        numbers[place & mask] = np.int64(last) + state.head[END]
    count = np.int64(top - place) + 1
    for node in range(count):
        source, target = place + np.uint64(node), np.uint64(start + node)
        nodes[target & mask] = nodes[source & mask]
        numbers[target & mask] = numbers[source & mask]
    return int(count)
