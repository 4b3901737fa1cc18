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
    find,
    let_go,
    pair_spot,
    put,
    remove,
)


@compiled
def join(
    times: Ints, links: Ints, keys: Ints, window: int, way: int, store: Store, width: int,
    scanning: bool, rows: Ints,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Query 1: pairs of both links with equal keys."""
    count = keys.max() + 1 if len(keys) else 1
    first = np.full((2, count), -1, dtype=np.int64)
    last = np.full((2, count), -1, dtype=np.int64)
    after = np.full(len(times), -1, dtype=np.int64)
    made, oldest, since = ZERO, ZERO, ZERO
    peak, negatives, looked = 0, 0, 0
    for at in range(len(times)):
        now, link, key = times[at], links[at], keys[at]
        while oldest < at and times[oldest] + window <= now:
            if way == NT:
                # The window's negative tuple is processed like an arrival.
                negatives += 1
                side, gone = links[oldest], keys[oldest]
                first[side, gone] = after[oldest]
                partner = first[1 - side, gone]
                while partner >= 0:
                    looked += 1
                    left, right = (oldest, partner) if side == 0 else (partner, oldest)
                    spot = pair_spot(left, right, len(store.first))
                    found = find(store, rows, spot, left, right)
                    if found >= 0:
                        negatives += 1
                        remove(store, spot, found)
                    partner = after[partner]
            oldest += 1
        for side in range(2):
            # A queue gives up what has ended in front, when it is looked at.
            while way != NT and first[side, key] >= 0 and times[first[side, key]] + window <= now:
                first[side, key] = after[first[side, key]]
                looked += 1
        if now - since >= max(window // 20, 1):
            let_go(store, way, width, since, now, scanning)
            since = now
        if first[link, key] < 0:
            first[link, key] = at
        else:
            after[last[link, key]] = at
        last[link, key] = at
        partner = first[1 - link, key]
        while partner >= 0:
            looked += 1
            if made >= len(rows):
                return made + 1, peak, negatives, looked
            rows[made, 0], rows[made, 1] = (at, partner) if link == 0 else (partner, at)
            rows[made, 2], rows[made, 3] = now, times[partner] + window
            put(store, rows, made, way, width, scanning)
            made += 1
            partner = after[partner]
        peak = max(peak, at - oldest + 1 + store.counters[SIZE])
    return made, peak, negatives, looked + store.counters[LOOKED]
