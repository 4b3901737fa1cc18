"""TwoStacks Lite: TwoStacks in half the memory."""

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
    name="two_stacks_lite",
    needs="any",
    amortised="3",
    worst="n",
    multi="-",
    space="n + 1",
    several_ranges=False,
    paper="In-Order Sliding-Window Aggregation in Worst-Case Constant Time, VLDB Journal 2021",
)

# How many of the partials, the oldest, are on the front stack.
FRONT = 4


class TwoStacksLite(NamedTuple):
    """One ring: front entries are combined with all that follow on the front, back ones are bare.

    The combination of the whole back stack is all that is ever asked of it, so one is kept.
    """

    partials: Store
    back: Store
    head: Ints

    @staticmethod
    def create(op: Any, capacity: int, columns: int, full: bool) -> TwoStacksLite:
        """Empty stacks."""
        return TwoStacksLite(op.empty(capacity), op.empty(1), new_head(0, 5))

    @staticmethod
    def room(state: TwoStacksLite) -> int:
        """How many partials fit."""
        return len(state.partials)

    @staticmethod
    def grown(op: Any, state: TwoStacksLite, capacity: int) -> TwoStacksLite:
        """The same stacks in a larger ring."""
        head = state.head
        ring = unrolled(op, state.partials, head[FIRST], head[SIZE], capacity)
        return TwoStacksLite(ring, state.back, at_front(head))

    @staticmethod
    def insert(op: Any, state: TwoStacksLite, partial: Any) -> None:
        """Push onto the back stack."""
        head = state.head
        save(op, state.partials, end_of(head, len(state.partials)), partial)
        if head[SIZE] > head[FRONT]:
            partial = combine(op, load(op, state.back, 0), partial)
            head[OPERATIONS] += 1
        save(op, state.back, 0, partial)
        head[SIZE] += 1

    @staticmethod
    def evict(op: Any, state: TwoStacksLite) -> None:
        """Pop off the front stack; if it is empty, turn the back stack over onto it."""
        head = state.head
        if head[FRONT] == 0:
            turn_in_place(op, state)
        head[FIRST] = wrapped(head[FIRST] + 1, len(state.partials))
        head[SIZE] -= 1
        head[FRONT] -= 1

    @staticmethod
    def query(op: Any, state: TwoStacksLite, size: int) -> Any:
        """The top of the front and the whole back."""
        head = state.head
        if head[FRONT] == 0:
            return load(op, state.back, 0)
        front = load(op, state.partials, head[FIRST])
        if head[FRONT] == head[SIZE]:
            return front
        head[OPERATIONS] += 1
        return combine(op, front, load(op, state.back, 0))

    @staticmethod
    def slide(
        op: Any, state: TwoStacksLite, ranges: Ints, partials: Store, answers: Store, first: int
    ) -> int:
        """Evict, insert, query."""
        return slide_by_one(op, state, ranges, partials, answers, first)


@shared
def turn_in_place(op: Any, state: TwoStacksLite) -> None:
    """Combine every partial with all that follow it."""
    head = state.head
    capacity = len(state.partials)
    at = wrapped(head[FIRST] + head[SIZE] - 1, capacity)
    combined = load(op, state.partials, at)
    for _ in range(head[SIZE] - 1):
        at = at - 1 if at > 0 else capacity - 1
        combined = combine(op, load(op, state.partials, at), combined)
        save(op, state.partials, at, combined)
    head[OPERATIONS] += head[SIZE] - 1
    head[FRONT] = head[SIZE]
