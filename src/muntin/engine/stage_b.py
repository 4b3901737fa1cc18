"""Stage B: kept partials become the answers of windows that are due."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates.column import PartColumn
from muntin.engine.kernels import count_windows, list_windows
from muntin.engine.store import SliceTable
from muntin.errors import DataError
from muntin.plan.nodes import Final
from muntin.windows import Window

Ints = npt.NDArray[np.int64]

# A result of more rows than this is a mistake in the window, not a wish; empty windows are all
# made up, so fewer of them are.
MAX_RESULT_ROWS = 2**28
MAX_FILLED_ROWS = 2**24
# Window numbers lie between these: ticks do, and a slide is at least one of them.
FIRST_WINDOW, LAST_WINDOW = -(2**62), 2**62


@dataclass(frozen=True)
class Due:
    """The windows of a query to answer now: numbers ``first`` to ``last``.

    ``gap`` is the first window of a gap that EMIT EMPTY has yet to fill, if there may be one.
    """

    first: int = FIRST_WINDOW
    last: int = LAST_WINDOW
    gap: int | None = None


@dataclass(frozen=True)
class WindowTable:
    """Windows of one query: which slices each covers, in order of group, then window."""

    windows: Ints
    groups: Ints
    lows: Ints
    highs: Ints


@dataclass(frozen=True)
class Answer:
    """What one query answers: window numbers, and columns of groups and lowered aggregates."""

    windows: Ints
    lowered: pa.RecordBatch
    failed: int


class StageB:
    """Answers queries over one table; queries that agree on windows share the assembling."""

    def __init__(self, table: SliceTable) -> None:
        self.table = table
        self._windows: dict[tuple[Window, bool, Due], WindowTable] = {}
        self._slid: dict[tuple[Window, bool, Due, int], PartColumn] = {}

    def answer(self, final: Final, due: Due = Due()) -> Answer:  # noqa: B008 - it is frozen
        """The windows of a query that are due, by window, then group."""
        key = (final.window, final.query.emit_empty, due)
        if key not in self._windows:
            self._windows[key] = windows_of(self.table, final, due)
        windows = self._windows[key]
        columns = [each.take(pa.array(windows.groups)) for each in self.table.keys]
        failed = 0
        for lowering in final.lowerings:
            parts = [self._slide(key, windows, index) for index in lowering.accumulators]
            lowered = lowering.aggregate.lower(parts)
            failed += 0 if lowered.errors is None else lowered.errors.true_count
            columns.append(lowered.values)
        batch = pa.RecordBatch.from_arrays(columns, schema=final.schema)
        if not self.table.keys:
            return Answer(windows.windows, batch, failed)
        order = np.lexsort((windows.groups, windows.windows))
        return Answer(windows.windows[order], batch.take(pa.array(order)), failed)

    def _slide(self, key: tuple[Window, bool, Due], windows: WindowTable, index: int) -> PartColumn:
        if (*key, index) not in self._slid:
            slid = self.table.columns[index].slide(windows.lows, windows.highs)
            self._slid[*key, index] = slid
        return self._slid[*key, index]


def windows_of(table: SliceTable, final: Final, due: Due) -> WindowTable:
    """Every due window and group of a query that holds a row, and the slices it covers."""
    window = final.window
    shape = (table.groups, table.starts, window.range, window.period, window.phase)
    total, lowest, highest = count_windows(*shape, due.first, due.last)
    filled = final.query.emit_empty and total > 0
    if filled and due.gap is not None:
        lowest = min(lowest, due.gap)
    wanted = highest - lowest + 1 if filled else total
    if wanted > (MAX_FILLED_ROWS if filled else MAX_RESULT_ROWS):
        raise DataError(
            f"query {final.name} would give {wanted:,} rows",
            hint="use a larger SLIDE" + (", or leave out EMIT EMPTY" if filled else ""),
        )
    windows, groups, lows, highs = list_windows(*shape, due.first, due.last, total)
    if filled:
        return _fill_gaps(windows, lows, highs, lowest, highest)
    return WindowTable(windows, groups, lows, highs)


def _fill_gaps(windows: Ints, lows: Ints, highs: Ints, lowest: int, highest: int) -> WindowTable:
    every = np.arange(lowest, highest + 1)
    # A window in a gap covers no slice: its run is empty, at the next slice that follows.
    at = np.searchsorted(windows, every)
    held = windows[at] == every
    ends = np.where(held, highs[at], lows[at])
    return WindowTable(every, np.zeros(every.size, np.int64), lows[at], ends)
