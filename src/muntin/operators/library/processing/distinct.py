"""Query 2 of the thesis: each key once, in pieces.

A piece is shown for as long as its tuple lives, and followed by one of the youngest tuple of its
key. Keys are looked for in hash lists in all modes: what differs is what is kept of them.
"""

from __future__ import annotations

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.operators.library.processing.results import (
    DIRECT,
    LOOKED,
    NOBODY,
    NT,
    SIZE,
    SORTED,
    UPA,
    ZERO,
    Store,
    add_first,
    expire_list,
    find,
    inlined,
    pair_spot,
    put,
    remove,
    take_out,
)


@compiled
def distinct(
    times: Ints, keys: Ints, spots: Ints, window: int, way: int, store: Store, width: int,
    rows: Ints,
) -> tuple[int, int, int, int]:  # fmt: skip
    """How many pieces there were, the most kept, negative tuples, entries looked at.

    `spots` are the hash lists in which tuples, and keys that are shown, are looked for.
    """
    if not len(times):
        return 0, 0, 0, 0
    if way == UPA:
        return _by_pattern(times, keys, spots, window, store, width, rows)
    return _by_input(times, keys, spots, window, way, store, width, rows)


@compiled
def _by_input(
    times: Ints, keys: Ints, spots: Ints, window: int, way: int, store: Store, width: int,
    rows: Ints,
) -> tuple[int, int, int, int]:  # fmt: skip
    """The plain operator: it stores what it shows, and its whole input."""
    count, lists = keys.max() + 1, spots.max() + 1
    shown = np.full(count, -1, dtype=np.int64)
    present = np.full(lists, -1, dtype=np.int64)
    present_after = np.full(count, -1, dtype=np.int64)
    first = np.full(lists, -1, dtype=np.int64)
    after = np.full(len(times), -1, dtype=np.int64)
    made, oldest = ZERO, ZERO
    peak, negatives, looked = 0, 0, 0
    for at in range(len(times)):
        now, key, spot = times[at], keys[at], spots[at]
        while oldest < at and times[oldest] + window <= now:
            # The window's negative tuple, or the operator's own look at its queue.
            looked += 1 + take_out(first, after, spots[oldest], oldest)
            negatives += way == NT
            gone = keys[oldest]
            looked += _walk(present, present_after, spots[oldest], gone)
            piece = shown[gone]
            if piece >= 0 and rows[piece, 0] == oldest:
                if way == NT:
                    # What is shown ends by a negative tuple as well, which finds it by its name.
                    negatives += 1
                    place = pair_spot(oldest, NOBODY, len(store.first))
                    remove(store, place, find(store, rows, place, oldest, NOBODY))
                youngest = first[spots[oldest]]
                while youngest >= 0 and keys[youngest] != gone:
                    looked += 1
                    youngest = after[youngest]
                made = _follow(store, rows, times, shown, window, gone, youngest, made, now, way,
                               width)  # fmt: skip
                if shown[gone] < 0:
                    looked += take_out(present, present_after, spots[oldest], gone)
            oldest += 1
        if way == DIRECT:
            expire_list(store, now)
        add_first(first, after, spot, at)
        looked += _walk(present, present_after, spot, key)
        if shown[key] < 0:
            if made >= len(rows):
                return made + 1, peak, negatives, looked
            made = _show(store, rows, shown, key, at, now, now + window, made, way, width)
            add_first(present, present_after, spot, key)
        peak = max(peak, at - oldest + 1 + store.counters[SIZE])
    last = np.full(count, -1, dtype=np.int64)
    for at in range(oldest, len(times)):
        last[keys[at]] = at
    made = _follow_all(store, rows, times, shown, window, last, made, way, width)
    return made, peak, negatives, looked + store.counters[LOOKED]


@compiled
def _by_pattern(
    times: Ints, keys: Ints, spots: Ints, window: int, store: Store, width: int, rows: Ints
) -> tuple[int, int, int, int]:
    """δ*: of each key what it shows, and the youngest tuple.

    Partitions are sorted, so that the first of the current one says whether anything has ended:
    a tuple with which nothing does costs a comparison, without a division.
    """
    count = keys.max() + 1
    shown = np.full(count, -1, dtype=np.int64)
    youngest = np.full(count, -1, dtype=np.int64)
    present = np.full(spots.max() + 1, -1, dtype=np.int64)
    present_after = np.full(count, -1, dtype=np.int64)
    made, partitions = ZERO, len(store.first)
    current, until = times[0] // width % partitions, (times[0] // width + 1) * width
    peak, looked = 0, 0
    for at in range(len(times)):
        now, key, spot = times[at], keys[at], spots[at]
        if now - until >= partitions * width:
            # Longer than the whole calendar: one round of it sees everything.
            until = (now // width + 1 - partitions) * width
            current = (now // width - partitions) % partitions
        while True:
            looked += 1
            piece = store.first[current]
            while piece >= 0 and store.ends[piece] <= now:
                remove(store, current, piece)
                ended = rows[piece, 0]
                gone = keys[ended]
                young = youngest[gone] if youngest[gone] != ended else NOBODY
                made = _follow(store, rows, times, shown, window, gone, young, made, now, UPA,
                               width)  # fmt: skip
                if shown[gone] < 0:
                    looked += take_out(present, present_after, spots[ended], gone)
                piece = store.first[current]
            if now < until:
                break
            until += width
            current = current + 1 if current + 1 < partitions else 0
        looked += _walk(present, present_after, spot, key)
        youngest[key] = at
        if shown[key] < 0:
            if made >= len(rows):
                return made + 1, peak, 0, looked
            made = _show(store, rows, shown, key, at, now, now + window, made, UPA, width)
            add_first(present, present_after, spot, key)
        peak = max(peak, 2 * store.counters[SIZE])
    made = _follow_all(store, rows, times, shown, window, youngest, made, UPA, width)
    return made, peak, 0, looked + store.counters[LOOKED]


@inlined
def _walk(first: Ints, after: Ints, spot: int, key: int) -> int:
    """Look for a key in its hash list; how many others came before it, or at all."""
    found, looked = first[spot], ZERO
    while found >= 0 and found != key:
        found = after[found]
        looked += 1
    return int(looked)


@inlined
def _show(
    store: Store, rows: Ints, shown: Ints, key: int, at: int, start: int, end: int, made: int,
    way: int, width: int,
) -> int:  # fmt: skip
    """A piece of the key begins; how many there are then."""
    rows[made, 0], rows[made, 1], rows[made, 2], rows[made, 3] = at, -1, start, end
    shown[key] = made
    put(store, rows, made, way, width, SORTED)
    return made + 1


@inlined
def _follow(
    store: Store, rows: Ints, times: Ints, shown: Ints, window: int, key: int, young: int,
    made: int, now: int, way: int, width: int,
) -> int:  # fmt: skip
    """What is shown of a key when its piece has ended: its youngest tuple, if it lives longer."""
    end = rows[shown[key], 3]
    shown[key] = -1
    if young < 0 or times[young] + window <= end:
        return made
    if made >= len(rows):
        return made + 1
    over = times[young] + window
    if over > now:
        return int(_show(store, rows, shown, key, young, end, over, made, way, width))
    # It is over as soon as it has begun: nothing of its key can follow.
    rows[made, 0], rows[made, 1], rows[made, 2], rows[made, 3] = young, -1, end, over
    return made + 1


@compiled
def _follow_all(
    store: Store, rows: Ints, times: Ints, shown: Ints, window: int, youngest: Ints, made: int,
    way: int, width: int,
) -> int:  # fmt: skip
    """Pieces that follow after the last tuple."""
    for key in range(len(shown)):
        if shown[key] >= 0:
            made = _follow(store, rows, times, shown, window, key, youngest[key], made,
                           times[-1] + 2 * window, way, width)  # fmt: skip
    return made
