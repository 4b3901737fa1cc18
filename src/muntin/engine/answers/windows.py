"""Which windows the queries of a family ask for, among the slices that there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.engine.answers.families import Family

# Windows that outnumber slices by far, or very many, are better looked for group by group.
_MOST_PER_SLICE = 4
_FEW_WINDOWS = 1 << 10
# Pairs of query and window.
_MOST_RUNS = 1 << 22


@dataclass(frozen=True)
class Asking:
    """Windows of a family, and its runs: the pairs of query and window, in that order.

    Window w covers the slices from ``lows[w]`` to ``highs[w] - 1``; lows do not fall. ``numbers``
    and ``windows`` give the number of each run's window in its query and its place here,
    ``members`` the place of its predicate; the runs of query q begin at ``offsets[q]``.
    """

    lows: Ints
    highs: Ints
    numbers: Ints
    windows: Ints
    members: Ints
    offsets: Ints

    @property
    def edges(self) -> tuple[Ints, Ints]:
        """For each run, the first slice of its window, and the first after it."""
        return self.lows[self.windows], self.highs[self.windows]

    def reach(self, slices: int) -> tuple[Ints, Ints]:
        """For each slice, the first window that ends after it, and one past the last before it.

        The first is right for all that follow it in time: none before ends later.
        """
        each = np.arange(slices)
        latest = np.maximum.accumulate(self.highs)
        firsts = np.searchsorted(latest, each, side="right")
        return firsts, np.searchsorted(self.lows, each, side="right")


def ask(family: Family, starts: Ints, members: Sequence[int]) -> Asking | None:
    """What a family asks of slices that start at ``starts``, in order; None if that is too much."""
    specs, spec_of = np.unique(family.windows, axis=0, return_inverse=True)
    spec_of = spec_of.reshape(-1)
    ranges, slides, phases, least, most = specs.T
    lowest = np.maximum((starts[0] - phases) // slides + 1, least)
    highest = np.minimum((starts[-1] + ranges - phases) // slides, most)
    sizes = np.maximum(highest - lowest + 1, 0)
    if sizes.sum(dtype=np.float64) > _FEW_WINDOWS + _MOST_PER_SLICE * starts.size * len(specs):
        return None
    if sizes[spec_of].sum() > _MOST_RUNS:
        return None
    owners, places = _listed(sizes)
    ends = phases[owners] + (lowest[owners] + places) * slides[owners]
    lows = np.searchsorted(starts, ends - ranges[owners])
    order = slice_order(lows, starts.size + 1)
    ranks = np.empty_like(order)
    ranks[order] = np.arange(order.size)
    queries, places = _listed(sizes[spec_of])
    specs_of_runs = spec_of[queries]
    own = {member: place for place, member in enumerate(members)}
    predicates = np.array([own[final.member] for final in family.finals])
    return Asking(
        lows[order],
        np.searchsorted(starts, ends[order]),
        lowest[specs_of_runs] + places,
        ranks[(np.cumsum(sizes) - sizes)[specs_of_runs] + places],
        predicates[queries],
        np.concatenate(([0], np.cumsum(sizes[spec_of]))),
    )


@compiled
def slice_order(edges: Ints, slices: int) -> Ints:
    """What sorts edges, each the number of one of ``slices`` slices; equal ones as they stand.

    >>> slice_order(np.array([2, 0, 2, 1]), 3)
    array([1, 3, 0, 2])
    """
    places = np.zeros(slices + 1, np.int64)
    for i in range(edges.size):
        places[edges[i] + 1] += 1
    for k in range(1, slices):
        places[k] += places[k - 1]
    order = np.empty(edges.size, np.int64)
    for i in range(edges.size):
        order[places[edges[i]]] = i
        places[edges[i]] += 1
    return order


def _listed(sizes: Ints) -> tuple[Ints, Ints]:
    """The owner of each of ``sizes[i]`` things of every i, and its place among them."""
    owners = np.repeat(np.arange(sizes.size), sizes)
    return owners, np.arange(owners.size) - (np.cumsum(sizes) - sizes)[owners]


Listed = tuple[Ints, Ints, Ints, Ints]

# Going from window to window is cheaper than from slice to slice unless windows outnumber
# slices by far; looking slices up by halves is where slices outnumber windows.
_SPARSE = 4
_DENSE = 16
_MOST = 1 << 62


@compiled
def bound_windows(groups: Ints, starts: Ints, asked: Ints) -> Ints:
    """For each query at most how many pairs of window and group hold a slice, up to 2**62."""
    found = np.zeros(asked.shape[0], np.int64)
    for query in range(asked.shape[0]):
        begin, high = asked[query, 0], asked[query, 1]
        range_, slide, phase = asked[query, 2], asked[query, 3], asked[query, 4]
        while begin < high:
            end = _end_of_group(groups, begin, high)
            lowest = max((starts[begin] - phase) // slide + 1, asked[query, 5])
            highest = min((starts[end - 1] + range_ - phase) // slide, asked[query, 6])
            found[query] += min(max(highest - lowest + 1, 0), _MOST - found[query])
            begin = end
    return found


@compiled
def count_windows(groups: Ints, starts: Ints, asked: Ints) -> Ints:
    """For each query how many pairs of window and group hold a slice, up to 2**62.

    It takes as long as there are slices, however many windows cover them.
    """
    found = np.zeros(asked.shape[0], np.int64)
    for query in range(asked.shape[0]):
        low, high, range_, slide, phase, least, most = asked[query]
        following = least
        for i in range(low, high):
            if i > low and groups[i] != groups[i - 1]:
                following = least
            first = max((starts[i] - phase) // slide + 1, following)
            last = min((starts[i] + range_ - phase) // slide, most)
            if last >= first:
                found[query] += min(last - first + 1, _MOST - found[query])
                following = last + 1
    return found


@compiled
def list_windows(groups: Ints, starts: Ints, asked: Ints, listed: Listed) -> Ints:
    """List the pairs of window and group that hold a slice, query by query.

    ``listed`` has room for the window numbers, the groups, and for each the first slice it
    covers and one past the last; in order of query, group and window, so that both ends move
    forward in a group. Returns for each query how many there are, the lowest and the highest
    window. Arrays are made by the caller: numpy asks the system for large pages, a kernel not.
    """
    windows, owners, lows, highs = listed
    found = np.empty((asked.shape[0], 3), np.int64)
    at = 0
    for query in range(asked.shape[0]):
        begin, high = asked[query, 0], asked[query, 1]
        first_of_query = at
        lowest, highest = 2**62, -(2**62)
        while begin < high:
            end = _end_of_group(groups, begin, high)
            count, first, last = _walk(starts, begin, end, asked[query], at, windows, lows, highs)
            owners[at : at + count] = groups[begin]
            lowest, highest = min(lowest, first), max(highest, last)
            at += count
            begin = end
        found[query, 0], found[query, 1], found[query, 2] = at - first_of_query, lowest, highest
    return found


@compiled
def _end_of_group(groups: Ints, begin: int, high: int) -> int:
    if groups[high - 1] == groups[begin]:
        return high
    end = begin + 1
    while end < high and groups[end] == groups[begin]:
        end += 1
    return end


@compiled
def _walk(
    starts: Ints, begin: int, end: int, asked: Ints, at: int, windows: Ints, lows: Ints, highs: Ints
) -> tuple[int, int, int]:
    """Write the windows over the slices of one group from ``at`` on.

    Returns how many there are, the lowest and the highest.
    """
    range_, slide, phase, least, most = asked[2], asked[3], asked[4], asked[5], asked[6]
    lowest = max((starts[begin] - phase) // slide + 1, least)
    highest = min((starts[end - 1] + range_ - phase) // slide, most)
    count = 0
    first, last = 2**62, -(2**62)
    low = high = begin
    following = lowest
    k = lowest
    sparse = highest - lowest > _SPARSE * (end - begin) + _DENSE
    halving = end - begin > _DENSE * (highest - lowest + 1)
    while k <= highest:
        bound = phase + k * slide
        if halving:
            low = begin + np.searchsorted(starts[begin:end], bound - range_)
            high = begin + np.searchsorted(starts[begin:end], bound)
        else:
            while low < end and starts[low] < bound - range_:
                low += 1
            while high < end and starts[high] < bound:
                high += 1
        if high > low:
            windows[at], lows[at], highs[at] = k, low, high
            at += 1
            count += 1
            first, last = min(first, k), max(last, k)
        elif sparse and low < end:
            # Nothing until the next slice: on to the first window that covers it.
            following = (starts[low] - phase) // slide + 1
        k = max(k + 1, following)
    return count, first, last


@compiled
def window_order(windows: Ints, offsets: Ints, bounds: Ints, order: Ints) -> None:
    """Write what sorts the windows of each query by number, equal ones as they stand.

    The windows of query q lie between ``offsets[q]`` and ``offsets[q + 1]``; ``bounds[q]`` holds
    the lowest and the highest of them. Counting suits few different windows, as there are.
    """
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


@compiled
def window_bounds(windows: Ints, offsets: Ints, asked: Ints, starts: Ints, ends: Ints) -> None:
    """Write the starts and ends of windows; those of query q lie from ``offsets[q]`` on.

    A row of ``asked`` begins with the range, the slide and the phase of a query.
    """
    for query in range(offsets.size - 1):
        range_, slide, phase = asked[query, 0], asked[query, 1], asked[query, 2]
        for i in range(offsets[query], offsets[query + 1]):
            end = phase + windows[i] * slide
            starts[i], ends[i] = end - range_, end
