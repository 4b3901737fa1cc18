"""The partials that are kept between batches: one store per set of partials of the plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates.column import PartColumn
from muntin.aggregates.columns import empty
from muntin.engine.encoding import encode
from muntin.engine.grouping import group
from muntin.engine.ordering import sort_order
from muntin.engine.stage_a import PartialBatch
from muntin.plan.nodes import Partials

Ints = npt.NDArray[np.int64]

# Before every tick.
BEGINNING = -(2**62)
# So many batches wait before they are merged: a merge costs as much as what it has merged before.
_PENDING = 32


@dataclass(frozen=True)
class SliceTable:
    """Partials of one node: one row per group and slice, sorted by group, then slice."""

    groups: Ints
    starts: Ints
    keys: tuple[pa.Array, ...]
    columns: tuple[PartColumn, ...]

    def since(self, start: int) -> SliceTable:
        """The rows of slices that start at ``start`` or later."""
        kept = np.flatnonzero(self.starts >= start)
        if kept.size == self.starts.size:
            return self
        columns = tuple(column.take(kept) for column in self.columns)
        return SliceTable(self.groups[kept], self.starts[kept], self.keys, columns)

    def as_batch(self) -> PartialBatch:
        """The same partials with a key a row."""
        keys = tuple(key.take(pa.array(self.groups)) for key in self.keys)
        return PartialBatch(self.starts, keys, self.columns)


class SliceStore:
    """Keeps the partials of one node, and forgets slices that no window will cover again.

    ``complete`` says for each accumulator from which tick on it holds every row: one that joined
    a running stream lacks the rows before. Slices before ``evicted`` are forgotten.
    """

    def __init__(self, node: Partials, since: int = BEGINNING) -> None:
        self.node = node
        self.evicted = since
        self.complete = [since] * len(node.accumulators)
        self._pending: list[PartialBatch] = []
        self._merged = merge(node, [_nothing(node)])

    def add(self, batch: PartialBatch) -> None:
        """Take in the partials of a batch."""
        self._pending.append(batch)
        if len(self._pending) > _PENDING:
            self.table()

    def table(self) -> SliceTable:
        """All partials, each slice and group once."""
        if self._pending:
            before = [self._merged.as_batch()] if self._merged.starts.size else []
            self._merged = merge(self.node, [*before, *self._pending])
            self._pending = []
        return self._merged

    def evict(self, before: int) -> None:
        """Forget slices that start before a time, and groups that have no other."""
        self.evicted = max(self.evicted, before)
        kept = self.table().since(before)
        if kept is not self._merged:
            self._merged = merge(self.node, [kept.as_batch()])

    def adapted(self, node: Partials, since: int) -> SliceStore:
        """The same slices for a node with other accumulators; new ones are complete ``since``."""
        table = self.table()
        places = {each: i for i, each in enumerate(self.node.accumulators)}
        columns = tuple(
            table.columns[places[each]] if each in places else empty(each.part, table.starts.size)
            for each in node.accumulators
        )
        store = SliceStore(node)
        store.evicted = self.evicted
        store.complete = [
            self.complete[places[each]] if each in places else since for each in node.accumulators
        ]
        store._merged = replace(table, columns=columns)
        return store

    @property
    def slices(self) -> int:
        """How many different slices hold rows."""
        return int(np.unique(self.table().starts).size)

    @property
    def nbytes(self) -> int:
        """Bytes of all partials and keys."""
        table = self.table()
        columns = sum(column.nbytes for column in table.columns)
        keys = sum(int(key.nbytes) for key in table.keys)
        return table.starts.nbytes + table.groups.nbytes + keys + columns


def _nothing(node: Partials) -> PartialBatch:
    keys = tuple(pa.array([], bound.type) for bound in node.grouping)
    columns = tuple(empty(accumulator.part, 0) for accumulator in node.accumulators)
    return PartialBatch(np.empty(0, np.int64), keys, columns)


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
