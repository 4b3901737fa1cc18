"""Compiled loops that find the windows of queries among the slices that hold rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Ints = npt.NDArray[np.int64]


@njit(cache=True, nogil=True)
def count_windows(groups: Ints, starts: Ints, asked: Ints) -> Ints:
    """How many pairs of window and group hold a slice; with the lowest and highest window.

    ``groups`` and ``starts`` list the slices that hold rows. A row of ``asked`` is one query: the
    slices [low, high) that are its own, sorted by group, then start; the range, slide and phase
    of its windows; and the numbers of the first and the last window that is due. Window ``k``
    covers ``[phase + k * slide - range, phase + k * slide)``.
    """
    found = np.empty((asked.shape[0], 3), np.int64)
    for query in range(asked.shape[0]):
        low, high, range_, slide, phase, least, most = asked[query]
        total = np.int64(0)
        lowest, highest = np.int64(2**62), np.int64(-(2**62))
        following = least
        for i in range(low, high):
            if i > low and groups[i] != groups[i - 1]:
                following = least
            first = max((starts[i] - phase) // slide + 1, following)
            last = min((starts[i] + range_ - phase) // slide, most)
            if last >= first:
                total += last - first + 1
                following = last + 1
                lowest, highest = min(lowest, first), max(highest, last)
        found[query, 0], found[query, 1], found[query, 2] = total, lowest, highest
    return found


@njit(cache=True, nogil=True)
def list_windows(
    groups: Ints, starts: Ints, asked: Ints, total: int
) -> tuple[Ints, Ints, Ints, Ints]:
    """The ``total`` pairs of window and group that `count_windows` counts, query by query.

    Returns the window numbers, the groups, and for each the first slice it covers and one past
    the last; in order of query, group and window, so that both ends move forward in a group.
    """
    windows, owners = np.empty(total, np.int64), np.empty(total, np.int64)
    lows, highs = np.empty(total, np.int64), np.empty(total, np.int64)
    at = 0
    for query in range(asked.shape[0]):
        begin, end, range_, slide, phase, least, most = asked[query]
        low = high = begin
        following = least
        for i in range(begin, end):
            if i > begin and groups[i] != groups[i - 1]:
                following = least
                low = high = i
            first = max((starts[i] - phase) // slide + 1, following)
            last = min((starts[i] + range_ - phase) // slide, most)
            for k in range(first, last + 1):
                bound = phase + k * slide
                while starts[low] < bound - range_:
                    low += 1
                while high < end and groups[high] == groups[i] and starts[high] < bound:
                    high += 1
                windows[at], owners[at] = k, groups[i]
                lows[at], highs[at] = low, high
                at += 1
            if last >= first:
                following = last + 1
    return windows, owners, lows, highs


@njit(cache=True, nogil=True)
def window_order(windows: Ints, offsets: Ints, bounds: Ints) -> Ints:
    """What sorts the windows of each query by number, equal ones as they stand.

    The windows of query q lie between ``offsets[q]`` and ``offsets[q + 1]``; ``bounds[q]`` holds
    the lowest and the highest of them. Counting suits few different windows, as there are.
    """
    order = np.empty(windows.size, np.int64)
    for query in range(offsets.size - 1):
        begin, end = offsets[query], offsets[query + 1]
        if begin == end:
            continue
        lowest, highest = bounds[query]
        places = np.zeros(highest - lowest + 2, np.int64)
        for i in range(begin, end):
            places[windows[i] - lowest + 1] += 1
        for k in range(1, places.size):
            places[k] += places[k - 1]
        for i in range(begin, end):
            at = windows[i] - lowest
            order[begin + places[at]] = i
            places[at] += 1
    return order
