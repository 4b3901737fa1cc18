"""Query 3 of the thesis: tuples of one window while the other has none of their key."""

from __future__ import annotations

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.operators.library.processing.results import (
    LOOKED,
    NOBODY,
    NT,
    SIZE,
    SORTED,
    UPA,
    ZERO,
    Store,
    expire_calendar,
    find,
    pair_spot,
    put,
    remove,
    scan_for,
)


@compiled
def absence(
    times: Ints, links: Ints, keys: Ints, window: int, way: int, store: Store, width: int,
    scanning: bool, rows: Ints,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Process all tuples; how many results, the most kept, negative tuples, entries looked at."""
    count = keys.max() + 1 if len(keys) else 1
    partners = np.zeros(count, dtype=np.int64)
    first = np.full(count, -1, dtype=np.int64)
    last = np.full(count, -1, dtype=np.int64)
    after = np.full(len(times), -1, dtype=np.int64)
    shown = np.full(len(times), -1, dtype=np.int64)
    totals = np.zeros(3, dtype=np.int64)
    oldest, since, peak = ZERO, ZERO, 0
    for step in range(len(times) + 1):
        # Behind the last tuple, whatever is alive ends.
        now = times[step] if step < len(times) else times[-1] + 2 * window
        while oldest < step and times[oldest] + window <= now:
            if links[oldest] == 0:
                _end_left(oldest, keys, first, after, shown, way, store, rows, totals)
            else:
                _end_right(oldest, times, keys, window, partners, first, after, shown, way, store,
                           width, rows, totals)  # fmt: skip
            oldest += 1
        if step == len(times):
            break
        if way == UPA and now - since >= max(window // 20, 1):
            # What has ended meanwhile is known by its end, so that this may come late.
            expire_calendar(store, width, since, now, SORTED)
            since = now
        key = keys[step]
        if links[step] == 0:
            if first[key] < 0:
                first[key] = step
            else:
                after[last[key]] = step
            last[key] = step
            if partners[key] == 0:
                _show(step, now, now + window, shown, way, store, width, rows, totals)
        else:
            partners[key] += 1
            if partners[key] == 1:
                _hide_all(first[key], now, after, shown, way, store, width, scanning, rows, totals)
        peak = max(peak, step - oldest + 1 + store.counters[SIZE])
    looked = totals[_SEEN] + store.counters[LOOKED]
    return totals[_MADE], peak, totals[_NEGATIVES], looked


# Results made, negative tuples processed, entries looked at.
_MADE, _NEGATIVES, _SEEN = 0, 1, 2


@compiled
def _show(
    at: int, start: int, end: int, shown: Ints, way: int, store: Store, width: int, rows: Ints,
    totals: Ints,
) -> None:  # fmt: skip
    made = totals[_MADE]
    if made >= len(rows):
        # One more than fits says that there were too many.
        totals[_MADE] = len(rows) + 1
        return
    rows[made, 0], rows[made, 1], rows[made, 2], rows[made, 3] = at, -1, start, end
    shown[at] = made
    put(store, rows, made, way, width, SORTED)
    totals[_MADE] += 1


@compiled
def _remove_named(at: int, store: Store, rows: Ints) -> None:
    """A negative tuple finds the result that it names in its hash list."""
    spot = pair_spot(at, NOBODY, len(store.first))
    remove(store, spot, find(store, rows, spot, at, NOBODY))


@compiled
def _hide_all(
    at: int, now: int, after: Ints, shown: Ints, way: int, store: Store, width: int,
    scanning: bool, rows: Ints, totals: Ints,
) -> None:  # fmt: skip
    """A partner came: the tuples of its key, from `at` on, end before their time."""
    while at >= 0:
        totals[_SEEN] += 1
        result = shown[at]
        if result >= 0:
            totals[_NEGATIVES] += 1
            if way == NT:
                _remove_named(at, store, rows)
            elif store.after[result] != -2:
                if scanning:
                    scan_for(store, result)
                remove(store, rows[result, 3] // width % len(store.first), result)
            rows[result, 3] = now
            shown[at] = -1
        at = after[at]


@compiled
def _end_left(
    at: int, keys: Ints, first: Ints, after: Ints, shown: Ints, way: int, store: Store,
    rows: Ints, totals: Ints,
) -> None:  # fmt: skip
    """A tuple of link 0 ends; only negative tuples say so to the results."""
    totals[_SEEN] += 1
    first[keys[at]] = after[at]
    if way == NT:
        totals[_NEGATIVES] += 1
        if shown[at] >= 0:
            totals[_NEGATIVES] += 1
            _remove_named(at, store, rows)
    shown[at] = -1


@compiled
def _end_right(
    gone: int, times: Ints, keys: Ints, window: int, partners: Ints, first: Ints, after: Ints,
    shown: Ints, way: int, store: Store, width: int, rows: Ints, totals: Ints,
) -> None:  # fmt: skip
    """A tuple of link 1 ends: if it was the last of its key, tuples of link 0 are shown again."""
    key, instant = keys[gone], times[gone] + window
    totals[_SEEN] += 1
    totals[_NEGATIVES] += way == NT
    partners[key] -= 1
    at = first[key] if partners[key] == 0 else -1
    while at >= 0:
        totals[_SEEN] += 1
        if times[at] + window > instant:
            _show(at, instant, times[at] + window, shown, way, store, width, rows, totals)
        at = after[at]
