"""Compiled loops that write aggregates of grouped windows where they belong.

Rows are in order of query, window and group; those of one query and one window are a **run**.
Groups are walked one after the other, while the sums of a group's slices are in the cache, and
each row is written at the end of its run, so that nothing is sorted afterwards.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from muntin.aggregates.exact_pairs import round_pair
from muntin.compiled import compiled

Ints = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
# Places are unsigned: numba would make each of a signed one ready to count from the end.
Places = npt.NDArray[np.uint32]
Words = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_ZERO, _ONE = np.uint64(0), np.uint64(1)


class Slots(NamedTuple):
    """Entries sorted by group and slice; those of one group and one slice share a slot.

    Group number i is ``groups[i]``, with the entries from ``entries[i]`` on and the slots from
    ``slots[i]`` on. ``places`` numbers each entry's slot in its group from 1 on; ``slices`` gives
    the number of each slot's slice, in order of time.
    """

    groups: Int32s
    entries: Ints
    slots: Ints
    places: Places
    slices: Int32s


class Asked(NamedTuple):
    """What is asked of all groups: windows of predicates.

    Window w covers the slices from ``lows[w]`` to ``highs[w] - 1``; lows do not fall. Windows
    from ``firsts[s]`` on reach beyond slice s, those before ``lasts[s]`` begin before its end.
    Entry e satisfies predicate p where ``held[p, cells[e]]``. Run r is of window ``windows[r]``;
    the runs of predicate p from window w on begin at ``runs[p, w]``.
    """

    lows: Ints
    highs: Ints
    firsts: Ints
    lasts: Ints
    cells: Places
    held: Bools
    windows: Places
    runs: Ints


class Covered(NamedTuple):
    """The slots that windows cover in each group of a block, from ``lows`` to ``highs - 1``.

    Only windows from ``reach[i, 0]`` to ``reach[i, 1] - 1`` are there for group i of the block.
    """

    lows: Places
    highs: Places
    reach: Ints


@compiled
def lay_out(groups: Ints, slices: Int32s) -> Slots:
    """The slots of sorted entries."""
    numbers = np.empty(groups.size, np.int32)
    entries = np.empty(groups.size + 1, np.int64)
    begins = np.empty(groups.size + 1, np.int64)
    places = np.empty(groups.size, np.uint32)
    held = np.empty(groups.size, np.int32)
    owners = count = place = 0
    for i in range(groups.size):
        fresh = i == 0 or groups[i] != groups[i - 1]
        if fresh:
            numbers[owners], entries[owners], begins[owners] = groups[i], i, count
            owners += 1
            place = 0
        if fresh or slices[i] != slices[i - 1]:
            held[count] = slices[i]
            count += 1
            place += 1
        places[i] = place
    entries[owners], begins[owners] = groups.size, count
    ends = owners + 1
    return Slots(
        numbers[:owners].copy(), entries[:ends].copy(), begins[:ends].copy(), places, held[:count]
    )


@compiled
def _make_room(asked: Asked, block: int) -> Covered:
    windows = asked.lows.size
    lows, highs = np.empty((block, windows), np.uint32), np.empty((block, windows), np.uint32)
    return Covered(lows, highs, np.empty((block, 2), np.int64))


@compiled
def _cover(slots: Slots, asked: Asked, begin: int, end: int, ranks: Places, to: Covered) -> None:
    """Find the slots that windows cover in groups number ``begin`` to ``end - 1``.

    ``ranks`` is room for one number a slice, and one more.
    """
    for number in range(begin, end):
        first, last = slots.slots[number], slots.slots[number + 1]
        low, high = np.int64(slots.slices[first]), np.int64(slots.slices[last - 1]) + 1
        at = low
        for slot in range(first, last):
            while at <= slots.slices[slot]:
                ranks[at] = slot - first
                at += 1
        ranks[high] = last - first
        row = number - begin
        reach = asked.firsts[low], asked.lasts[high - 1]
        to.reach[row, 0], to.reach[row, 1] = reach
        for window in range(reach[0], reach[1]):
            to.lows[row, window] = ranks[min(max(asked.lows[window], low), high)]
            to.highs[row, window] = ranks[min(max(asked.highs[window], low), high)]


@compiled
def count_rows(slots: Slots, asked: Asked, block: int, counts: Ints) -> None:
    """Count the groups of each run; ``block`` groups are looked at together."""
    covered = _make_room(asked, block)
    ranks = np.empty(asked.firsts.size + 1, np.uint32)
    seen = np.zeros(asked.firsts.size + 1, np.uint32)
    for begin in range(0, slots.groups.size, block):
        end = min(begin + block, slots.groups.size)
        _cover(slots, asked, begin, end, ranks, covered)
        for member in range(asked.held.shape[0]):
            held = asked.held[member]
            for number in range(begin, end):
                total = np.uint32(0)
                for entry in range(slots.entries[number], slots.entries[number + 1]):
                    total += held[asked.cells[entry]]
                    seen[slots.places[entry]] = total
                if not total:
                    continue
                lows, highs = covered.lows[number - begin], covered.highs[number - begin]
                first, last = covered.reach[number - begin]
                for run in range(asked.runs[member, first], asked.runs[member, last]):
                    window = asked.windows[run]
                    counts[run] += seen[highs[window]] != seen[lows[window]]


@compiled
def write_rows(
    slots: Slots,
    asked: Asked,
    block: int,
    ends: Ints,
    pairs: Words,
    factors: Floats,
    owners: Int32s,
    out: Words,
) -> None:
    """Write the sums of the entries' pairs of words, run by run.

    ``ends`` holds the first row of each run, and is moved to one past its last. With ``factors``
    a sum is written as the bits of the nearest double, without as words, as many as ``out`` is
    wide. ``owners`` gets the group of every row, unless it is empty.
    """
    covered = _make_room(asked, block)
    ranks = np.empty(asked.firsts.size + 1, np.uint32)
    totals = np.zeros((asked.firsts.size + 1, 4), np.uint64)
    for begin in range(0, slots.groups.size, block):
        end = min(begin + block, slots.groups.size)
        _cover(slots, asked, begin, end, ranks, covered)
        for member in range(asked.held.shape[0]):
            held = asked.held[member]
            for number in range(begin, end):
                low, high, seen = _ZERO, _ZERO, _ZERO
                for entry in range(slots.entries[number], slots.entries[number + 1]):
                    holds = np.uint64(held[asked.cells[entry]])
                    mask = _ZERO - holds
                    before = low
                    low += pairs[entry, 0] & mask
                    high += (pairs[entry, 1] & mask) + np.uint64(low < before)
                    seen += holds
                    place = slots.places[entry]
                    totals[place, 0], totals[place, 1], totals[place, 2] = low, high, seen
                if not seen:
                    continue
                lows, highs = covered.lows[number - begin], covered.highs[number - begin]
                first, last = covered.reach[number - begin]
                for run in range(asked.runs[member, first], asked.runs[member, last]):
                    window = asked.windows[run]
                    a, b = lows[window], highs[window]
                    if totals[a, 2] == totals[b, 2]:
                        continue
                    low = totals[b, 0] - totals[a, 0]
                    high = totals[b, 1] - totals[a, 1] - np.uint64(low > totals[b, 0])
                    row = np.uint64(ends[run])
                    ends[run] += 1
                    if factors.size:
                        rounded = np.float64(round_pair(low, np.int64(high), factors))
                        out[row, 0] = rounded.view(np.uint64)
                    else:
                        out[row, 0] = low
                        if out.shape[1] > 1:
                            out[row, 1] = high
                    if owners.size:
                        owners[row] = slots.groups[number]
