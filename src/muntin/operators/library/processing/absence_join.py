"""Query 4 of the thesis: pairs of two windows while a third has none of their key.

Two plans give the same rows. With the absence *down*, tuples are joined while they are shown, so
that whatever hides or shows them joins again. With the absence *up*, pairs are kept whether they
are shown or not, and hidden and shown as they are.
"""

from __future__ import annotations

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.operators.library.processing.results import (
    LOOKED,
    NT,
    SIZE,
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

# Results made, negative tuples processed, entries looked at, pairs made.
_MADE, _NEGATIVES, _SEEN, _PAIRS = 0, 1, 2, 3
# What joins, and what hides.
_LEFT, _HIDING, _RIGHT = 0, 1, 2


@compiled
def absence_join(
    times: Ints, links: Ints, keys: Ints, window: int, way: int, up: bool, store: Store,
    held: Store, width: int, scanning: bool, rows: Ints, pairs: Ints,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Process all tuples; how many results, the most kept, negative tuples, entries looked at.

    `held` and `pairs` are as `store` and `rows`, for pairs that are kept with the absence up.
    """
    count = keys.max() + 1 if len(keys) else 1
    hiding = np.zeros(count, dtype=np.int64)
    first = np.full((3, count), -1, dtype=np.int64)
    last = np.full((3, count), -1, dtype=np.int64)
    after = np.full(len(times), -1, dtype=np.int64)
    # The results, and the pairs, of each key, newest first.
    shown = np.full(count, -1, dtype=np.int64)
    shown_after = np.full(len(rows), -1, dtype=np.int64)
    kept = np.full(count, -1, dtype=np.int64)
    kept_after = np.full(len(pairs), -1, dtype=np.int64)
    totals = np.zeros(4, dtype=np.int64)
    oldest, since, peak = ZERO, ZERO, 0
    for step in range(len(times) + 1):
        # Behind the last tuple, whatever is alive ends.
        now = times[step] if step < len(times) else times[-1] + 2 * window
        while oldest < step and times[oldest] + window <= now:
            key, link = keys[oldest], links[oldest]
            totals[_SEEN] += 1
            totals[_NEGATIVES] += way == NT
            if link == _HIDING:
                hiding[key] -= 1
                if hiding[key] == 0:
                    _show_all(key, times[oldest] + window, times, window, up, first, after, kept,
                              kept_after, held, pairs, shown, shown_after, way, store, width,
                              scanning, rows, totals)  # fmt: skip
            else:
                first[link, key] = after[oldest]
                if way == NT:
                    _announce(oldest, link, hiding[key] == 0, first[_RIGHT - link, key], up, after,
                              held, pairs, store, rows, totals)  # fmt: skip
            oldest += 1
        if step == len(times):
            break
        if way == UPA and now - since >= max(window // 20, 1):
            # What has ended meanwhile is known by its end, so that this may come late.
            expire_calendar(store, width, since, now, scanning)
            if up:
                expire_calendar(held, width, since, now, scanning)
            since = now
        key, link = keys[step], links[step]
        if link == _HIDING:
            hiding[key] += 1
            if hiding[key] == 1:
                _hide_all(key, now, up, first, after, shown, shown_after, way, store, width,
                          scanning, rows, totals)  # fmt: skip
        else:
            if first[link, key] < 0:
                first[link, key] = step
            else:
                after[last[link, key]] = step
            last[link, key] = step
            _meet(step, link, now, hiding[key] == 0, first[_RIGHT - link, key], times, window, up,
                  key, after, kept, kept_after, held, pairs, shown, shown_after, way, store,
                  width, scanning, rows, totals)  # fmt: skip
        if totals[_MADE] > len(rows) or totals[_PAIRS] > len(pairs):
            return len(rows) + 1, peak, totals[_NEGATIVES], totals[_SEEN]
        peak = max(peak, step - oldest + 1 + store.counters[SIZE] + held.counters[SIZE])
    looked = totals[_SEEN] + store.counters[LOOKED] + held.counters[LOOKED]
    return totals[_MADE], peak, totals[_NEGATIVES], looked


@compiled
def _meet(
    at: int, link: int, now: int, is_shown: bool, partner: int, times: Ints, window: int, up: bool,
    key: int, after: Ints, kept: Ints, kept_after: Ints, held: Store, pairs: Ints, shown: Ints,
    shown_after: Ints, way: int, store: Store, width: int, scanning: bool, rows: Ints, totals: Ints,
) -> None:  # fmt: skip
    """A tuple of either side of the join meets those of the other."""
    while partner >= 0 and (up or is_shown):
        totals[_SEEN] += 1
        end = times[partner] + window
        left, right = (at, partner) if link == _LEFT else (partner, at)
        if end > now:
            if up:
                made = totals[_PAIRS]
                totals[_PAIRS] += 1
                if made >= len(pairs):
                    return
                pairs[made, 0], pairs[made, 1] = left, right
                pairs[made, 2], pairs[made, 3] = now, end
                put(held, pairs, made, way, width, scanning)
                kept_after[made], kept[key] = kept[key], made
            if is_shown:
                _show(left, right, key, now, end, shown, shown_after, way, store, width, scanning,
                      rows, totals)  # fmt: skip
        partner = after[partner]


@compiled
def _show(
    left: int, right: int, key: int, start: int, end: int, shown: Ints, shown_after: Ints, way: int,
    store: Store, width: int, scanning: bool, rows: Ints, totals: Ints,
) -> None:  # fmt: skip
    made = totals[_MADE]
    totals[_MADE] += 1
    if made >= len(rows):
        return
    rows[made, 0], rows[made, 1], rows[made, 2], rows[made, 3] = left, right, start, end
    put(store, rows, made, way, width, scanning)
    shown_after[made], shown[key] = shown[key], made


@compiled
def _show_all(
    key: int, instant: int, times: Ints, window: int, up: bool, first: Ints, after: Ints,
    kept: Ints, kept_after: Ints, held: Store, pairs: Ints, shown: Ints, shown_after: Ints,
    way: int, store: Store, width: int, scanning: bool, rows: Ints, totals: Ints,
) -> None:  # fmt: skip
    """The last tuple that hid a key is gone: pairs that are kept are shown, or made again."""
    if up:
        pair, before = kept[key], -1
        while pair >= 0:
            totals[_SEEN] += 1
            following = kept_after[pair]
            if held.after[pair] == -2 or pairs[pair, 3] <= instant:
                # It has ended since: nobody looks at it again.
                if before < 0:
                    kept[key] = following
                else:
                    kept_after[before] = following
            else:
                before = pair
                _show(pairs[pair, 0], pairs[pair, 1], key, instant, pairs[pair, 3], shown,
                      shown_after, way, store, width, scanning, rows, totals)  # fmt: skip
            pair = following
        return
    left = first[_LEFT, key]
    while left >= 0:
        right = first[_RIGHT, key]
        while right >= 0:
            totals[_SEEN] += 1
            end = min(times[left], times[right]) + window
            if end > instant:
                _show(left, right, key, instant, end, shown, shown_after, way, store, width,
                      scanning, rows, totals)  # fmt: skip
            right = after[right]
        left = after[left]


@compiled
def _hide_all(
    key: int, now: int, up: bool, first: Ints, after: Ints, shown: Ints, shown_after: Ints,
    way: int, store: Store, width: int, scanning: bool, rows: Ints, totals: Ints,
) -> None:  # fmt: skip
    """A tuple that hides a key came: its results end before their time."""
    if not up:
        left = first[_LEFT, key]
        while left >= 0:
            # Each tuple that is hidden goes through the join once more.
            totals[_NEGATIVES] += 1
            right = first[_RIGHT, key]
            while right >= 0:
                totals[_SEEN] += 1
                right = after[right]
            left = after[left]
    at = shown[key]
    while at >= 0:
        totals[_SEEN] += 1
        if store.after[at] != -2 and rows[at, 3] > now:
            totals[_NEGATIVES] += 1
            if way == NT:
                spot = pair_spot(rows[at, 0], rows[at, 1], len(store.first))
                remove(store, spot, at)
            else:
                if scanning:
                    scan_for(store, at)
                remove(store, rows[at, 3] // width % len(store.first), at)
            rows[at, 3] = now
        at = shown_after[at]
    shown[key] = -1


@compiled
def _announce(
    gone: int, link: int, is_shown: bool, partner: int, up: bool, after: Ints, held: Store,
    pairs: Ints, store: Store, rows: Ints, totals: Ints,
) -> None:  # fmt: skip
    """A tuple of the join ends, and says so to all that was made of it."""
    while partner >= 0 and (up or is_shown):
        totals[_SEEN] += 1
        left, right = (gone, partner) if link == _LEFT else (partner, gone)
        if up:
            spot = pair_spot(left, right, len(held.first))
            found = find(held, pairs, spot, left, right)
            if found >= 0:
                totals[_NEGATIVES] += 1
                remove(held, spot, found)
        if is_shown:
            spot = pair_spot(left, right, len(store.first))
            found = find(store, rows, spot, left, right)
            if found >= 0:
                totals[_NEGATIVES] += 1
                remove(store, spot, found)
        partner = after[partner]
