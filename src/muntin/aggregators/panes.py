"""Panes: every answer anew from the partials of its window."""

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
    slide_by_one,
    unrolled,
    wrapped,
)
from muntin.aggregators.operators import Store, combine, load, save

CARD = Card(
    name="panes",
    needs="any",
    amortised="n - 1",
    worst="n - 1",
    multi="n (n - 1) / 2",
    space="n",
    several_ranges=True,
    paper="No Pane, No Gain, SIGMOD Record 2005",
)


class Panes(NamedTuple):
    """A ring of partials."""

    partials: Store
    head: Ints

    @staticmethod
    def create(op: Any, capacity: int, columns: int, full: bool) -> Panes:
        """Identities, counted as partials if `full`."""
        return Panes(op.empty(capacity), new_head(capacity if full else 0))

    @staticmethod
    def room(state: Panes) -> int:
        """How many partials fit."""
        return len(state.partials)

    @staticmethod
    def grown(op: Any, state: Panes, capacity: int) -> Panes:
        """The same partials in a larger ring."""
        head = state.head
        return Panes(
            unrolled(op, state.partials, head[FIRST], head[SIZE], capacity), at_front(head)
        )

    @staticmethod
    def insert(op: Any, state: Panes, partial: Any) -> None:
        """Append."""
        head = state.head
        save(op, state.partials, end_of(head, len(state.partials)), partial)
        head[SIZE] += 1

    @staticmethod
    def evict(op: Any, state: Panes) -> None:
        """Step over the oldest."""
        head = state.head
        head[FIRST] = wrapped(head[FIRST] + 1, len(state.partials))
        head[SIZE] -= 1

    @staticmethod
    def query(op: Any, state: Panes, size: int) -> Any:
        """Combine from the oldest to the newest."""
        head = state.head
        capacity = len(state.partials)
        start = wrapped(head[FIRST] + head[SIZE] - size, capacity)
        answer = load(op, state.partials, start)
        # Two straight loops, up to the end of the ring and from its beginning, run as vectors.
        for at in range(start + 1, min(start + size, capacity)):
            answer = combine(op, answer, load(op, state.partials, at))
        for at in range(start + size - capacity):
            answer = combine(op, answer, load(op, state.partials, at))
        head[OPERATIONS] += size - 1
        return answer

    @staticmethod
    def slide(
        op: Any, state: Panes, ranges: Ints, partials: Store, answers: Store, first: int
    ) -> int:
        """Evict, insert, query."""
        return slide_by_one(op, state, ranges, partials, answers, first)
