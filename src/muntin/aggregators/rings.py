"""Rings: arrays in which the oldest partial is at `head[FIRST]` and `head[SIZE]` follow each other.

Most techniques keep their partials in a ring named `partials`, some of them with another one
beside it, `combined`. What they do with such rings is here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from muntin._typing import Ints
from muntin.aggregators.contract import FIRST, SIZE, shared
from muntin.aggregators.operators import Store, save

_RINGS = ("partials", "combined")


@shared
def wrapped(index: int, capacity: int) -> int:
    """An index at most one round past the end, brought back into the ring."""
    return index - capacity if index >= capacity else index


@shared
def before(index: int, capacity: int) -> int:
    """The index of the item before."""
    return index - 1 if index > 0 else capacity - 1


@shared
def end_of(head: Ints, capacity: int) -> int:
    """Where the next partial goes."""
    return wrapped(head[FIRST] + head[SIZE], capacity)


@shared
def append(op: Any, ring: Store, head: Ints, partial: Any) -> None:
    """Put a partial behind the newest."""
    save(op, ring, end_of(head, len(ring)), partial)
    head[SIZE] += 1


@shared
def drop_oldest(head: Ints, capacity: int) -> None:
    """Step over the oldest partial."""
    head[FIRST] = wrapped(head[FIRST] + 1, capacity)
    head[SIZE] -= 1


def new_head(size: int, slots: int = 4) -> Ints:
    """Counters at zero and `size` partials held."""
    head = np.zeros(slots, np.int64)
    head[SIZE] = size
    return head


def room(state: Any) -> int:
    """How many partials fit."""
    own = getattr(state, "room", None)
    return len(state.partials) if own is None else int(own(state))


def grown(op: Any, state: Any, capacity: int) -> Any:
    """The state with room for `capacity` partials."""
    own = getattr(state, "grown", None)
    if own is not None:
        return own(op, state, capacity)
    first, size = state.head[FIRST], state.head[SIZE]
    rings = {
        name: unrolled(op, getattr(state, name), first, size, capacity)
        for name in _RINGS
        if name in state._fields
    }
    return state._replace(**rings, head=at_front(state.head))


def unrolled(op: Any, ring: Store, first: int, size: int, capacity: int) -> Store:
    """A larger ring with the `size` items from `first` on at its start."""
    store: Store = op.empty(capacity)
    store[:size] = ring[(first + np.arange(size)) % len(ring)]
    return store


def at_front(head: Ints) -> Ints:
    """A copy of the head for a ring whose oldest item is at index 0."""
    head = head.copy()
    head[FIRST] = 0
    return head
