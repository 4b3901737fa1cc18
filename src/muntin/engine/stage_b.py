"""Stage B: partials of all batches become window answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates.column import PartColumn
from muntin.aggregates.columns import empty
from muntin.engine.encoding import encode
from muntin.engine.grouping import group
from muntin.engine.kernels import count_windows, list_windows
from muntin.engine.ordering import sort_order
from muntin.engine.stage_a import PartialBatch
from muntin.errors import DataError
from muntin.plan.nodes import Final, Partials
from muntin.windows import Window

Ints = npt.NDArray[np.int64]

# A result of more rows than this is a mistake in the window, not a wish.
MAX_RESULT_ROWS = 2**31


@dataclass(frozen=True)
class SliceTable:
    """All partials of one node: one row per group and slice, sorted by group, then slice."""

    groups: Ints
    starts: Ints
    keys: tuple[pa.Array, ...]
    columns: tuple[PartColumn, ...]


@dataclass(frozen=True)
class WindowTable:
    """The windows of one query: which slices each covers, in order of group, then window."""

    windows: Ints
    groups: Ints
    lows: Ints
    highs: Ints


def merge(node: Partials, batches: Sequence[PartialBatch]) -> SliceTable:
    """Bring the partials of many batches together; groups are numbered in key order."""
    starts = np.concatenate([batch.starts for batch in batches])
    columns = [
        pa.chunked_array([batch.keys[i] for batch in batches], type=bound.type).combine_chunks()
        for i, bound in enumerate(node.grouping)
    ]
    groups = group([encode(column) for column in columns], starts.size)
    rank, keys = _sort_keys(groups.keys, groups.count)
    codes = rank[groups.codes]
    order = np.lexsort((starts, codes))
    fresh = np.ones(order.size, np.bool_)
    fresh[1:] = (np.diff(codes[order]) != 0) | (np.diff(starts[order]) != 0)
    cells = np.empty(order.size, np.int64)
    cells[order] = np.cumsum(fresh) - 1
    kept = order[fresh]
    merged = _merge_columns(node, batches, cells, kept)
    return SliceTable(codes[kept], starts[kept], keys, merged)


def _sort_keys(keys: tuple[pa.Array, ...], count: int) -> tuple[Ints, tuple[pa.Array, ...]]:
    if not keys:
        return np.zeros(count, np.int64), ()
    order = sort_order(keys)
    rank = np.empty(count, np.int64)
    rank[order.to_numpy()] = np.arange(count)
    return rank, tuple(key.take(order) for key in keys)


def _merge_columns(
    node: Partials, batches: Sequence[PartialBatch], cells: Ints, kept: Ints
) -> tuple[PartColumn, ...]:
    if len(batches) == 1:
        return tuple(column.take(kept) for column in batches[0].columns)
    merged = []
    for i, accumulator in enumerate(node.accumulators):
        column, at = empty(accumulator.part, kept.size), 0
        for batch in batches:
            column.merge(cells[at : at + batch.starts.size], batch.columns[i])
            at += batch.starts.size
        merged.append(column)
    return tuple(merged)


def windows_of(table: SliceTable, final: Final) -> WindowTable:
    """Every window and group of a query that holds a row, and the slices it covers."""
    window = final.window
    assert window.slide is not None
    shape = (table.groups, table.starts, window.range, window.slide, window.phase)
    total, lowest, highest = count_windows(*shape)
    wanted = highest - lowest + 1 if final.query.emit_empty and total else total
    if wanted > MAX_RESULT_ROWS:
        raise DataError(
            f"query {final.name} would give {wanted:,} rows",
            hint="use a larger SLIDE, or leave out EMIT EMPTY",
        )
    windows, groups, lows, highs = list_windows(*shape, total)
    if final.query.emit_empty and total:
        return _fill_gaps(windows, lows, highs, lowest, highest)
    return WindowTable(windows, groups, lows, highs)


def _fill_gaps(windows: Ints, lows: Ints, highs: Ints, lowest: int, highest: int) -> WindowTable:
    every = np.arange(lowest, highest + 1)
    # A window in a gap covers no slice: its run is empty, at the next slice that follows.
    at = np.searchsorted(windows, every)
    held = windows[at] == every
    ends = np.where(held, highs[at], lows[at])
    return WindowTable(every, np.zeros(every.size, np.int64), lows[at], ends)


def bounds(window: Window, windows: Ints) -> tuple[Ints, Ints]:
    """Start and end of windows given by index."""
    assert window.slide is not None
    ends = window.phase + windows * window.slide
    return ends - window.range, ends
