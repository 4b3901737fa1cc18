"""Slices of several trees, put together from combined ones that rows went into once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.aggregates.columns.by_part import empty
from muntin.engine.rows.dictionary import pairs
from muntin.engine.rows.entries import Cut, Entries
from muntin.engine.slices.partials import PartialBatch
from muntin.engine.slices.recoding import moved_codes
from muntin.plan.nodes import Partials
from muntin.plan.selection import Cells
from muntin.windows.cut import slice_starts


def fed(
    node: Partials,
    classes: Ints,
    combined: Partials,
    entries: Entries,
    batch: PartialBatch,
    cut: Cut,
) -> PartialBatch:
    """Partials of a tree with some of the edges of combined ones, from their entries.

    ``batch`` holds what was aggregated for ``entries``, whose slices are numbered by ``cut``.
    """
    starts, slices = np.unique(slice_starts(cut.starts, classes), return_inverse=True)
    codes = _codes(node, combined, entries)
    where = None if codes is None else codes >= 0
    count = int(entries.groups.max(initial=0)) + 1
    ids, outer, owners = pairs(slices[entries.slices], starts.size, entries.groups, count, where)
    kept = None
    if codes is not None and node.selection.coded:
        distinct, numbers = np.unique(codes, return_inverse=True)
        ids, inner, places = pairs(ids, outer.size, numbers, distinct.size, where)
        outer, owners, kept = outer[inner], owners[inner], distinct[places]
    # Of the entries that fall together any one has their key.
    firsts = np.zeros(outer.size, np.int64)
    firsts[ids[ids >= 0]] = np.flatnonzero(ids >= 0)
    keys = tuple(key.take(pa.array(firsts)) for key in batch.keys)
    columns = []
    for each in node.accumulators:
        column = empty(each.part, outer.size)
        column.merge(ids, batch.columns[combined.accumulators.index(each)])
        columns.append(column)
    return PartialBatch(starts[outer], keys, kept, tuple(columns))


def _codes(node: Partials, combined: Partials, entries: Entries) -> Ints | None:
    """The cell of each entry in the tree's own space, -1 where it wants none of its rows."""
    old, new = combined.selection, node.selection
    if not isinstance(old, Cells) or not isinstance(new, Cells):
        return None
    if entries.codes is None:
        return np.full(entries.slices.size, 0 if new.shape.truth(()).any() else -1)
    codes = moved_codes(entries.codes, old.shape, new.shape)
    distinct, numbers = np.unique(codes, return_inverse=True)
    wanted = np.any(new.shape.truth(new.shape.ranks_of(distinct)), axis=1)
    return np.where(wanted[numbers], codes, -1)
