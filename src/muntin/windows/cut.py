"""Cutting rows into slices; imports numba, so `muntin.windows` itself does not import this."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from muntin._compiled import compiled
from muntin.errors import DataError, WindowError
from muntin.windows.edges import MAX_EDGES, TIME_LIMIT, EdgeClass, edges_between


def slice_starts(
    times: npt.NDArray[np.int64], classes: Sequence[EdgeClass] | npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """The start of the slice each time lies in: the largest edge of all classes at it or before.

    Times in order take a nanosecond or two each, whatever the gaps between them. Others are looked
    up among the edges they span, or sorted first where these edges outnumber them. Fewer classes
    are faster, see `reduce_classes`. Times must lie within 2**62 of zero.

    >>> slice_starts(np.array([-1, 0, 11, 12, 14, 15]), [(15, 0), (15, 12)]).tolist()
    [-3, 0, 0, 12, 12, 15]
    """
    times = np.ascontiguousarray(times, dtype=np.int64)
    table = np.asarray(classes, dtype=np.int64).reshape(-1, 2)
    _check_classes(table)
    _check_times(times)
    starts = np.empty_like(times)
    if walk_slices(times, table, starts):
        return starts
    first, last = times.min(), times.max()
    if np.sum((last - first) // table[:, 0] + 1.0) <= min(len(times), MAX_EDGES):
        search_slices(times, _edges_around(first, last, table), starts)
        return starts
    order = np.argsort(times, kind="stable")
    in_order = np.empty_like(times)
    walk_slices(times[order], table, in_order)
    starts[order] = in_order
    return starts


def slice_numbers(
    times: npt.NDArray[np.int64], classes: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None:
    """For times in order the number of each one's slice, and where these slices start.

    None where times descend or lie out of range: see `slice_starts`.

    >>> classes = np.array([(15, 0), (15, 12)])
    >>> numbers, starts = slice_numbers(np.array([-1, 0, 11, 12, 31]), classes)
    >>> numbers.tolist(), starts.tolist()
    ([0, 1, 1, 2, 3], [-3, 0, 12, 30])
    """
    if not len(times) or times[0] <= -TIME_LIMIT or times[-1] >= TIME_LIMIT:
        return None
    _check_classes(classes)
    numbers = np.empty_like(times)
    starts = number_slices(times, classes, numbers, TIME_LIMIT)
    return (numbers, starts) if starts.size else None


def _edges_around(
    first: np.int64, last: np.int64, table: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """The edges in (first, last], and the one before them where the slice of `first` starts."""
    start = np.empty(1, dtype=np.int64)
    walk_slices(np.array([first]), table, start)
    rest = edges_between(
        [(int(period), int(phase)) for period, phase in table], int(first) + 1, int(last) + 1
    )
    return np.concatenate([start, rest])


def _check_times(times: npt.NDArray[np.int64]) -> None:
    if not len(times):
        return
    for extreme in (int(times.min()), int(times.max())):
        if abs(extreme) >= TIME_LIMIT:
            raise DataError(
                f"time {extreme} is out of range", hint="times lie within 2**62 of the epoch"
            )


def _check_classes(table: npt.NDArray[np.int64]) -> None:
    if not len(table):
        raise WindowError("there are no edges to cut by", hint="pass at least one edge class")
    periods, phases = table[:, 0], table[:, 1]
    if not np.all((periods > 0) & (periods < TIME_LIMIT) & (phases >= 0) & (phases < periods)):
        raise WindowError(
            f"edge classes {table.tolist()} are not (period, phase) with 0 <= phase < period",
            hint="take them from Window.edge_classes or SliceManager.classes",
        )


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
