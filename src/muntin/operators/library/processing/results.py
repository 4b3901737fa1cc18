"""Where results wait for their end: a list that is scanned, a calendar queue, a hash table.

Three stores behind the same three steps, over arrays of one size: results are numbered, and the
store knows which are in it. A calendar queue's partitions are linked lists: in order of
ends, so that an insertion walks through its partition, or as results come, so that expiry does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Ints

# Ways to process: by negative tuples, directly, by update pattern; each has its kind of store.
NT, DIRECT, UPA = 0, 1, 2
HASH, LIST, CALENDAR = NT, DIRECT, UPA
# Counters: results in the store, the most there were, entries looked at.
SIZE, PEAK, LOOKED = 0, 1, 2
# Of these types: kernels that are given a literal are compiled for it, and once more without.
ZERO: Any = np.int64(0)
NOBODY: Any = np.int64(-1)
SORTED: Any = np.bool_(True)

_Kernel = TypeVar("_Kernel", bound=Callable[..., object])


class Store(NamedTuple):
    """Results in a store.

    Attributes:
        ends: When each result ends.
        after: The next one in its list; -2 for a result that is not in the store.
        before: The one before it.
        first: The first of each list: of the whole store, a partition, or a hash bucket.
        last: The last of each list.
        counters: See above.
    """

    ends: Ints
    after: Ints
    before: Ints
    first: Ints
    last: Ints
    counters: Ints


def inlined(function: _Kernel) -> _Kernel:
    """A kernel that becomes part of those who call it.

    Most steps are shorter than a call: with calls, distinct takes up to 1.4 times as long.
    """
    return compiled(function, forceinline=True)


def new_store(capacity: int, lists: int) -> Store:
    """An empty store for so many results, in so many lists."""
    return Store(
        np.zeros(capacity, dtype=np.int64),
        np.full(capacity, -2, dtype=np.int64),
        np.full(capacity, -1, dtype=np.int64),
        np.full(lists, -1, dtype=np.int64),
        np.full(lists, -1, dtype=np.int64),
        np.zeros(3, dtype=np.int64),
    )


@inlined
def insert(store: Store, kind: int, spot: int, at: int, end: int) -> None:
    """Put result `at` into list `spot`: behind the others, or by its end in a calendar."""
    ends, after, before, first, last, counters = store
    ends[at] = end
    previous = last[spot]
    if kind == CALENDAR:
        while previous >= 0 and ends[previous] > end:
            previous = before[previous]
            counters[LOOKED] += 1
    following = after[previous] if previous >= 0 else first[spot]
    before[at], after[at] = previous, following
    if previous >= 0:
        after[previous] = at
    else:
        first[spot] = at
    if following >= 0:
        before[following] = at
    else:
        last[spot] = at
    counters[LOOKED] += 1
    counters[SIZE] += 1
    counters[PEAK] = max(counters[PEAK], counters[SIZE])


@inlined
def remove(store: Store, spot: int, at: int) -> None:
    """Take result `at` out of list `spot`."""
    _, after, before, first, last, counters = store
    if before[at] >= 0:
        after[before[at]] = after[at]
    else:
        first[spot] = after[at]
    if after[at] >= 0:
        before[after[at]] = before[at]
    else:
        last[spot] = before[at]
    after[at] = -2
    counters[LOOKED] += 1
    counters[SIZE] -= 1


@inlined
def expire_list(store: Store, now: int) -> None:
    """Look at all results, and take out those that have ended."""
    ends, after, _, first, _, counters = store
    at = first[0]
    while at >= 0:
        following = after[at]
        counters[LOOKED] += 1
        if ends[at] <= now:
            remove(store, ZERO, at)
        at = following


@inlined
def expire_calendar(store: Store, width: int, since: int, now: int, is_sorted: bool) -> None:
    """Look at the partitions that the time since the last call falls into.

    Of a sorted partition what has ended lies in front; else all of it is looked at.
    """
    ends, after, _, first, _, counters = store
    newest = min(now // width, since // width + len(first) - 1)
    for partition in range(since // width, newest + 1):
        spot = partition % len(first)
        counters[LOOKED] += 1
        at = first[spot]
        while at >= 0 and (ends[at] <= now or not is_sorted):
            following = after[at]
            if ends[at] <= now:
                remove(store, spot, at)
            else:
                counters[LOOKED] += 1
            at = following


@inlined
def scan_for(store: Store, at: int) -> None:
    """Look for a result in all lists, as a calendar without an index of its results must."""
    _, after, _, first, _, counters = store
    for spot in range(len(first)):
        found = first[spot]
        while found >= 0 and found != at:
            counters[LOOKED] += 1
            found = after[found]
        if found == at:
            return


@inlined
def add_first(first: Ints, after: Ints, spot: int, at: int) -> None:
    """Put `at` in front of a hash list, as chained hash tables do."""
    after[at], first[spot] = first[spot], at


@inlined
def take_out(first: Ints, after: Ints, spot: int, at: int) -> int:
    """Take `at` out of its hash list, which is walked until it comes; how many others came."""
    found, looked = first[spot], ZERO
    if found == at:
        first[spot] = after[at]
        return int(looked)
    while after[found] != at:
        found = after[found]
        looked += 1
    after[found] = after[at]
    return int(looked + 1)


@inlined
def pair_spot(left: int, right: int, lists: int) -> int:
    """The hash list of a result of two tuples."""
    return int(left * 1_000_003 + right) % lists


@inlined
def find(store: Store, rows: Ints, spot: int, left: int, right: int) -> int:
    """The result of two tuples, in its hash list."""
    at = store.first[spot]
    while at >= 0 and not (rows[at, 0] == left and rows[at, 1] == right):
        store.counters[LOOKED] += 1
        at = store.after[at]
    return int(at)


@inlined
def put(store: Store, rows: Ints, at: int, way: int, width: int, is_sorted: bool) -> None:
    """Keep a result where its mode has it."""
    end = rows[at, 3]
    kind, spot = LIST + ZERO, ZERO
    if way == NT:
        kind, spot = HASH, pair_spot(rows[at, 0], rows[at, 1], len(store.first))
    elif way == UPA:
        kind, spot = (CALENDAR if is_sorted else LIST), end // width % len(store.first)
    insert(store, kind, spot, at, end)


@inlined
def let_go(store: Store, way: int, width: int, since: int, now: int, is_sorted: bool) -> None:
    """Drop results that ended by themselves, in the modes in which nobody announces it."""
    if way == DIRECT:
        expire_list(store, now)
    elif way == UPA:
        expire_calendar(store, width, since, now, is_sorted)
