"""Partials as tables: entries by slice, group and code, brought together and rolled up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from muntin._typing import Bitmaps, Ints
from muntin.aggregates.algebra import Part
from muntin.aggregates.columns.by_part import empty
from muntin.aggregates.columns.column import PartColumn
from muntin.engine.answers.group_keys import sort_order
from muntin.engine.rows.dictionary import encode, group
from muntin.engine.rows.entries import ascending
from muntin.engine.slices.radix_sort import sort_entries, sort_in_time
from muntin.plan.nodes import Partials
from muntin.plan.selection import Signatures


@dataclass(frozen=True)
class PartialBatch:
    """Partials of one batch: entry ``i`` is of slice ``starts[i]`` and group ``keys[..][i]``.

    ``codes`` tell rows of different predicates apart where the selection does so: the key of a
    cell, or a place in ``signatures``. Batches of one ``part`` hold the groups of one range of
    keys, and no batch of another part has one of these.
    """

    starts: Ints
    keys: tuple[pa.Array, ...]
    codes: Ints | None
    columns: tuple[PartColumn, ...]
    signatures: Bitmaps | None = None
    part: int | None = None

    def take(self, rows: Ints) -> PartialBatch:
        """Some of the entries, in another order."""
        return replace(
            self,
            starts=self.starts[rows],
            keys=tuple(key.take(pa.array(rows)) for key in self.keys),
            codes=None if self.codes is None else self.codes[rows],
            columns=tuple(column.take(rows) for column in self.columns),
        )

    def between(self, low: int, high: int) -> PartialBatch:
        """The entries of slices that start at ``low`` or later, and before ``high``."""
        kept = np.flatnonzero((self.starts >= low) & (self.starts < high))
        return self if kept.size == self.starts.size else self.take(kept)


@dataclass(frozen=True)
class SliceTable:
    """Partials of one node: an entry per group, slice and code, sorted in that order."""

    groups: Ints
    starts: Ints
    codes: Ints | None
    keys: tuple[pa.Array, ...]
    columns: tuple[PartColumn, ...]
    signatures: Bitmaps | None = None

    def since(self, start: int) -> SliceTable:
        """The entries of slices that start at ``start`` or later."""
        kept = np.flatnonzero(self.starts >= start)
        if kept.size == self.starts.size:
            return self
        columns = tuple(column.take(kept) for column in self.columns)
        codes = None if self.codes is None else self.codes[kept]
        return SliceTable(
            self.groups[kept], self.starts[kept], codes, self.keys, columns, self.signatures
        )

    def as_batch(self) -> PartialBatch:
        """The same partials with a key an entry."""
        keys = tuple(key.take(pa.array(self.groups)) for key in self.keys)
        return PartialBatch(self.starts, keys, self.codes, self.columns, self.signatures)


def nothing(node: Partials) -> PartialBatch:
    """No entries."""
    none = np.empty(0, np.int64)
    keys = tuple(pa.array([], bound.type) for bound in node.grouping)
    columns = tuple(empty(accumulator.part, 0) for accumulator in node.accumulators)
    signatures = None
    if isinstance(node.selection, Signatures):
        signatures = np.zeros((0, signature_bytes(node.selection)), np.uint8)
    return PartialBatch(none, keys, none if node.selection.coded else None, columns, signatures)


def signature_bytes(selection: Signatures) -> int:
    """The bytes of one bitmap: whole words of 64 bits."""
    return -(-selection.members // 64) * 8


def merge(node: Partials, batches: Sequence[PartialBatch]) -> SliceTable:
    """Bring the partials of many batches together; groups are numbered in key order."""
    parts = [accumulator.part for accumulator in node.accumulators]
    return merge_batches(batches, [bound.type for bound in node.grouping], parts)


def coarser(node: Partials, finer: Partials, batch: PartialBatch) -> PartialBatch:
    """Partials of a finer grouping, with the same selection, rolled up."""
    keys = tuple(batch.keys[finer.grouping.index(group)] for group in node.grouping)
    return merge(node, [replace(narrower(node, finer, batch), keys=keys)]).as_batch()


def narrower(node: Partials, wider: Partials, batch: PartialBatch) -> PartialBatch:
    """Partials with more accumulators and the same selection, without those that are not kept."""
    places = [wider.place_of(each) for each in node.accumulators]
    return replace(batch, columns=tuple(batch.columns[place] for place in places))


def merge_batches(
    batches: Sequence[PartialBatch], types: Sequence[pa.DataType], parts: Sequence[Part]
) -> SliceTable:
    """One table of many batches with keys of the given types."""
    starts = np.concatenate([batch.starts for batch in batches])
    if not types:
        return _merge_ungrouped(batches, starts, parts)
    columns = [
        pa.chunked_array([batch.keys[i] for batch in batches], type=kind).combine_chunks()
        for i, kind in enumerate(types)
    ]
    found = group([encode(column) for column in columns], starts.size)
    rank, keys = _sort_keys(found.keys, found.count)
    groups = rank[found.codes]
    codes, signatures = _unite_codes(batches)
    known = np.empty(0, np.int64) if codes is None else codes
    if len(batches) == 1 and ascending(groups, starts, known):
        return SliceTable(groups, starts, codes, keys, batches[0].columns, signatures)
    numbers, kept = sort_entries(groups, starts, known)
    merged = _merge_columns(parts, batches, numbers, kept)
    return SliceTable(
        groups[kept], starts[kept], None if codes is None else codes[kept], keys, merged, signatures
    )


def _merge_ungrouped(
    batches: Sequence[PartialBatch], starts: Ints, parts: Sequence[Part]
) -> SliceTable:
    """The same where there are no keys: groups are all zero, and nobody looks at them."""
    codes, signatures = _unite_codes(batches)
    known = np.empty(0, np.int64) if codes is None else codes
    groups = np.zeros(starts.size, np.int64)
    if len(batches) == 1 and ascending(groups, starts, known):
        return SliceTable(groups, starts, codes, (), batches[0].columns, signatures)
    numbers, kept = sort_in_time(starts, known)
    merged = _merge_columns(parts, batches, numbers, kept)
    return SliceTable(
        np.zeros(kept.size, np.int64), starts[kept], None if codes is None else codes[kept],
        (), merged, signatures,
    )  # fmt: skip


def _unite_codes(batches: Sequence[PartialBatch]) -> tuple[Ints | None, Bitmaps | None]:
    """The codes of all batches; places in different tables of signatures become those in one."""
    if batches[0].codes is None:
        return None, None
    codes = np.concatenate([batch.codes for batch in batches if batch.codes is not None])
    tables = [batch.signatures for batch in batches if batch.signatures is not None]
    if not tables:
        return codes, None
    united = np.ascontiguousarray(np.concatenate(tables))
    rows = united.view(f"V{united.shape[1]}").ravel()
    found, places = np.unique(rows, return_inverse=True)
    firsts = np.cumsum([0, *(len(table) for table in tables)])
    shift = np.repeat(firsts[:-1], [batch.starts.size for batch in batches])
    codes = places.astype(np.int64)[codes + shift]
    # Signatures whose entries are all forgotten are forgotten too.
    used = np.zeros(len(found), np.bool_)
    used[codes] = True
    bitmaps = found[used].view(np.uint8).reshape(-1, united.shape[1])
    return (np.cumsum(used) - 1)[codes], bitmaps


def _sort_keys(keys: tuple[pa.Array, ...], count: int) -> tuple[Ints, tuple[pa.Array, ...]]:
    if not keys:
        return np.zeros(count, np.int64), ()
    if len(keys) == 1 and _ascends(keys[0]):
        return np.arange(count), keys
    order = sort_order(keys)
    rank = np.empty(count, np.int64)
    rank[order.to_numpy()] = np.arange(count)
    return rank, tuple(key.take(order) for key in keys)


def _ascends(key: pa.Array) -> bool:
    """Whether whole numbers, or times, stand in order already."""
    if (key.type != pa.int64() and not pa.types.is_timestamp(key.type)) or key.null_count:
        return False
    numbers = key.view(pa.int64()).to_numpy()
    return bool(np.all(numbers[1:] > numbers[:-1]))


def _merge_columns(
    parts: Sequence[Part], batches: Sequence[PartialBatch], numbers: Ints, kept: Ints
) -> tuple[PartColumn, ...]:
    if len(batches) == 1 and kept.size == numbers.size:
        return tuple(column.take(kept) for column in batches[0].columns)
    merged = []
    for i, part in enumerate(parts):
        column = empty(part, kept.size)
        column.merge_all(
            np.split(numbers, np.cumsum([batch.starts.size for batch in batches])[:-1]),
            [batch.columns[i] for batch in batches],
        )
        merged.append(column)
    return tuple(merged)
