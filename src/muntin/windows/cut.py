"""Cutting rows into slices; imports numba, so `muntin.windows` itself does not import this."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from muntin.errors import DataError, WindowError
from muntin.windows.edges import MAX_EDGES, TIME_LIMIT, EdgeClass, edges_between
from muntin.windows.kernels import number_slices, search_slices, walk_slices


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
