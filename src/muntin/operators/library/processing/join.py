"""Query 1 of the thesis: pairs of two windows with equal keys."""

from __future__ import annotations

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.operators.library.processing.results import (
    LOOKED,
    NT,
    SIZE,
    ZERO,
    Store,
    add_first,
    find,
    let_go,
    pair_spot,
    put,
    remove,
    take_out,
)


@compiled
def join(
    times: Ints, links: Ints, keys: Ints, spots: Ints, window: int, way: int, store: Store,
    width: int, scanning: bool, pause: int, rows: Ints,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Query 1: pairs of both links with equal keys.

    `spots` are the hash lists that windows have their tuples in. Negative tuples walk through one
    to find what they end, from the newest on; else what has ended lies in front.
    """
    count = spots.max() + 1 if len(spots) else 1
    first = np.full((2, count), -1, dtype=np.int64)
    last = np.full((2, count), -1, dtype=np.int64)
    after = np.full(len(times), -1, dtype=np.int64)
    made, oldest, since = ZERO, ZERO, ZERO
    peak, negatives, looked = 0, 0, 0
    for at in range(len(times)):
        now, link, key, spot = times[at], links[at], keys[at], spots[at]
        while oldest < at and times[oldest] + window <= now:
            if way == NT:
                # The window's negative tuple is processed like an arrival.
                negatives += 1
                side, gone = links[oldest], keys[oldest]
                looked += take_out(first[side], after, spots[oldest], oldest)
                partner = first[1 - side, spots[oldest]]
                while partner >= 0:
                    looked += 1
                    if keys[partner] == gone:
                        left, right = (oldest, partner) if side == 0 else (partner, oldest)
                        place = pair_spot(left, right, len(store.first))
                        found = find(store, rows, place, left, right)
                        if found >= 0:
                            negatives += 1
                            remove(store, place, found)
                    partner = after[partner]
            oldest += 1
        for side in range(2):
            # A queue gives up what has ended in front, when it is looked at.
            while way != NT and first[side, spot] >= 0 and times[first[side, spot]] + window <= now:
                first[side, spot] = after[first[side, spot]]
                looked += 1
        if now - since >= pause:
            let_go(store, way, width, since, now, scanning)
            since = now
        if way == NT:
            add_first(first[link], after, spot, at)
        else:
            if first[link, spot] < 0:
                first[link, spot] = at
            else:
                after[last[link, spot]] = at
            last[link, spot] = at
        partner = first[1 - link, spot]
        while partner >= 0:
            looked += 1
            if keys[partner] == key:
                if made >= len(rows):
                    return made + 1, peak, negatives, looked
                rows[made, 0], rows[made, 1] = (at, partner) if link == 0 else (partner, at)
                rows[made, 2], rows[made, 3] = now, times[partner] + window
                put(store, rows, made, way, width, scanning)
                made += 1
            partner = after[partner]
        peak = max(peak, at - oldest + 1 + store.counters[SIZE])
    return made, peak, negatives, looked + store.counters[LOOKED]
