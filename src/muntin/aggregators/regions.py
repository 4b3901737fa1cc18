"""What DABA and DABA Lite share: the borders of five regions, and how they move.

    .. L .. R .. A .. B .. end

L chases R while A falls back towards it, one step at every insert and evict: when the front stack,
all before B, is used up, the next one is ready.
"""

from __future__ import annotations

from typing import Any

from muntin.aggregators.contract import FIRST, SIZE, Ints, shared
from muntin.aggregators.rings import wrapped

# Where the regions begin, and the oldest partial, counted from the first partial ever.
L, R, A, B, START = range(4, 9)
SLOTS = 9
# What a move of the borders asks for.
TURN, SHRINK = 1, 2


@shared
def end_number(head: Ints) -> int:
    """The number that the next partial gets."""
    return int(head[START] + head[SIZE])


@shared
def place(state: Any, number: int) -> int:
    """The ring index of a partial by its number."""
    head = state.head
    return wrapped(head[FIRST] + (number - head[START]), len(state.partials))


@shared
def move_borders(head: Ints) -> int:
    """One step towards the next front stack.

    TURN says that the back stack has become the middle, SHRINK that the first of [L, R) and the
    last of [R, A) are to be made to reach to B.
    """
    end = end_number(head)
    if head[B] == head[START]:
        # The front is used up and at most one partial is left behind it: that is the front.
        head[L] = head[R] = head[A] = head[B] = end
        return 0
    asked = 0
    if head[L] == head[B]:
        head[L] = head[START]
        head[A] = head[B] = end
        asked = TURN
    if head[L] == head[R]:
        head[L] += 1
        head[R] += 1
        head[A] += 1
        return asked
    return asked | SHRINK
