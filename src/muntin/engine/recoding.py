"""Slices kept for some predicates, read by others: codes follow when queries come and go.

An entry's cell stands for all rows of it. Where a newcomer cuts the cell in two, the entry goes
to one of the halves: all predicates that were there before hold in both or in neither. Only the
newcomer could tell them apart, and it does not read what was kept before it came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from muntin.aggregates.columns import empty
from muntin.engine.partials import SliceTable, merge
from muntin.engine.store import SliceStore
from muntin.plan.nodes import Partials
from muntin.plan.selection import Cells, Selection, Signatures
from muntin.predicates import Ranked, Region, Shape

Ints = npt.NDArray[np.int64]
Bitmaps = npt.NDArray[np.uint8]

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
    return store.replaced(node, table, complete, covered)


def _translated(table: SliceTable, old: Selection, node: Partials) -> SliceTable:
    new = node.selection
    if old == new or table.codes is None:
        return table
    if isinstance(old, Signatures) and isinstance(new, Signatures):
        assert table.signatures is not None
        return replace(table, signatures=_moved_bits(table.signatures, old, new))
    assert isinstance(old, Cells)
    assert isinstance(new, Cells)
    batch = replace(table.as_batch(), codes=_moved_codes(table.codes, old.shape, new.shape))
    if not new.coded:
        batch = replace(batch, codes=None)
    return merge(node, [batch])


def _moved_bits(bitmaps: Bitmaps, old: Signatures, new: Signatures) -> Bitmaps:
    """Each predicate's bit where the other selection has it; a newcomer's is not set."""
    before = np.unpackbits(bitmaps, axis=1, bitorder="little")
    places = {bound: place for place, bound in enumerate(old.predicates)}
    after = np.zeros((len(bitmaps), -(-len(new.predicates) // 64) * 64), np.uint8)
    for place, bound in enumerate(new.predicates):
        if bound in places:
            after[:, place] = before[:, places[bound]]
    return np.packbits(after, axis=1, bitorder="little")


def _moved_codes(codes: Ints, old: Shape, new: Shape) -> Ints:
    """The keys of cells in another space, whose dimensions are some of the old one's."""
    ranks = dict(zip((each.bound for each in old.dimensions), old.ranks_of(codes), strict=True))
    before = {each.bound: each for each in old.dimensions}
    columns = [_moved_ranks(before[each.bound], each)[ranks[each.bound]] for each in new.dimensions]
    return new.keys(columns, codes.size)


def _moved_ranks(old: Ranked, new: Ranked) -> Ints:
    """For each rank the one that its least value has among other cuts.

    >>> from muntin.expressions import bind_text
    >>> import pyarrow as pa
    >>> vol = bind_text("vol", pa.schema([("vol", pa.int64())]))
    >>> _moved_ranks(Ranked(vol, (10, 20), False), Ranked(vol, (5, 20, 30), False)).tolist()
    [0, 1, 2, 4]
    """
    moved = [0, *(sum(cut <= least for cut in new.cuts) for least in old.cuts)]  # type: ignore[operator]
    extra = [new.null] if new.failed is None else [new.null, new.failed]
    return np.array([*moved, *extra], np.int64)


def _covered(store: SliceStore, selection: Selection, since: int) -> list[int]:
    """From which tick on the entries tell which rows satisfy each predicate."""
    old = store.node.selection
    if isinstance(old, Cells) and isinstance(selection, Cells):
        return _covered_cells(store.covered, old.shape, selection.shape, since)
    if isinstance(old, Signatures) and isinstance(selection, Signatures):
        known = dict(zip(old.predicates, store.covered, strict=True))
        return [known.get(bound, since) for bound in selection.predicates]
    return store.covered


def _covered_cells(covered: Sequence[int], old: Shape, new: Shape, since: int) -> list[int]:
    """A predicate is covered from when on each of its cells was wanted by one that was there."""
    known = dict(zip(old.accepts, covered, strict=True))
    wanted: Ints | None = None
    result = []
    for region in new.accepts:
        if region in known:
            result.append(known[region])
            continue
        if not _told(region, old) or old.size > _MOST_CELLS:
            result.append(since)
            continue
        columns = old.ranks_of(np.arange(old.size))
        if wanted is None:
            times = np.array(covered, np.int64)
            wanted = np.where(old.truth(columns, old.size), times, since).min(axis=1, initial=since)
        accepted = replace(old, members=(0,), accepts=(region,), fails=(region,))
        inside = accepted.truth(columns, old.size)[:, 0]
        result.append(int(wanted[inside].max(initial=min(covered, default=since))))
    return result


def _told(region: Region, shape: Shape) -> bool:
    """Whether the cells of a shape tell a region's rows from others."""
    cuts = {each.bound.key: set(each.cuts) for each in shape.dimensions}
    return all(
        key in cuts and set(places) <= cuts[key]
        for factor in region.factors
        for key, places in zip(factor.dimensions, factor.cuts, strict=True)
    )
