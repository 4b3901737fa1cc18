"""Compiled loops that cut rows into slices."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.compiled import compiled

Int64s = npt.NDArray[np.int64]


@compiled
def walk_slices(times: Int64s, classes: Int64s, starts: Int64s) -> bool:
    """Writes the start of each time's slice; False as soon as times turn out to descend.

    Keeps the next edge of each class in a heap. A row inside the current slice costs two
    comparisons; leaving it costs one step of the heap per class with an edge in between, however
    many edges lie there, because a class jumps over a gap by one division.
    """
    if times.shape[0] == 0:
        return True
    nexts = np.empty(classes.shape[0], np.int64)
    periods = classes[:, 0].copy()
    start = _seek(times[0], classes, nexts)
    for i in range(nexts.shape[0] // 2 - 1, -1, -1):
        _sift_down(nexts, periods, i)
    end, previous = nexts[0], times[0]
    for i in range(times.shape[0]):
        t = times[i]
        if t < previous:
            return False
        previous = t
        if t >= end:
            start = _cross(t, start, nexts, periods)
            end = nexts[0]
        starts[i] = start
    return True


@compiled
def number_slices(times: Int64s, classes: Int64s, numbers: Int64s, limit: int) -> Int64s:
    """Writes the number of each time's slice, and returns where the slices start, in order.

    Returns nothing where times descend or reach the limit. See `walk_slices`.
    """
    nothing = np.empty(0, np.int64)
    nexts = np.empty(classes.shape[0], np.int64)
    periods = classes[:, 0].copy()
    starts = np.empty(times.shape[0], np.int64)
    start = _seek(times[0], classes, nexts)
    for i in range(nexts.shape[0] // 2 - 1, -1, -1):
        _sift_down(nexts, periods, i)
    count, row, previous = 0, 0, times[0]
    while row < times.shape[0]:
        starts[count] = start
        end = nexts[0]
        # The loop over the rows of one slice is short enough to stay in registers.
        while row < times.shape[0] and previous <= times[row] < end:
            previous = times[row]
            numbers[row] = count
            row += 1
        if row < times.shape[0]:
            if not previous <= times[row] < limit:
                return nothing
            start = _cross(times[row], start, nexts, periods)
            count += 1
    return starts[: count + 1].copy()


@compiled
def search_slices(times: Int64s, edges: Int64s, starts: Int64s) -> None:
    """Writes the largest of the sorted edges at each time or before; none lies before the first.

    Neighbouring rows mostly share a slice, so the last one found is tried before searching.
    """
    start, end = edges[0], edges[0]
    for i in range(times.shape[0]):
        t = times[i]
        if not start <= t < end:
            found = np.searchsorted(edges, t, side="right")
            start = edges[found - 1]
            end = edges[found] if found < edges.shape[0] else np.iinfo(np.int64).max
        starts[i] = start


@compiled
def _seek(t: int, classes: Int64s, nexts: Int64s) -> int:
    """Sets the next edge after t of each class; returns the last edge at t or before."""
    nearest = classes[0, 0]
    for i in range(classes.shape[0]):
        # The remainder first: no intermediate value then leaves 64 bits.
        past = (t - classes[i, 1]) % classes[i, 0]
        nearest = min(nearest, past)
        nexts[i] = t - past + classes[i, 0]
    start: int = t - nearest
    return start


@compiled
def _cross(t: int, start: int, nexts: Int64s, periods: Int64s) -> int:
    """Moves every class past t; returns the last edge at t or before."""
    while nexts[0] <= t:
        edge, period = nexts[0], periods[0]
        if t - edge >= period:
            edge = t - (t - edge) % period
        start = max(start, edge)
        nexts[0] = edge + period
        _sift_down(nexts, periods, 0)
    return start


@compiled
def _sift_down(nexts: Int64s, periods: Int64s, i: int) -> None:
    edge, period, size = nexts[i], periods[i], nexts.shape[0]
    child = 2 * i + 1
    while child < size:
        if child + 1 < size and nexts[child + 1] < nexts[child]:
            child += 1
        if nexts[child] >= edge:
            break
        nexts[i], periods[i] = nexts[child], periods[child]
        i, child = child, 2 * child + 1
    nexts[i], periods[i] = edge, period
