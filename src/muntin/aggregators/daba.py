"""DABA: TwoStacks with the turning-over done a little at a time."""

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
    name="daba",
    needs="any",
    amortised="5",
    worst="8",
    multi="-",
    space="2 n",
    several_ranges=False,
    paper="Low-Latency Sliding-Window Aggregation in Worst-Case Constant Time, DEBS 2017",
)

# Where the regions begin, and the oldest partial, counted from the first partial ever.
L, R, A, B, START = range(4, 9)


class DABA(NamedTuple):
    """Partials in a ring of five regions, and beside each what it combines within its region.

    | region   | combined[i]                         |
    |----------|-------------------------------------|
    | [.., L)  | i to the end of the front, B        |
    | [L, R)   | i to R                              |
    | [R, A)   | R to i, inclusive                   |
    | [A, B)   | i to B                              |
    | [B, end) | B to i, inclusive: the back stack   |

    L chases R while A falls back towards it, one step at every insert and evict: when the front
    stack is used up, the next one is ready.
    """

    partials: Store
    combined: Store
    head: Ints

    @staticmethod
    def create(op: Any, capacity: int, columns: int, full: bool) -> DABA:
        """Empty regions."""
        return DABA(op.empty(capacity), op.empty(capacity), new_head(0, 9))

    @staticmethod
    def room(state: DABA) -> int:
        """How many partials fit."""
        return len(state.partials)

    @staticmethod
    def grown(op: Any, state: DABA, capacity: int) -> DABA:
        """The same regions in a larger ring."""
        first, size = state.head[FIRST], state.head[SIZE]
        partials = unrolled(op, state.partials, first, size, capacity)
        combined = unrolled(op, state.combined, first, size, capacity)
        return DABA(partials, combined, at_front(state.head))

    @staticmethod
    def insert(op: Any, state: DABA, partial: Any) -> None:
        """Append to the back stack, then one step of repair."""
        head = state.head
        at = end_of(head, len(state.partials))
        save(op, state.partials, at, partial)
        if head[START] + head[SIZE] > head[B]:
            before = load(op, state.combined, place(state, head[START] + head[SIZE] - 1))
            partial = combine(op, before, partial)
            head[OPERATIONS] += 1
        save(op, state.combined, at, partial)
        head[SIZE] += 1
        repair(op, state)

    @staticmethod
    def evict(op: Any, state: DABA) -> None:
        """Step over the oldest, then one step of repair."""
        head = state.head
        head[FIRST] = wrapped(head[FIRST] + 1, len(state.partials))
        head[SIZE] -= 1
        head[START] += 1
        repair(op, state)

    @staticmethod
    def query(op: Any, state: DABA, size: int) -> Any:
        """The first of the front and the last of the back."""
        head = state.head
        front = load(op, state.combined, head[FIRST])
        if head[B] == head[START] + head[SIZE]:
            return front
        head[OPERATIONS] += 1
        return combine(
            op, front, load(op, state.combined, place(state, head[START] + head[SIZE] - 1))
        )

    @staticmethod
    def slide(
        op: Any, state: DABA, ranges: Ints, partials: Store, answers: Store, first: int
    ) -> int:
        """Evict, insert, query."""
        return slide_by_one(op, state, ranges, partials, answers, first)


@shared
def place(state: DABA, number: int) -> int:
    """The ring index of a partial by its number."""
    head = state.head
    return wrapped(head[FIRST] + (number - head[START]), len(state.partials))


@shared
def repair(op: Any, state: DABA) -> None:
    """One step towards the next front stack."""
    head = state.head
    end = head[START] + head[SIZE]
    if head[B] == head[START]:
        # The front is used up and at most one partial is left behind it: that is the front.
        head[L] = head[R] = head[A] = head[B] = end
        return
    if head[L] == head[B]:
        head[L] = head[START]
        head[A] = head[B] = end
    if head[L] == head[R]:
        head[L] += 1
        head[R] += 1
        head[A] += 1
        return
    shrink(op, state)


@shared
def shrink(op: Any, state: DABA) -> None:
    """Let the first of [L, R) and the last of [R, A) reach to B. Three operations at most."""
    head = state.head
    at = place(state, head[L])
    whole = load(op, state.combined, at)
    if head[R] < head[A]:
        whole = combine(op, whole, load(op, state.combined, place(state, head[A] - 1)))
        head[OPERATIONS] += 1
    last = place(state, head[A] - 1)
    reaching = load(op, state.partials, last)
    if head[A] < head[B]:
        after = load(op, state.combined, place(state, head[A]))
        whole = combine(op, whole, after)
        reaching = combine(op, reaching, after)
        head[OPERATIONS] += 2
    save(op, state.combined, at, whole)
    save(op, state.combined, last, reaching)
    head[L] += 1
    head[A] -= 1
