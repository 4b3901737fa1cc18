"""Stage B: kept partials become the answers of windows that are due."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates.column import PartColumn
from muntin.engine.families import Family
from muntin.engine.partials import SliceTable
from muntin.engine.rollup import RolledUp
from muntin.engine.window_kernels import count_windows, list_windows, window_order
from muntin.errors import DataError
from muntin.plan.nodes import Final, Partials
from muntin.plan.selection import Cells

Ints = npt.NDArray[np.int64]

# A result of more rows than this is a mistake in the window, not a wish; empty windows are all
# made up, so fewer of them are.
MAX_RESULT_ROWS = 2**28
MAX_FILLED_ROWS = 2**24
# Counting windows costs as much as the span of their numbers.
_MOST_COUNTED = 16


@dataclass(frozen=True)
class WindowTable:
    """Windows of a family: which slices each covers; those of query q from ``offsets[q]`` on."""

    windows: Ints
    groups: Ints
    lows: Ints
    highs: Ints
    offsets: Ints
    order: Ints | None = None


@dataclass(frozen=True)
class Answer:
    """What a family answers: window numbers, and columns of groups and lowered aggregates.

    Rows of query q lie between ``offsets[q]`` and ``offsets[q + 1]``, by window, then group.
    ``failed`` says for each row how many of its aggregates failed; None if none did.
    """

    windows: Ints
    lowered: pa.RecordBatch
    offsets: Ints
    failed: Ints | None


class StageB:
    """Answers families of queries over the slices of one set of partials.

    ``steps`` counts the aggregations. Cells are counted as they are worked off: a step of a
    running total is one, what is read off it two. For the strategies of the papers each partial
    that goes into a window or a predicate is one, as the papers count.
    """

    def __init__(self, node: Partials, table: SliceTable) -> None:
        self.node = node
        self.steps = 0
        self.table = table

    def answer(self, family: Family) -> Answer:
        """The windows that are due of all queries in a family."""
        members = family.members()
        rolled = RolledUp(self.table, self.node.selection, members)
        places = {member: place for place, member in enumerate(members)}
        source = family.source(rolled, places)
        windows = windows_of(source.groups, source.starts, family, source.segments)
        self.steps += rolled.steps + self._reads(source.starts, windows)
        columns = [key.take(pa.array(windows.groups)) for key in source.keys]
        failed: Ints | None = None
        slid: dict[tuple[int, int], PartColumn] = {}
        for number, lowering in enumerate(family.lowerings):
            parts = []
            for index in lowering.accumulators:
                key = (index, source.filters[number])
                if key not in slid:
                    column = source.column(index, number)
                    slid[key] = column.slide(windows.lows, windows.highs)
                parts.append(slid[key])
            lowered = lowering.aggregate.lower(parts)
            columns.append(lowered.values)
            if lowered.errors is not None:
                flags = lowered.errors.to_numpy(zero_copy_only=False).astype(np.int64)
                failed = flags if failed is None else failed + flags
        batch = pa.RecordBatch.from_arrays(columns, schema=family.schema)
        if windows.order is None:
            return Answer(windows.windows, batch, windows.offsets, failed)
        failed = failed if failed is None else failed[windows.order]
        ordered = batch.take(pa.array(windows.order))
        return Answer(windows.windows[windows.order], ordered, windows.offsets, failed)

    def _reads(self, starts: Ints, windows: WindowTable) -> int:
        if isinstance(self.node.selection, Cells):
            return int(starts.size + 2 * windows.windows.size)
        covered = windows.highs - windows.lows
        return int(covered[covered > 1].sum())


def windows_of(groups: Ints, starts: Ints, family: Family, segments: Ints) -> WindowTable:
    """Every due window and group of each query that holds a row, and the slices it covers."""
    rows = np.concatenate((segments, family.windows), axis=1)
    found = count_windows(groups, starts, rows)
    if family.finals[0].query.emit_empty and found[0, 0]:
        return _filled(groups, starts, rows, found, family)
    most = int(np.argmax(found[:, 0]))
    _check_size(family.finals[most], int(found[most, 0]), MAX_RESULT_ROWS)
    offsets = np.concatenate(([0], np.cumsum(found[:, 0])))
    listed = list_windows(groups, starts, rows, int(offsets[-1]))
    if not groups.size or groups.max() == 0:
        return WindowTable(*listed, offsets)
    return WindowTable(*listed, offsets, _order(listed[0], offsets, found[:, 1:]))


def _order(windows: Ints, offsets: Ints, bounds: Ints) -> Ints:
    spans = np.where(np.diff(offsets) > 0, bounds[:, 1] - bounds[:, 0], 0)
    if spans.sum() <= _MOST_COUNTED * (windows.size + 1024):
        order: Ints = window_order(windows, offsets, bounds)
        return order
    queries = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    return np.lexsort((windows, queries))


def _filled(groups: Ints, starts: Ints, rows: Ints, found: Ints, family: Family) -> WindowTable:
    """The windows of one ungrouped query from the first to the last, those without rows too."""
    total, lowest, highest = (int(number) for number in found[0])
    if family.gap is not None:
        lowest = min(lowest, family.gap)
    _check_size(family.finals[0], highest - lowest + 1, MAX_FILLED_ROWS)
    windows, _, lows, highs = list_windows(groups, starts, rows, total)
    every = np.arange(lowest, highest + 1)
    # A window in a gap covers no slice: its run is empty, at the next slice that follows.
    at = np.searchsorted(windows, every)
    held = windows[at] == every
    ends = np.where(held, highs[at], lows[at])
    owners = np.zeros(every.size, np.int64)
    return WindowTable(every, owners, lows[at], ends, np.array([0, every.size]))


def _check_size(final: Final, rows: int, most: int) -> None:
    if rows > most:
        empty = ", or leave out EMIT EMPTY" if final.query.emit_empty else ""
        raise DataError(
            f"query {final.name} would give {rows:,} rows", hint=f"use a larger SLIDE{empty}"
        )
