"""DABA: TwoStacks with the turning-over done a little at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from muntin._typing import Ints
from muntin.aggregators.card import Card
from muntin.aggregators.contract import FIRST, OPERATIONS, SIZE, shared
from muntin.aggregators.operators import Store, combine, load, save
from muntin.aggregators.rings import before, drop_oldest, end_of, new_head, wrapped


def counted(ranges: Sequence[int]) -> float:
    """Five, less what short windows spare."""
    return sum(max(5.0 - 8.0 / size, 0.0) for size in ranges)


CARD = Card(
    name="daba",
    needs="any",
    amortised="5",
    worst="8",
    multi="-",
    space="2 n",
    several_ranges=False,
    paper="Low-Latency Sliding-Window Aggregation in Worst-Case Constant Time, DEBS 2017",
    counted=counted,
    steady=True,
)


class DABA(NamedTuple):
    """Partials in a ring of five regions, and beside each what it combines within its region.

    | region   | combined[i]                         |
    |----------|-------------------------------------|
    | [.., L)  | i to the end of the front, B        |
    | [L, R)   | i to R                              |
    | [R, A)   | R to i, inclusive                   |
    | [A, B)   | i to B                              |
    | [B, end) | B to i, inclusive: the back stack   |
    """

    partials: Store
    combined: Store
    head: Ints

    @staticmethod
    def create(op: Any, capacity: int, columns: int, full: bool) -> DABA:
        """Empty regions."""
        return DABA(op.empty(capacity), op.empty(capacity), new_head(0, SLOTS))

    @staticmethod
    def insert(op: Any, state: DABA, partial: Any) -> None:
        """Append to the back stack, then one step of repair."""
        head = state.head
        at = end_of(head, len(state.partials))
        save(op, state.partials, at, partial)
        if end_number(head) > head[B]:
            below = load(op, state.combined, before(at, len(state.partials)))
            partial = combine(op, below, partial)
            head[OPERATIONS] += 1
        save(op, state.combined, at, partial)
        head[SIZE] += 1
        repair(op, state)

    @staticmethod
    def evict(op: Any, state: DABA) -> None:
        """Step over the oldest, then one step of repair."""
        drop_oldest(state.head, len(state.partials))
        state.head[START] += 1
        repair(op, state)

    @staticmethod
    def query(op: Any, state: DABA, size: int) -> Any:
        """The first of the front and the last of the back."""
        head = state.head
        front = load(op, state.combined, head[FIRST])
        end = end_number(head)
        if head[B] == end:
            return front
        head[OPERATIONS] += 1
        return combine(op, front, load(op, state.combined, place(state, end - 1)))


@shared
def repair(op: Any, state: DABA) -> None:
    """One step towards the next front stack."""
    if move_borders(state.head) & SHRINK:
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
