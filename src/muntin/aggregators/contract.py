"""The contract of a technique: its state is a named tuple of arrays, with the algorithm beside it.

A state class has these static functions, written so that numba can compile them:

- `insert(op, state, partial)` takes in the next partial; there is room for it;
- `evict(op, state)` lets go of the oldest partial;
- `query(op, state, size)` combines the newest `size` partials, at least one;

and one that runs in Python only: `create(op, capacity, columns, full)` makes room for `capacity`
partials and `columns` ranges, and holds as many identities if it is to be `full`.

It may have four more, for which there are defaults:

- `slide(op, state, ranges, partials, answers, first)` inserts the partials from `first` on, one by
  one, each time writing one answer per range; returns how many partials are in, fewer than all if
  the state has to grow first. Compiled too; by default it evicts, inserts, queries;
- `room(state)` says how many partials fit, and `grown(op, state, capacity)` moves to arrays with
  more room, both in Python only; by default partials are in a ring (see `rings`);
- `rebased(op, state)` gives the same answers by partials that fit wherever the window does, in
  Python only; by default partials are what they are.

The fields that hold partials are of type `Store`. `state.head` holds counters and indices, of
which the first four mean the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, get_type_hints

from muntin._typing import Ints
from muntin.aggregators.operators import Store, give, take

OPERATIONS, STEPS, FIRST, SIZE = range(4)

_Function = TypeVar("_Function", bound=Callable[..., Any])
SHARED: list[Callable[..., Any]] = []


def shared(function: _Function) -> _Function:
    """Let compiled techniques call the function; called from Python it stays Python."""
    SHARED.append(function)
    return function


def insert(op: Any, state: Any, partial: Any) -> None:
    """Take in the next partial."""
    state.insert(op, state, partial)


def evict(op: Any, state: Any) -> None:
    """Let go of the oldest partial."""
    state.evict(op, state)


def query(op: Any, state: Any, size: int) -> Any:
    """The combination of the newest `size` partials."""
    return state.query(op, state, size)


def slide(op: Any, state: Any, ranges: Ints, partials: Store, answers: Store, first: int) -> int:
    """Insert partials one by one and answer every range after each."""
    own = getattr(state, "slide", slide_by_one)
    return int(own(op, state, ranges, partials, answers, first))


@shared
def slide_by_one(
    op: Any, state: Any, ranges: Ints, partials: Store, answers: Store, first: int
) -> int:
    """The plain way to slide: evict, insert, query. Ranges fall, the first is the window."""
    head = state.head
    columns = len(ranges)
    for i in range(first, len(partials)):
        if head[SIZE] == ranges[0]:
            evict(op, state)
        insert(op, state, take(op, partials, i))
        for j in range(columns):
            size = min(ranges[j], head[SIZE])
            give(op, answers, i * columns + j, query(op, state, size))
    return len(partials)


@cache
def store_fields(technique: Any) -> tuple[str, ...]:
    """The fields of a state that hold partials."""
    hints = get_type_hints(technique)
    return tuple(name for name in technique._fields if hints[name] == Store)
