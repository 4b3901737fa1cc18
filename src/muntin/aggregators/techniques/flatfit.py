"""FlatFIT: partials that know how far ahead they already reach."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from muntin._typing import Ints
from muntin.aggregators.card import Card
from muntin.aggregators.contract import OPERATIONS, SIZE
from muntin.aggregators.operators import Store, Sum, combine, load, save
from muntin.aggregators.rings import new_head, unrolled, wrapped

# Pointers of so many places and ranges are followed to tell what they cost.
_LONGEST = 1 << 17
# Where ranges have little in common, it takes rounds until pointers lie as they will.
_ROUNDS, _COUNTED = 24, 4


@cache
def _per_slide(ranges: tuple[int, ...]) -> float:
    """Operations of the pointers themselves, which do not depend on values."""
    # Deferred: it brings numba, which only several ranges need here.
    from muntin.aggregators.kernels import slide_compiled  # noqa: PLC0415

    op, falling = Sum(), np.array(ranges[::-1], np.int64)
    window = ranges[-1]
    state = FlatFIT.create(op, window, len(ranges), True)
    zeros, answers = np.zeros(window + 1, np.int64), np.empty((window + 1) * len(ranges), np.int64)
    before = 0
    for turn in range(_ROUNDS + _COUNTED):
        if turn == _ROUNDS:
            before = int(state.head[OPERATIONS])
        slide_compiled(op, state, falling, zeros, answers, 0)
    return (int(state.head[OPERATIONS]) - before) / (_COUNTED * len(zeros))


def counted(ranges: Sequence[int]) -> float:
    """Three a slide with one range; with several, those of a round of the ring."""
    if len(ranges) == 1:
        return 3.0 * (ranges[0] - 1) / (ranges[0] + 1)
    # Longer windows take hardly more: pointers reach twice as far a time.
    longest = max(_LONGEST // len(ranges), len(ranges))
    scale = min(1.0, longest / max(ranges))
    return _per_slide(tuple(sorted({max(round(size * scale), 1) for size in ranges})))


CARD = Card(
    name="flatfit",
    needs="any",
    amortised="3 (n - 1) / (n + 1), below 3",
    worst="n - 1",
    multi="n - 1",
    space="3 n",
    several_ranges=True,
    paper="FlatFIT, SSDBM 2017; Algorithm 1 of Algorithms and Optimizations for Incremental "
    "Window-Based Aggregations, 2019",
    counted=counted,
)

# The index that follows the newest partial.
CURRENT = 4


class FlatFIT(NamedTuple):
    """A jump table: partial i combines all from i up to `pointers[i]`.

    A query follows the pointers from the start of its window to the current index. On the way
    back it lets every partial it met, but the first, reach the current index at once.
    """

    partials: Store
    pointers: Ints
    positions: Ints
    head: Ints

    @staticmethod
    def create(op: Any, capacity: int, columns: int, full: bool) -> FlatFIT:
        """Identities that reach the next index each, counted as partials if `full`."""
        head = new_head(capacity if full else 0, 5)
        head[CURRENT] = capacity - 1
        pointers = (np.arange(capacity) + 1) % capacity
        return FlatFIT(op.empty(capacity), pointers, np.zeros(capacity, np.int64), head)

    @staticmethod
    def grown(op: Any, state: FlatFIT, capacity: int) -> FlatFIT:
        """The same partials in a larger ring, oldest first."""
        head = state.head.copy()
        room, size = len(state.partials), head[SIZE]
        first = (head[CURRENT] - size) % room
        pointers = (np.arange(capacity) + 1) % capacity
        reached = state.pointers[(first + np.arange(size)) % room]
        # A pointer never reaches back to the oldest index, unless it has gone full circle.
        ahead = (reached - first) % room
        pointers[:size] = np.where(ahead == 0, room, ahead)
        head[CURRENT] = size
        partials = unrolled(op, state.partials, first, size, capacity)
        return FlatFIT(partials, pointers, np.zeros(capacity, np.int64), head)

    @staticmethod
    def insert(op: Any, state: FlatFIT, partial: Any) -> None:
        """Write before the index that becomes current."""
        head = state.head
        at = head[CURRENT]
        head[CURRENT] = wrapped(at + 1, len(state.partials))
        save(op, state.partials, at, partial)
        state.pointers[at] = head[CURRENT]
        head[SIZE] += 1

    @staticmethod
    def evict(op: Any, state: FlatFIT) -> None:
        """Forget the oldest: no window starts there any more."""
        state.head[SIZE] -= 1

    @staticmethod
    def query(op: Any, state: FlatFIT, size: int) -> Any:
        """Follow the pointers, then combine from the newest back to the oldest."""
        head = state.head
        current = head[CURRENT]
        pointers, positions = state.pointers, state.positions
        at = current - size
        if at < 0:
            at += len(pointers)
        depth = 0
        while True:
            positions[depth] = at
            depth += 1
            at = pointers[at]
            if at == current:
                break
        head[OPERATIONS] += depth - 1
        depth -= 1
        answer = load(op, state.partials, positions[depth])
        while depth > 0:
            depth -= 1
            at = positions[depth]
            answer = combine(op, load(op, state.partials, at), answer)
            # The start of the window expires before another query could begin there.
            if depth > 0:
                save(op, state.partials, at, answer)
                pointers[at] = current
        return answer
