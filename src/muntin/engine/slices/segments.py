"""Places of a log, listed for each owner in rising order: lists that grow and shrink at both ends.

All lists lie in one array. A list that outgrows its stretch moves to a larger one at the end;
when there is no room left, all lists are packed anew. Each item is moved a few times at most.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from muntin.compiled import compiled

Ints = npt.NDArray[np.int64]
# Lists take a large part of what is kept: places of a log of up to 2**31 entries.
Places = npt.NDArray[np.int32]

_FEW = 64


class Lists(NamedTuple):
    """Owner o has ``items[begins[o]:ends[o]]``, and room up to ``limits[o]``.

    ``used`` says in its only place how many items of the array are given out.
    """

    items: Places
    begins: Places
    ends: Places
    limits: Places
    used: Ints


class Segments:
    """Lists of places, one for each owner.

    >>> lists = Segments()
    >>> lists.reserve(2)
    >>> lists.append(np.array([0, 1, 0]), 10)
    >>> lists.of(0).tolist(), lists.of(1).tolist()
    ([10, 12], [11])
    """

    def __init__(self) -> None:
        none = np.zeros(0, np.int32)
        self.lists = Lists(np.empty(_FEW, np.int32), none, none, none, np.zeros(1, np.int64))
        self.owners = 0
        # Items before this are of no use to anybody.
        self.since = 0

    @property
    def nbytes(self) -> int:
        """Bytes of all lists."""
        return sum(array.nbytes for array in self.lists)

    def reserve(self, owners: int) -> None:
        """Make room for as many owners."""
        held = self.lists
        if owners > held.begins.size:
            size = max(owners, held.begins.size * 5 // 4)
            begins, ends, limits = np.zeros((3, size), np.int32)
            for to, array in zip((begins, ends, limits), held[1:4], strict=True):
                to[: self.owners] = array[: self.owners]
            self.lists = Lists(held.items, begins, ends, limits, held.used)
        self.owners = owners

    def append(self, owners: Ints, first: int) -> None:
        """Add the places from ``first`` on, of these owners."""
        done = 0
        while True:
            done = append_places(self.lists, owners, done, first)
            if done == owners.size:
                return
            self.pack()

    def pack(self) -> None:
        """Bring the lists together without items of no use, with room to grow."""
        held = self.lists
        _forget(held, self.owners, self.since)
        sizes = (held.ends - held.begins)[: self.owners].astype(np.int64)
        rooms = sizes + sizes // 8 + 1
        limits = np.cumsum(rooms)
        items = np.empty(int(rooms.sum()) * 17 // 16 + _FEW, np.int32)
        begins = limits - rooms
        _copy(held, begins, items)
        fresh = np.zeros((3, held.begins.size), np.int32)
        fresh[:, : self.owners] = begins, begins + sizes, limits
        self.lists = Lists(items, fresh[0], fresh[1], fresh[2], np.array([int(rooms.sum())]))

    def shift(self, count: int) -> None:
        """Count places from ``count`` on; those before it are of no use."""
        _forget(self.lists, self.owners, self.since)
        self.lists.items[:] -= count
        self.since = max(self.since - count, 0)

    def of(self, owner: int) -> Places:
        """The places of one owner."""
        return self.lists.items[self.lists.begins[owner] : self.lists.ends[owner]]


@compiled
def _forget(lists: Lists, owners: int, since: int) -> None:
    """Drop items before ``since`` from the front of every list."""
    for owner in range(owners):
        begin, end = lists.begins[owner], lists.ends[owner]
        while begin < end and lists.items[begin] < since:
            begin += 1
        lists.begins[owner] = begin


@compiled
def _copy(lists: Lists, begins: Ints, items: Places) -> None:
    for owner in range(begins.size):
        at = begins[owner]
        for i in range(lists.begins[owner], lists.ends[owner]):
            items[at] = lists.items[i]
            at += 1


@compiled
def push(lists: Lists, owner: int, item: int) -> bool:
    """Append an item to one list; false if there is no room for it."""
    begin, end = lists.begins[owner], lists.ends[owner]
    if end == lists.limits[owner]:
        size, used = end - begin, lists.used[0]
        room = 2 * size + 2
        if used + room > lists.items.size:
            return False
        for i in range(size):
            lists.items[used + i] = lists.items[begin + i]
        lists.begins[owner], lists.limits[owner] = used, used + room
        lists.used[0] = used + room
        end = used + size
    lists.items[end] = item
    lists.ends[owner] = end + 1
    return True


@compiled
def append_places(lists: Lists, owners: Ints, done: int, first: int) -> int:
    """Append place ``first + i`` to the list of ``owners[i]`` from ``done`` on.

    Returns how many are done: fewer than all where there is no more room.
    """
    for i in range(done, owners.size):
        if not push(lists, owners[i], first + i):
            return i
    return owners.size


@compiled
def since_place(lists: Lists, owner: int, place: int) -> int:
    """Where the first item at ``place`` or later lies; the list's end if there is none."""
    low, high = lists.begins[owner], lists.ends[owner]
    # Windows end where the log does, more often than not.
    if low == high or lists.items[high - 1] < place:
        return int(high)
    while low < high:
        middle = (low + high) >> 1
        if lists.items[middle] < place:
            low = middle + 1
        else:
            high = middle
    return int(low)
