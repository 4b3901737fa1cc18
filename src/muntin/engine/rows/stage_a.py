"""Stage A: rows become partial aggregates per slice, group and predicate. Stateless."""

from __future__ import annotations

import ctypes
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin._typing import Bools, Ints
from muntin.aggregates.columns.by_part import empty, fresh
from muntin.aggregates.columns.column import PartColumn
from muntin.aggregates.columns.counts import CountColumn
from muntin.counts import Counts
from muntin.engine.rows.columns import Reader
from muntin.engine.rows.dictionary import compact, pairs
from muntin.engine.rows.entries import Cut, Entries, find_entries, number_runs
from muntin.engine.rows.failures import count_errors
from muntin.engine.rows.selection import Scope, Selector
from muntin.engine.slices.finals.heads import with_heads
from muntin.engine.slices.partials import PartialBatch, coarser, narrower
from muntin.engine.slices.recoding import moved_codes
from muntin.expressions import Bound
from muntin.expressions.evaluation.evaluator import single
from muntin.plan.nodes import Accumulator, Partials, SharedPlan, Slicing
from muntin.plan.selection import Cells
from muntin.plan.timeline import Timeline
from muntin.windows.cut import slice_numbers, slice_starts


@dataclass
class StageOutput:
    """What stage A makes of one batch."""

    partials: list[PartialBatch]
    ticks: Ints
    counts: Counts


class StageA:
    """Turns batches of rows into partials, one :class:`PartialBatch` per node of the plan."""

    def __init__(self, plan: SharedPlan, tables: Mapping[str, pa.Table] | None = None) -> None:
        keep_pages()
        self.plan = plan
        self._readers = [
            Reader(plan, number, tables or {}) for number in range(len(plan.relations))
        ]
        self._classes = [_table(slicing) for slicing in plan.slicings]
        self._combined = [
            (_table(each.slicing), Selector(each.node.selection)) for each in plan.combined
        ]
        self._selectors = [Selector(node.selection) for node in plan.partials]
        # What was large enough for the last batch is for the next one, mostly.
        self._blanks = [
            [empty(each.part, 0) for each in node.accumulators] for node in plan.partials
        ]
        self._cut_by_rows = sorted({node.slicing for node in plan.partials if node.is_fed})
        # A stream goes on while it has no queries.
        cut_by = [slicing.timeline for slicing in plan.slicings] or [plan.timeline]
        self._timelines = list(dict.fromkeys(cut_by))

    def __call__(
        self, batch: pa.Table, first_position: int = 0, watermark: int | None = None
    ) -> StageOutput:
        """Partials of a batch, without the rows that have no time or lie below the watermark.

        ``first_position`` is the place of the first row in time order, for ROWS windows.
        """
        rows = batch.num_rows
        batch, bad_rows = self._usable(batch)
        times = {timeline: _read_times(timeline, batch) for timeline in self._timelines}
        if watermark is not None:
            batch, times = _drop_late(batch, times, watermark)
        cuts = {
            place: _cut(self.plan.slicings[place], self._classes[place], times, first_position)
            for place in self._cut_by_rows
        }
        common = [
            _cut(each.slicing, classes, times, first_position)
            for each, (classes, _) in zip(self.plan.combined, self._combined, strict=True)
        ]
        partials: dict[int, PartialBatch] = {}
        errors: Counter[str] = Counter()
        updates = 0
        for number, reader in enumerate(self._readers):
            read = reader(batch)
            joined = {place: cut.joined(read.rows) for place, cut in cuts.items()}
            for place, node in enumerate(self.plan.partials):
                if node.relation == number and node.is_fed:
                    cut = joined[node.slicing]
                    entries = find_entries(node, self._selectors[place], cut, read.scope)
                    partial = _accumulate(node, entries, cut, read.scope, self._blanks[place])
                    self._blanks[place] = [fresh(column, 0) for column in partial.columns]
                    updates += _updates(partial)
                    slicing = self.plan.slicings[node.slicing]
                    if slicing.marks:
                        partial = with_heads(slicing, entries, partial)
                    partials[place] = partial
            for place, cut in enumerate(common):
                if self.plan.combined[place].node.relation == number:
                    made, used = self._feed(place, cut.joined(read.rows), read.scope)
                    partials.update(made)
                    updates += used
            given = [times[slicing.timeline] for slicing in self.plan.slicings]
            placed = [each.placed(read.rows, read.scope.rows) for each in given]
            errors.update(count_errors(self.plan, number, placed, read.scope))
            errors.update(read.errors)
        late_rows = rows - batch.num_rows - (bad_rows if len(self._timelines) == 1 else 0)
        # Only queries that name another time column may do without the stream's own.
        own = times.get(self.plan.timeline)
        ticks = np.empty(0, np.int64) if own is None else own.given()
        for place, node in enumerate(self.plan.partials):
            if node.finer is not None:
                finer = partials[node.finer]
                partials[place] = coarser(node, self.plan.partials[node.finer], finer)
                updates += finer.starts.size
        for place, node in enumerate(self.plan.partials):
            if node.twin is not None:
                twin = self.plan.partials[node.twin]
                partials[place] = narrower(node, twin, partials[node.twin])
        ordered = [partials[place] for place in range(len(self.plan.partials))]
        counts = Counts(rows, late_rows, bad_rows, errors, partial_aggregations=updates)
        return StageOutput(ordered, ticks, counts)

    def _feed(self, place: int, cut: Cut, scope: Scope) -> tuple[dict[int, PartialBatch], int]:
        """The partials of all trees that combined ones feed, and the aggregations these took."""
        node = self.plan.combined[place].node
        entries = find_entries(node, self._combined[place][1], cut, scope)
        blanks = [empty(each.part, 0) for each in node.accumulators]
        batch = _accumulate(node, entries, cut, scope, blanks)
        made = {
            tree: _fed(each, self._classes[each.slicing], node, entries, batch, cut)
            for tree, each in enumerate(self.plan.partials)
            if each.combined == place
        }
        return made, _updates(batch) + len(made) * entries.slices.size

    def _usable(self, batch: pa.Table) -> tuple[pa.Table, int]:
        """The batch without rows that no query can place, and how many lack some time.

        Queries over different time columns have different rows to leave out: they do so later.
        """
        columns = [batch[timeline.column] for timeline in self._timelines]
        if not any(column.null_count for column in columns):
            return batch, 0
        given = [pc.is_valid(column) for column in columns]
        complete = reduce(pc.and_, given)
        bad_rows = batch.num_rows - (pc.sum(complete).as_py() or 0)
        if bad_rows and len(given) == 1:
            batch = batch.filter(complete)
        return batch, bad_rows


@dataclass(frozen=True)
class _Times:
    """Ticks of every row by one time column, and where there are none."""

    ticks: Ints
    missing: Bools | None

    def given(self) -> Ints:
        return self.ticks if self.missing is None else self.ticks[~self.missing]

    def placed(self, rows: Ints | None, count: int) -> Bools:
        """Which of so many rows, that come from these by a join, have a time."""
        if self.missing is None:
            return np.ones(count, np.bool_)
        return ~self.missing if rows is None else ~self.missing[rows]


def _read_times(timeline: Timeline, batch: pa.Table) -> _Times:
    ticks = timeline.to_ticks(single(batch[timeline.column]))
    if not ticks.null_count:
        return _Times(ticks.to_numpy(), None)
    missing = ticks.is_null().to_numpy(zero_copy_only=False)
    return _Times(ticks.fill_null(0).to_numpy(), missing)


def _drop_late(
    batch: pa.Table, times: dict[Timeline, _Times], watermark: int
) -> tuple[pa.Table, dict[Timeline, _Times]]:
    """Without the rows below the watermark; a stream has one time column, and all rows have it."""
    ((timeline, each),) = times.items()
    if not each.ticks.size or each.ticks.min() >= watermark:
        return batch, times
    kept = each.ticks >= watermark
    return batch.filter(pa.array(kept)), {timeline: _Times(each.ticks[kept], None)}


def _table(slicing: Slicing) -> Ints:
    """Edge classes, a row each; rows before a mark and after it are told apart like slices."""
    return np.array((*slicing.classes, *slicing.marks), np.int64).reshape(-1, 2)


def _cut(
    slicing: Slicing, classes: Ints, every: Mapping[Timeline, _Times], first_position: int
) -> Cut:
    times = every[slicing.timeline]
    places = times.ticks
    if slicing.measure == "rows":
        steps = np.ones(places.size, np.int64) if times.missing is None else ~times.missing
        places = np.cumsum(steps, dtype=np.int64) - 1 + first_position
    in_order = slice_numbers(places, classes) if times.missing is None else None
    if in_order is not None:
        return Cut(*in_order, times.ticks)
    starts = slice_starts(places, classes)
    if times.missing is None:
        slices, used = number_runs(starts)
        if slices.size == starts.size:
            return Cut(slices, used, times.ticks)
    # Numbers are given to distances from the first slice, which are never negative.
    low = int(starts.min()) if starts.size else 0
    distances = starts - low
    if times.missing is not None:
        distances[times.missing] = -1
    slices, used = compact(distances)
    return Cut(slices, used + low, times.ticks)


def _accumulate(
    node: Partials, entries: Entries, cut: Cut, scope: Scope, blanks: Sequence[PartColumn]
) -> PartialBatch:
    filtered: dict[Bound | None, Ints] = {None: entries.ids}
    counted: dict[Bound | None, PartColumn] = {}
    # Values that lie in all buckets for some queries, and in one for others, are found once.
    valued: dict[Accumulator, PartColumn] = {}
    columns: list[PartColumn] = []
    for accumulator, blank in zip(node.accumulators, blanks, strict=True):
        if accumulator.plain in valued:
            columns.append(valued[accumulator.plain])
            continue
        condition = accumulator.filter
        if condition is not None and condition not in filtered:
            filtered[condition] = np.where(scope.mask(condition), entries.ids, -1)
        args = tuple(scope.values[arg].values for arg in accumulator.args)
        # Where no argument is NULL, every count under one filter is the count of its rows.
        every_row = accumulator.part.kind == "count" and not any(arg.null_count for arg in args)
        if every_row and condition in counted:
            columns.append(counted[condition])
            continue
        column = fresh(blank, entries.slices.size)
        column.update(filtered[condition], args, cut.ticks if accumulator.part.timed else None)
        columns.append(column)
        if every_row:
            counted[condition] = column
        if accumulator.part.valued:
            valued[accumulator.plain] = column
    keys = scope.groups(node.grouping).keys if node.grouping else ()
    taken = tuple(key.take(pa.array(entries.groups)) for key in keys)
    starts = cut.starts[entries.slices]
    return PartialBatch(starts, taken, entries.codes, tuple(columns), entries.signatures)


def _fed(
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
    codes = _own_codes(node, combined, entries)
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
        column.merge(ids, batch.columns[combined.place_of(each)])
        columns.append(column)
    return PartialBatch(starts[outer], keys, kept, tuple(columns))


def _own_codes(node: Partials, combined: Partials, entries: Entries) -> Ints | None:
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


def _updates(batch: PartialBatch) -> int:
    """How many rows went into partials."""
    count = batch.columns[0]
    assert isinstance(count, CountColumn)
    return int(count.counts.sum())


# glibc's names for what is set, and how much: 64 MB at most stay unused.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT = 64 << 20
_FROM_HEAP = 32 << 20
VARIABLE = "MUNTIN_KEEP_PAGES"


@cache
def keep_pages() -> bool:
    """Have the allocator keep freed memory for the next block; False where that is not to be had.

    Otherwise glibc hands the arrays of every block back to the system, and each page of the next
    block's arrays is cleared and mapped anew: a third of the time of a short query. Set
    ``MUNTIN_KEEP_PAGES=0`` to leave the allocator alone.
    """
    if os.environ.get(VARIABLE, "1") == "0":
        return False
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    done = set_option(_MMAP_THRESHOLD, _FROM_HEAP) and set_option(_TRIM_THRESHOLD, _KEPT)
    return bool(done)
