"""DABA Lite: DABA in half the memory."""

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
    name="daba_lite",
    needs="any",
    amortised="4",
    worst="6",
    multi="-",
    space="n + 2",
    several_ranges=False,
    paper="In-Order Sliding-Window Aggregation in Worst-Case Constant Time, VLDB Journal 2021",
)

# Where the regions begin, and the oldest partial, counted from the first partial ever.
L, R, A, B, START = range(4, 9)
# The two combinations that are kept beside the ring.
MIDDLE, BACK = 0, 1


class DABALite(NamedTuple):
    """One ring of five regions.

    | region   | partials[i]                  |
    |----------|------------------------------|
    | [.., L)  | i to the end of the front, B |
    | [L, R)   | i to R                       |
    | [R, A)   | i alone                      |
    | [A, B)   | i to B                       |
    | [B, end) | i alone: the back stack      |

    `sums` holds the combination of [R, B), which does not change while A falls back, and that of
    the back stack.
    """

    partials: Store
    sums: Store
    head: Ints

    @staticmethod
    def create(op: Any, capacity: int, columns: int, full: bool) -> DABALite:
        """Empty regions."""
        return DABALite(op.empty(capacity), op.empty(2), new_head(0, 9))

    @staticmethod
    def room(state: DABALite) -> int:
        """How many partials fit."""
        return len(state.partials)

    @staticmethod
    def grown(op: Any, state: DABALite, capacity: int) -> DABALite:
        """The same regions in a larger ring."""
        head = state.head
        ring = unrolled(op, state.partials, head[FIRST], head[SIZE], capacity)
        return DABALite(ring, state.sums, at_front(head))

    @staticmethod
    def insert(op: Any, state: DABALite, partial: Any) -> None:
        """Append to the back stack, then one step of repair."""
        head = state.head
        save(op, state.partials, end_of(head, len(state.partials)), partial)
        if head[START] + head[SIZE] > head[B]:
            partial = combine(op, load(op, state.sums, BACK), partial)
            head[OPERATIONS] += 1
        save(op, state.sums, BACK, partial)
        head[SIZE] += 1
        repair_in_place(op, state)

    @staticmethod
    def evict(op: Any, state: DABALite) -> None:
        """Step over the oldest, then one step of repair."""
        head = state.head
        head[FIRST] = wrapped(head[FIRST] + 1, len(state.partials))
        head[SIZE] -= 1
        head[START] += 1
        repair_in_place(op, state)

    @staticmethod
    def query(op: Any, state: DABALite, size: int) -> Any:
        """The first of the front and the whole back."""
        head = state.head
        front = load(op, state.partials, head[FIRST])
        if head[B] == head[START] + head[SIZE]:
            return front
        head[OPERATIONS] += 1
        return combine(op, front, load(op, state.sums, BACK))

    @staticmethod
    def slide(
        op: Any, state: DABALite, ranges: Ints, partials: Store, answers: Store, first: int
    ) -> int:
        """Evict, insert, query."""
        return slide_by_one(op, state, ranges, partials, answers, first)


@shared
def repair_in_place(op: Any, state: DABALite) -> None:
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
        save(op, state.sums, MIDDLE, load(op, state.sums, BACK))
    if head[L] == head[R]:
        head[L] += 1
        head[R] += 1
        head[A] += 1
        return
    shrink_in_place(op, state)


@shared
def shrink_in_place(op: Any, state: DABALite) -> None:
    """Let the first of [L, R) and the last of [R, A) reach to B. Two operations at most."""
    head = state.head
    capacity = len(state.partials)
    offset = head[FIRST] - head[START]
    at = wrapped(offset + head[L], capacity)
    whole = combine(op, load(op, state.partials, at), load(op, state.sums, MIDDLE))
    save(op, state.partials, at, whole)
    head[OPERATIONS] += 1
    if head[A] < head[B]:
        last = wrapped(offset + head[A] - 1, capacity)
        after = load(op, state.partials, wrapped(last + 1, capacity))
        save(op, state.partials, last, combine(op, load(op, state.partials, last), after))
        head[OPERATIONS] += 1
    head[L] += 1
    head[A] -= 1
