"""What TwoStacks and TwoStacks Lite share: a front stack that the back one is turned over onto."""

from __future__ import annotations

from typing import Any

from muntin.aggregators.contract import FIRST, OPERATIONS, SIZE, Ints, shared
from muntin.aggregators.operators import Store, combine, load, save
from muntin.aggregators.rings import before, drop_oldest, wrapped

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
