"""TwoStacks Lite: TwoStacks in half the memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from muntin._typing import Ints
from muntin.aggregators.card import Card
from muntin.aggregators.contract import FIRST, OPERATIONS, SIZE
from muntin.aggregators.operators import Store, combine, load, save
from muntin.aggregators.rings import append, new_head
from muntin.aggregators.techniques.two_stacks import FRONT, SLOTS, pop


def counted(ranges: Sequence[int]) -> float:
    """Each partial is combined onto both stacks, and an answer of both; but for the turn."""
    return sum(3.0 - 3.0 / size for size in ranges)


CARD = Card(
    name="two_stacks_lite",
    needs="any",
    amortised="3",
    worst="n",
    multi="-",
    space="n + 1",
    several_ranges=False,
    paper="In-Order Sliding-Window Aggregation in Worst-Case Constant Time, VLDB Journal 2021",
    counted=counted,
)


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
        return TwoStacksLite(op.empty(capacity), op.empty(1), new_head(0, SLOTS))

    @staticmethod
    def insert(op: Any, state: TwoStacksLite, partial: Any) -> None:
        """Push onto the back stack."""
        head = state.head
        append(op, state.partials, head, partial)
        if head[SIZE] > head[FRONT] + 1:
            partial = combine(op, load(op, state.back, 0), partial)
            head[OPERATIONS] += 1
        save(op, state.back, 0, partial)

    @staticmethod
    def evict(op: Any, state: TwoStacksLite) -> None:
        """Pop off the front stack; if it is empty, turn the back stack over onto it."""
        pop(op, state.partials, state.partials, state.head)

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
