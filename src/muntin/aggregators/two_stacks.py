"""TwoStacks: a queue made of two stacks that both know what lies below."""

from __future__ import annotations

from typing import Any, NamedTuple

from muntin.aggregators.card import Card
from muntin.aggregators.contract import (
    FIRST,
    OPERATIONS,
    SIZE,
    Ints,
    at_front,
    end_of,
    new_head,
    shared,
    slide_by_one,
    unrolled,
    wrapped,
)
from muntin.aggregators.operators import Store, combine, load, save

CARD = Card(
    name="two_stacks",
    needs="any",
    amortised="3",
    worst="n",
    multi="-",
    space="2 n",
    several_ranges=False,
    paper="Low-Latency Sliding-Window Aggregation in Worst-Case Constant Time, DEBS 2017",
)

# How many of the partials, the oldest, are on the front stack.
FRONT = 4


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
        return TwoStacks(op.empty(capacity), op.empty(capacity), new_head(0, 5))

    @staticmethod
    def room(state: TwoStacks) -> int:
        """How many partials fit."""
        return len(state.partials)

    @staticmethod
    def grown(op: Any, state: TwoStacks, capacity: int) -> TwoStacks:
        """The same stacks in a larger ring."""
        first, size = state.head[FIRST], state.head[SIZE]
        partials = unrolled(op, state.partials, first, size, capacity)
        combined = unrolled(op, state.combined, first, size, capacity)
        return TwoStacks(partials, combined, at_front(state.head))

    @staticmethod
    def insert(op: Any, state: TwoStacks, partial: Any) -> None:
        """Push onto the back stack."""
        head = state.head
        capacity = len(state.partials)
        at = end_of(head, capacity)
        save(op, state.partials, at, partial)
        if head[SIZE] > head[FRONT]:
            before = load(op, state.combined, at - 1 if at > 0 else capacity - 1)
            save(op, state.combined, at, combine(op, before, partial))
            head[OPERATIONS] += 1
        else:
            save(op, state.combined, at, partial)
        head[SIZE] += 1

    @staticmethod
    def evict(op: Any, state: TwoStacks) -> None:
        """Pop off the front stack; if it is empty, turn the back stack over onto it."""
        head = state.head
        if head[FRONT] == 0:
            turn(op, state)
        head[FIRST] = wrapped(head[FIRST] + 1, len(state.partials))
        head[SIZE] -= 1
        head[FRONT] -= 1

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

    @staticmethod
    def slide(
        op: Any, state: TwoStacks, ranges: Ints, partials: Store, answers: Store, first: int
    ) -> int:
        """Evict, insert, query."""
        return slide_by_one(op, state, ranges, partials, answers, first)


@shared
def turn(op: Any, state: TwoStacks) -> None:
    """Combine every partial with all that follow it."""
    head = state.head
    capacity = len(state.partials)
    at = wrapped(head[FIRST] + head[SIZE] - 1, capacity)
    combined = load(op, state.partials, at)
    save(op, state.combined, at, combined)
    for _ in range(head[SIZE] - 1):
        at = at - 1 if at > 0 else capacity - 1
        combined = combine(op, load(op, state.partials, at), combined)
        save(op, state.combined, at, combined)
    head[OPERATIONS] += head[SIZE] - 1
    head[FRONT] = head[SIZE]
