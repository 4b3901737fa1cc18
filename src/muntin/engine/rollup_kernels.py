"""Compiled loops that find, for every predicate, the runs of entries that satisfy it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.compiled import compiled

Ints = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Runs = tuple[Ints, Ints, Ints, Ints]


@compiled
def count_runs(truth: Bools, cells: Ints, slots: Ints) -> int:
    """How many runs `list_runs` gives."""
    count = 0
    for member in range(truth.shape[0]):
        open_slot = -1
        for entry in range(cells.size):
            if not truth[member, cells[entry]]:
                open_slot = -1
            elif slots[entry] != open_slot:
                open_slot = slots[entry]
                count += 1
    return count


@compiled
def list_runs(truth: Bools, cells: Ints, slots: Ints, count: int) -> Runs:
    """The longest runs of neighbouring entries of one slot that satisfy a predicate.

    ``truth[m, c]`` says whether predicate m holds in cell c, ``cells`` and ``slots`` give the
    cell and the slot of every entry. Returns the first entry of each run, one past its last, its
    predicate and its slot, in order of predicate, then entry.
    """
    lows, highs = np.empty(count, np.int64), np.empty(count, np.int64)
    members, owners = np.empty(count, np.int64), np.empty(count, np.int64)
    at = -1
    for member in range(truth.shape[0]):
        open_slot = -1
        for entry in range(cells.size):
            if not truth[member, cells[entry]]:
                open_slot = -1
                continue
            if slots[entry] != open_slot:
                open_slot = slots[entry]
                at += 1
                lows[at], members[at], owners[at] = entry, member, open_slot
            highs[at] = entry + 1
    return lows, highs, members, owners


@compiled
def rank_places(begins: Ints, ranks: Ints, size: int) -> Int32s:
    """Where ranks begin in each block: ``places[r, b]`` is the first entry of rank r or more.

    Block b holds the entries from ``begins[b]`` to the next block, in order of rank.
    """
    blocks = begins.size - 1
    places = np.empty((size + 1, blocks), np.int32)
    for block in range(blocks):
        entry = begins[block]
        for rank in range(size + 1):
            while entry < begins[block + 1] and ranks[entry] < rank:
                entry += 1
            places[rank, block] = entry
    return places


@compiled
def list_ranges(
    places: Int32s, combos: Ints, slots: Ints, allowed: Bools, intervals: Ints, room: int
) -> Runs:
    """The runs of entries in intervals of ranks, as `list_runs` gives them.

    ``combos`` and ``slots`` give for each block the combination of its other ranks and its slot.
    ``allowed[m, c]`` says whether predicate m allows a combination; row ``(m, low, high)`` of
    ``intervals``, which are in order of predicate, that it allows the ranks [low, high).
    """
    lows, highs = np.empty(room, np.int64), np.empty(room, np.int64)
    members, owners = np.empty(room, np.int64), np.empty(room, np.int64)
    at = 0
    first = 0
    while first < intervals.shape[0]:
        member = intervals[first, 0]
        last = first
        while last < intervals.shape[0] and intervals[last, 0] == member:
            last += 1
        for block in range(combos.size):
            if allowed[member, combos[block]]:
                for i in range(first, last):
                    low = places[intervals[i, 1], block]
                    high = places[intervals[i, 2], block]
                    lows[at], highs[at] = low, high
                    members[at], owners[at] = member, slots[block]
                    at += high > low
        first = last
    return lows[:at].copy(), highs[:at].copy(), members[:at].copy(), owners[:at].copy()
