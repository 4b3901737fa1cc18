"""Slices kept for some predicates, read by others: codes follow when queries come and go.

An entry's cell stands for all rows of it. Where a newcomer cuts the cell in two, by another value
or by another dimension, the entry goes to one of the halves: all predicates that were there
before hold in both or in neither. Only the newcomer could tell them apart, and it does not read
what was kept before it came; nor does any later one that asks about the same cut.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from muntin._typing import Bitmaps, Ints
from muntin.aggregates.columns.by_part import empty
from muntin.engine.slices.partials import SliceTable, merge
from muntin.engine.slices.store import BEGINNING, SliceStore
from muntin.plan.nodes import Partials
from muntin.plan.selection import Cells, Selection, Signatures
from muntin.predicates import Ranked, Region, Shape

# The cells of a space are looked through one by one up to this many.
_MOST_CELLS = 1 << 16


def recoded(store: SliceStore, node: Partials, since: int) -> SliceStore:
    """The same slices for other accumulators and predicates; new ones are complete ``since``."""
    table = store.table()
    places = {each: i for i, each in enumerate(store.node.accumulators)}
    columns = tuple(
        table.columns[places[each]] if each in places else empty(each.part, table.starts.size)
        for each in node.accumulators
    )
    complete = [
        store.complete[places[each]] if each in places else since for each in node.accumulators
    ]
    covered = _covered(store, node.selection, since)
    table = _translated(replace(table, columns=columns), store.node.selection, node)
    return store.replaced(node, table, complete, covered, _told_since(store, node, since))


def _translated(table: SliceTable, old: Selection, node: Partials) -> SliceTable:
    new = node.selection
    if old == new or not (old.coded or new.coded):
        return table
    if isinstance(old, Signatures) and isinstance(new, Signatures):
        assert table.signatures is not None
        return replace(table, signatures=_moved_bits(table.signatures, old, new))
    assert isinstance(old, Cells)
    assert isinstance(new, Cells)
    codes = np.zeros(table.starts.size, np.int64) if table.codes is None else table.codes
    moved = moved_codes(codes, old.shape, new.shape) if new.coded else None
    return merge(node, [replace(table.as_batch(), codes=moved)])


def _moved_bits(bitmaps: Bitmaps, old: Signatures, new: Signatures) -> Bitmaps:
    """Each predicate's bit where the other selection has it; a newcomer's is not set."""
    before = np.unpackbits(bitmaps, axis=1, bitorder="little")
    places = {bound: place for place, bound in enumerate(old.predicates)}
    after = np.zeros((len(bitmaps), -(-len(new.predicates) // 64) * 64), np.uint8)
    for place, bound in enumerate(new.predicates):
        if bound in places:
            after[:, place] = before[:, places[bound]]
    return np.packbits(after, axis=1, bitorder="little")


def moved_codes(codes: Ints, old: Shape, new: Shape) -> Ints:
    """The keys of cells in another space; the least rank in dimensions that were not told."""
    ranks = dict(zip((each.bound for each in old.dimensions), old.ranks_of(codes), strict=True))
    before = {each.bound: each for each in old.dimensions}
    columns = [
        _moved_ranks(before[each.bound], each)[ranks[each.bound]]
        if each.bound in before
        else np.zeros(codes.size, np.int64)
        for each in new.dimensions
    ]
    return new.keys(columns, codes.size)


def _moved_ranks(old: Ranked, new: Ranked) -> Ints:
    """For each rank the one that its least value has among other cuts.

    >>> from muntin.expressions import bind_text
    >>> import pyarrow as pa
    >>> vol = bind_text("vol", pa.schema([("vol", pa.int64())]))
    >>> _moved_ranks(Ranked(vol, (10, 20), False), Ranked(vol, (5, 20, 30), False)).tolist()
    [0, 1, 2, 4]
    """
    cuts: tuple[Any, ...] = new.cuts
    moved = [0, *(bisect_right(cuts, least) for least in old.cuts)]
    extra = [new.null] if new.failed is None else [new.null, new.failed]
    return np.array([*moved, *extra], np.int64)


def _covered(store: SliceStore, selection: Selection, since: int) -> list[int]:
    """From which tick on the entries tell which rows satisfy each predicate."""
    old = store.node.selection
    if isinstance(old, Cells) and isinstance(selection, Cells):
        return _covered_cells(store, old.shape, selection.shape, since)
    if isinstance(old, Signatures) and isinstance(selection, Signatures):
        known = dict(zip(old.predicates, store.covered, strict=True))
        return [known.get(bound, since) for bound in selection.predicates]
    return store.covered


def _covered_cells(store: SliceStore, old: Shape, new: Shape, since: int) -> list[int]:
    """A predicate is covered from when on each of its cells was wanted by one that was there.

    Before one of its cuts was made, cells beside that cut were one.
    """
    covered = store.covered
    known = dict(zip(old.accepts, covered, strict=True))
    times = _cut_times(store.told, old)
    wanted: Ints | None = None
    result = []
    for region in new.accepts:
        if region in known:
            result.append(known[region])
            continue
        told = max((times.get(cut, since) for cut in _cuts(region)), default=BEGINNING)
        if told >= since or old.size > _MOST_CELLS:
            result.append(since)
            continue
        columns = old.ranks_of(np.arange(old.size))
        if wanted is None:
            by_member = np.where(old.truth(columns, old.size), np.array(covered, np.int64), since)
            wanted = by_member.min(axis=1, initial=since)
        accepted = replace(old, members=(0,), accepts=(region,), fails=(region,))
        inside = accepted.truth(columns, old.size)[:, 0]
        result.append(max(told, int(wanted[inside].max(initial=min(covered, default=since)))))
    return result


def _cut_times(told: Sequence[Sequence[int]], shape: Shape) -> dict[tuple[str, object], int]:
    """Since when entries are told apart by each dimension of a shape, and by each of its cuts.

    A cut is named by its dimension's key and its place, the dimension itself by None.
    """
    return {
        (dimension.bound.key, cut): time
        for dimension, times in zip(shape.dimensions, told, strict=True)
        for cut, time in zip((None, *dimension.cuts), times, strict=True)
    }


def _cuts(region: Region) -> Iterator[tuple[str, object]]:
    """What must be told apart for a region's rows to be."""
    for factor in region.factors:
        for key, places in zip(factor.dimensions, factor.cuts, strict=True):
            yield key, None
            yield from ((key, place) for place in places)


def _told_since(store: SliceStore, node: Partials, since: int) -> list[list[int]]:
    """For each dimension and its cuts, since when entries are told apart by it."""
    old, new = store.node.selection, node.selection
    if not (isinstance(old, Cells) and isinstance(new, Cells)):
        return []
    times = _cut_times(store.told, old.shape)
    return [
        [times.get((each.bound.key, cut), since) for cut in (None, *each.cuts)]
        for each in new.shape.dimensions
    ]
