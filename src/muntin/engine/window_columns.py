"""Results with the bounds of their windows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.plan.timeline import Timeline
from muntin.queries import BOUNDS

Ints = npt.NDArray[np.int64]

# Runs of this length, on average, are chunks of their own; shorter ones are written out.
_LONG = 64


class Shown:
    """Columns of many queries; run r, the rows from ``rows[r]`` on, is of one window.

    >>> starts, rows, timeline = np.array([5, 9]), np.array([0, 2, 3]), Timeline("t", pa.int64())
    >>> shown = Shown(starts, starts + 4, rows, timeline, [pa.array([1, 2, 3])], ["n"])
    >>> shown.between(0, 1).to_pydict()
    {'window_start': [5, 5], 'window_end': [9, 9], 'n': [1, 2]}
    """

    def __init__(
        self,
        starts: Ints,
        ends: Ints,
        rows: Ints,
        timeline: Timeline,
        columns: Sequence[pa.Array],
        names: Sequence[str],
    ) -> None:
        counts = np.diff(rows)
        self._rows = rows.tolist()
        self._bounds: list[_Repeated] = []
        if rows[-1] <= _LONG * starts.size:
            written = [timeline.from_ticks(np.repeat(ticks, counts)) for ticks in (starts, ends)]
            columns, names = [*written, *columns], [*BOUNDS, *names]
        else:
            self._bounds = [_Repeated(ticks, counts, timeline) for ticks in (starts, ends)]
        self._table = pa.Table.from_arrays(columns, list(names))

    def between(self, first: int, last: int) -> pa.Table:
        """The rows of the runs from ``first`` to ``last - 1``."""
        own = self._table.slice(self._rows[first], self._rows[last] - self._rows[first])
        if not self._bounds:
            return own
        bounds = [each.between(first, last) for each in self._bounds]
        return pa.Table.from_arrays([*bounds, *own.columns], [*BOUNDS, *own.column_names])


class _Repeated:
    """A tick for each run, as often as the run has rows.

    The rows of all runs with the same tick, of whatever query, are the same memory: as many as
    the longest of them has. Each run is a chunk.
    """

    def __init__(self, ticks: Ints, counts: Ints, timeline: Timeline) -> None:
        found, places = np.unique(ticks, return_inverse=True)
        longest = np.zeros(found.size, np.int64)
        np.maximum.at(longest, places, counts)
        self._values = timeline.from_ticks(np.repeat(found, longest))
        self._begins = (np.cumsum(longest) - longest)[places].tolist()
        self._counts = counts.tolist()

    def between(self, first: int, last: int) -> pa.ChunkedArray:
        begins, counts = self._begins[first:last], self._counts[first:last]
        chunks = [self._values.slice(*each) for each in zip(begins, counts, strict=True)]
        return pa.chunked_array(chunks, self._values.type)
