"""TwoStacks: a queue made of two stacks that both know what lies below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from muntin._typing import Ints
from muntin.aggregators.card import Card
from muntin.aggregators.contract import FIRST, OPERATIONS, SIZE, shared
from muntin.aggregators.operators import Store, combine, load, save
from muntin.aggregators.rings import before, drop_oldest, end_of, new_head, wrapped


def counted(ranges: Sequence[int]) -> float:
    """Each partial is combined onto both stacks, and an answer of both; but for the turn."""
    return sum(3.0 - 3.0 / size for size in ranges)


CARD = Card(
    name="two_stacks",
    needs="any",
    amortised="3",
    worst="n",
    multi="-",
    space="2 n",
    several_ranges=False,
    paper="Low-Latency Sliding-Window Aggregation in Worst-Case Constant Time, DEBS 2017",
    counted=counted,
)


class TwoStacks(NamedTuple):
    """Partials in a ring, and beside each what its stack combines up to it.

    On the front stack that is everything from the partial to the last one of the front, on the
    back stack everything from the first one of the back to the partial.
    """

    partials: Store
    combined: Store
    head: Ints

    @staticmethod
    def create(op: Any, capacity: int, columns: int, full: bool) -> TwoStacks:
        """Empty stacks."""
        return TwoStacks(op.empty(capacity), op.empty(capacity), new_head(0, SLOTS))

    @staticmethod
    def insert(op: Any, state: TwoStacks, partial: Any) -> None:
        """Push onto the back stack."""
        head = state.head
        capacity = len(state.partials)
        at = end_of(head, capacity)
        save(op, state.partials, at, partial)
        if head[SIZE] > head[FRONT]:
            below = load(op, state.combined, before(at, capacity))
            partial = combine(op, below, partial)
            head[OPERATIONS] += 1
        save(op, state.combined, at, partial)
        head[SIZE] += 1

    @staticmethod
    def evict(op: Any, state: TwoStacks) -> None:
        """Pop off the front stack; if it is empty, turn the back stack over onto it."""
        pop(op, state.partials, state.combined, state.head)

    @staticmethod
    def query(op: Any, state: TwoStacks, size: int) -> Any:
        """The tops of both stacks."""
        head = state.head
        first = head[FIRST]
        last = wrapped(first + head[SIZE] - 1, len(state.partials))
        if head[FRONT] == 0:
            return load(op, state.combined, last)
        if head[FRONT] == head[SIZE]:
            return load(op, state.combined, first)
        head[OPERATIONS] += 1
        return combine(op, load(op, state.combined, first), load(op, state.combined, last))


# How many of the partials, the oldest, are on the front stack.
FRONT = 4
SLOTS = 5


@shared
def pop(op: Any, partials: Store, fronts: Store, head: Ints) -> None:
    """Let go of the oldest; if the front stack is empty, turn the back stack over onto it."""
    if head[FRONT] == 0:
        turn(op, partials, fronts, head)
    drop_oldest(head, len(partials))
    head[FRONT] -= 1


@shared
def turn(op: Any, partials: Store, fronts: Store, head: Ints) -> None:
    """Write to `fronts`, which may be the partials themselves, each with all that follow it."""
    capacity = len(partials)
    at = wrapped(head[FIRST] + head[SIZE] - 1, capacity)
    combined = load(op, partials, at)
    save(op, fronts, at, combined)
    for _ in range(head[SIZE] - 1):
        at = before(at, capacity)
        combined = combine(op, load(op, partials, at), combined)
        save(op, fronts, at, combined)
    head[OPERATIONS] += head[SIZE] - 1
    head[FRONT] = head[SIZE]
