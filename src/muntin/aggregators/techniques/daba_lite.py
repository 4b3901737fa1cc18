"""DABA Lite: DABA in half the memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from muntin._typing import Ints
from muntin.aggregators.card import Card
from muntin.aggregators.contract import FIRST, OPERATIONS, shared
from muntin.aggregators.operators import Store, combine, load, save
from muntin.aggregators.rings import append, drop_oldest, new_head
from muntin.aggregators.techniques.daba import (
    SHRINK,
    SLOTS,
    START,
    TURN,
    A,
    B,
    L,
    end_number,
    move_borders,
    place,
)


def counted(ranges: Sequence[int]) -> float:
    """Four, less what short windows spare."""
    return sum(max(4.0 - 6.0 / size, 0.0) for size in ranges)


CARD = Card(
    name="daba_lite",
    needs="any",
    amortised="4",
    worst="6",
    multi="-",
    space="n + 2",
    several_ranges=False,
    paper="In-Order Sliding-Window Aggregation in Worst-Case Constant Time, VLDB Journal 2021",
    counted=counted,
    steady=True,
)

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
        return DABALite(op.empty(capacity), op.empty(2), new_head(0, SLOTS))

    @staticmethod
    def insert(op: Any, state: DABALite, partial: Any) -> None:
        """Append to the back stack, then one step of repair."""
        head = state.head
        if end_number(head) > head[B]:
            save(op, state.sums, BACK, combine(op, load(op, state.sums, BACK), partial))
            head[OPERATIONS] += 1
        else:
            save(op, state.sums, BACK, partial)
        append(op, state.partials, head, partial)
        repair_in_place(op, state)

    @staticmethod
    def evict(op: Any, state: DABALite) -> None:
        """Step over the oldest, then one step of repair."""
        drop_oldest(state.head, len(state.partials))
        state.head[START] += 1
        repair_in_place(op, state)

    @staticmethod
    def query(op: Any, state: DABALite, size: int) -> Any:
        """The first of the front and the whole back."""
        head = state.head
        front = load(op, state.partials, head[FIRST])
        if head[B] == end_number(head):
            return front
        head[OPERATIONS] += 1
        return combine(op, front, load(op, state.sums, BACK))


@shared
def repair_in_place(op: Any, state: DABALite) -> None:
    """One step towards the next front stack."""
    asked = move_borders(state.head)
    if asked & TURN:
        save(op, state.sums, MIDDLE, load(op, state.sums, BACK))
    if asked & SHRINK:
        shrink_in_place(op, state)


@shared
def shrink_in_place(op: Any, state: DABALite) -> None:
    """Let the first of [L, R) and the last of [R, A) reach to B. Two operations at most."""
    head = state.head
    at = place(state, head[L])
    whole = combine(op, load(op, state.partials, at), load(op, state.sums, MIDDLE))
    save(op, state.partials, at, whole)
    head[OPERATIONS] += 1
    if head[A] < head[B]:
        last = place(state, head[A] - 1)
        after = load(op, state.partials, place(state, head[A]))
        save(op, state.partials, last, combine(op, load(op, state.partials, last), after))
        head[OPERATIONS] += 1
    head[L] += 1
    head[A] -= 1
