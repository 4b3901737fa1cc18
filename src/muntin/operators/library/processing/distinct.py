"""Query 2 of the thesis: each key once, in pieces."""

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
    expire_list,
    pair_spot,
    put,
    remove,
)


@compiled
def distinct(
    times: Ints, links: Ints, keys: Ints, window: int, way: int, store: Store, width: int,
    scanning: bool, rows: Ints,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Query 2: each key once, for as long as some tuple has it; a piece is a result.

    `nt` and `direct` keep all tuples and the shown ones; `upa` keeps, for each key, when the
    shown piece and when the latest tuple end.
    """
    count = keys.max() + 1 if len(keys) else 1
    shown = np.full(count, -1, dtype=np.int64)
    youngest = np.full(count, -1, dtype=np.int64)
    made, oldest, since = ZERO, ZERO, ZERO
    peak, negatives, looked = 0, 0, 0
    ending = np.empty(len(store.ends) if way == UPA else 0, dtype=np.int64)
    for at in range(len(times)):
        now, key = times[at], keys[at]
        if way == UPA:
            # Pieces that ended are followed by those of the latest tuple, if it lives longer.
            ended = _ended(store, width, since, now, ending)
            for place in range(ended):
                piece = ending[place]
                made = _next_piece(store, rows, keys, times, youngest, shown, window, piece, made,
                                   now, way, width)  # fmt: skip
            since = now
        else:
            while oldest < at and times[oldest] + window <= now:
                looked += 1
                if way == NT:
                    negatives += 1
                piece = shown[keys[oldest]]
                if piece >= 0 and rows[piece, 0] == oldest:
                    if way == NT:
                        negatives += 1
                        remove(store, pair_spot(oldest, NOBODY, len(store.first)), piece)
                    made = _next_piece(store, rows, keys, times, youngest, shown, window, piece,
                                       made, now, way, width)  # fmt: skip
                oldest += 1
            if way == DIRECT:
                expire_list(store, now)
        youngest[key] = at
        if shown[key] < 0:
            if made >= len(rows):
                return made + 1, peak, negatives, looked
            rows[made, 0], rows[made, 1], rows[made, 2], rows[made, 3] = at, -1, now, now + window
            shown[key] = made
            put(store, rows, made, way, width, SORTED)
            made += 1
        tuples = 0 if way == UPA else at - oldest + 1
        peak = max(peak, tuples + store.counters[SIZE] * (2 if way == UPA else 1))
    # Pieces that follow after the last tuple.
    for piece in range(made):
        if shown[keys[rows[piece, 0]]] == piece:
            made = _next_piece(store, rows, keys, times, youngest, shown, window, piece, made,
                               times[-1] + 2 * window, way, width)  # fmt: skip
    return made, peak, negatives, looked + store.counters[LOOKED]


@compiled
def _ended(store: Store, width: int, since: int, now: int, ending: Ints) -> int:
    """The results of a calendar that have ended, taken out of it."""
    found = 0
    newest = min(now // width, since // width + len(store.first) - 1)
    for partition in range(since // width, newest + 1):
        spot = partition % len(store.first)
        store.counters[LOOKED] += 1
        at = store.first[spot]
        while at >= 0 and store.ends[at] <= now:
            following = store.after[at]
            remove(store, spot, at)
            ending[found] = at
            found += 1
            at = following
    return found


@compiled
def _next_piece(
    store: Store, rows: Ints, keys: Ints, times: Ints, youngest: Ints, shown: Ints, window: int,
    piece: int, made: int, now: int, way: int, width: int,
) -> int:  # fmt: skip
    """What is shown of a key when its piece has ended: the youngest tuple, if it is alive then."""
    key = keys[rows[piece, 0]]
    end, young = rows[piece, 3], youngest[key]
    if times[young] + window <= end:
        shown[key] = -1
        return made
    if made < len(rows):
        rows[made, 0], rows[made, 1] = young, -1
        rows[made, 2], rows[made, 3] = end, times[young] + window
        shown[key] = made
        if rows[made, 3] > now:
            put(store, rows, made, way, width, SORTED)
            return made + 1
        # It is over as soon as it has begun: nothing of its key can follow.
        shown[key] = -1
    return made + 1
