"""Stage B: kept partials become the answers of windows that are due."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.aggregates.columns.column import PartColumn
from muntin.engine.answers.families import Family, Source
from muntin.engine.answers.grouped import Placement, Placer
from muntin.engine.answers.rollup import RolledUp
from muntin.engine.answers.ungrouped import find_runs
from muntin.engine.answers.unmerged import Unmerged
from muntin.engine.answers.windows import bound_windows, count_windows, list_windows, window_order
from muntin.engine.slices.finals.heads import Headed
from muntin.engine.slices.partials import SliceTable
from muntin.errors import DataError
from muntin.plan.nodes import Final, Partials, Slicing
from muntin.plan.selection import Cells

# A result of more rows than this is a mistake in the window, not a wish; empty windows are all
# made up, so fewer of them are.
MAX_RESULT_ROWS = 2**28
MAX_FILLED_ROWS = 2**24
# Counting windows costs as much as the span of their numbers.
_MOST_COUNTED = 16
_BLOCK = 1 << 15
# Room for so many windows, and two a slice, is made without counting them.
_ROOM = 1 << 16


@dataclass(frozen=True)
class WindowTable:
    """Windows of a family: which slices each covers; those of query q from ``offsets[q]`` on.

    Where slices have heads, ``heads`` has the entry of each window's, -1 for none, and slices are
    numbered by their place among ``slices``.
    """

    windows: Ints
    groups: Ints
    lows: Ints
    highs: Ints
    offsets: Ints
    order: Ints | None = None
    heads: Ints | None = None
    slices: Ints | None = None


@dataclass(frozen=True)
class Answer:
    """What a family answers: columns of groups and lowered aggregates, and their windows.

    Rows are in order of query, window and group. The rows of one window, or some of them, are a
    run: run r is of the window numbered ``windows[r]`` and has the rows from ``rows[r]`` to
    ``rows[r + 1] - 1``, at least one. Query q has the runs from ``runs[q]`` on. ``failed`` says
    for each row how many of its aggregates failed; None if none did.
    """

    windows: Ints
    runs: Ints
    rows: Ints
    lowered: pa.RecordBatch
    failed: Ints | None


class StageB:
    """Answers families of queries over the slices of one set of partials.

    ``table`` merges them, which is put off until it is needed; ``unmerged`` are the entries without
    groups as they came, where these are in order of time.

    ``steps`` counts the aggregations along time, ``cell_steps`` those along cells. Both are
    counted as they are worked off: a step of a running total is one, what is read off it two. For
    the strategies of the papers each partial that goes into a window or a predicate is one, as the
    papers count.
    """

    def __init__(
        self,
        node: Partials,
        table: Callable[[], SliceTable],
        slicing: Slicing,
        unmerged: Unmerged | None = None,
        threads: int = 1,
    ) -> None:
        self.node = node
        self._threads = threads
        # Only Cutty slices have heads.
        self._slicing = slicing if slicing.marks else None
        self.steps = self.cell_steps = 0
        self._merged, self._given = table, unmerged
        self._rolled: dict[tuple[int, ...], RolledUp] = {}
        self._placer: Placer | None = None
        in_cells = isinstance(node.selection, Cells) and self._slicing is None
        if in_cells and node.grouping and self.table.starts.size:
            assert isinstance(node.selection, Cells)
            self._placer = Placer(self.table, node.selection)

    @cached_property
    def table(self) -> SliceTable:
        """The slices, merged where they must be."""
        return self._merged()

    @cached_property
    def _unmerged(self) -> Unmerged | None:
        """Entries without groups as a sweep takes them; None where there are groups."""
        if self._given is not None or self.node.grouping:
            return self._given
        return Unmerged.of([self.table.as_batch()])

    def answer(self, family: Family) -> Answer:
        """The windows that are due of all queries in a family."""
        placement = None if self._placer is None else self._placer.place(family)
        if placement is not None:
            return self._placed(family, placement)
        swept = None if self._slicing is not None else self._swept(family)
        return swept or self._walked(family)

    def _placed(self, family: Family, placement: Placement) -> Answer:
        assert self._placer is not None
        runs = placement.asking.offsets
        sizes = np.diff(placement.rows[runs])
        most = int(np.argmax(sizes))
        check_size(family.finals[most], int(sizes[most]), MAX_RESULT_ROWS)
        self.steps += 2 * placement.size
        self.cell_steps += placement.steps
        lowered = [self._placer.lower(lowering, placement) for lowering in family.lowerings]
        failed = [each.errors for each in lowered if each.errors is not None]
        flags = [each.to_numpy(zero_copy_only=False).astype(np.int64) for each in failed]
        columns = [*placement.take(self.table.keys), *(each.values for each in lowered)]
        batch = pa.RecordBatch.from_arrays(columns, schema=family.schema)
        held = np.flatnonzero(np.diff(placement.rows))
        rows = np.append(placement.rows[held], placement.size)
        numbers = placement.asking.numbers[held]
        found = np.searchsorted(held, runs)
        return Answer(numbers, found, rows, batch, sum(flags) if flags else None)

    def _swept(self, family: Family) -> Answer | None:
        """The answer by a sweep over time, or by scans; None where another way is better."""
        selection = self.node.selection
        if not isinstance(selection, Cells) or self._unmerged is None:
            return None
        found = find_runs(self._unmerged, selection, family, self._threads)
        if found is None:
            return None
        held = np.flatnonzero(found.entries())
        lowered = [found.lower(number) for number in range(len(family.lowerings))]
        # A run is one difference of totals; all else gathers cells.
        along = min(found.asking.numbers.size, found.steps)
        self.steps += along
        self.cell_steps += found.steps - along
        values = [each.values.take(pa.array(held)) for each in lowered]
        failed = [each.errors.take(pa.array(held)) for each in lowered if each.errors is not None]
        flags = [each.to_numpy(zero_copy_only=False).astype(np.int64) for each in failed]
        batch = pa.RecordBatch.from_arrays(values, schema=family.schema)
        runs = np.searchsorted(held, found.asking.offsets)
        every = np.arange(held.size + 1)
        numbers = found.asking.numbers[held]
        return Answer(numbers, runs, every, batch, sum(flags) if flags else None)

    def _walked(self, family: Family) -> Answer:
        members = family.members
        places = {member: place for place, member in enumerate(members)}
        source = Source(family, self._roll_up(members), places)
        windows = windows_of(source, family, self._slicing)
        self.steps += self._reads(source.starts, windows)
        values, failed = _lowered(family, source, windows)
        order = windows.order
        if order is not None:
            values = [each.take(pa.array(order)) for each in values]
            failed = None if failed is None else failed[order]
            windows = replace(windows, windows=windows.windows[order], groups=windows.groups[order])
        keys = [key.take(pa.array(windows.groups)) for key in source.keys]
        batch = pa.RecordBatch.from_arrays([*keys, *values], schema=family.schema)
        runs, rows = _runs_of(windows.windows, windows.offsets)
        return Answer(windows.windows[rows[:-1]], runs, rows, batch, failed)

    def _roll_up(self, members: tuple[int, ...]) -> RolledUp:
        """Partials of some predicates, made once for all families that read them."""
        if members not in self._rolled:
            self._rolled[members] = RolledUp(self.table, self.node.selection, members)
            self.cell_steps += self._rolled[members].steps
        return self._rolled[members]

    def _reads(self, starts: Ints, windows: WindowTable) -> int:
        heads = 0 if windows.heads is None else np.count_nonzero(windows.heads >= 0)
        if isinstance(self.node.selection, Cells):
            slices = starts if windows.slices is None else windows.slices
            return int(slices.size + 2 * windows.windows.size + heads)
        covered = windows.highs - windows.lows
        if windows.heads is not None:
            covered = covered + (windows.heads >= 0)
        return int(covered[covered > 1].sum())


def _lowered(
    family: Family, source: Source, windows: WindowTable
) -> tuple[list[pa.Array], Ints | None]:
    """The aggregates of all windows, and how many of each window's failed; None if none did."""
    total = windows.windows.size
    longest = max(int(np.max(windows.highs - windows.lows, initial=0)), 1)
    read = [
        [(index, source.filters[number]) for index in lowering.accumulators]
        for number, lowering in enumerate(family.lowerings)
    ]
    columns = {key: source.column(*key) for key in dict.fromkeys(chain(*read))}
    slides = {key: _slices(column, windows).sliding(longest) for key, column in columns.items()}
    found: list[list[pa.Array]] = [[] for _ in read]
    failed: Ints | None = None
    # A block's accumulators stay in the cache, and off fresh pages of memory.
    for low in range(0, max(total, 1), _BLOCK):
        block = slice(low, min(low + _BLOCK, total))
        lows, highs = windows.lows[block], windows.highs[block]
        slid = {key: slide(lows, highs) for key, slide in slides.items()}
        if windows.heads is not None:
            held = np.flatnonzero(windows.heads[block] >= 0)
            for key, column in slid.items():
                column.merge(held, columns[key].take(windows.heads[block][held]))
        for number, lowering in enumerate(family.lowerings):
            lowered = lowering.aggregate.lower([slid[key] for key in read[number]])
            found[number].append(lowered.values)
            if lowered.errors is not None:
                failed = np.zeros(total, np.int64) if failed is None else failed
                failed[block] += lowered.errors.to_numpy(zero_copy_only=False)
    return [pa.concat_arrays(each) for each in found], failed


def _runs_of(windows: Ints, offsets: Ints) -> tuple[Ints, Ints]:
    """The runs of rows of one window: the first of each query, and the first row of each.

    >>> runs, rows = _runs_of(np.array([4, 4, 5, 5]), np.array([0, 3, 4]))
    >>> runs.tolist(), rows.tolist()
    ([0, 2, 3], [0, 2, 3, 4])
    """
    fresh = np.ones(windows.size + 1, np.bool_)
    fresh[1:-1] = windows[1:] != windows[:-1]
    fresh[offsets] = True
    rows = np.flatnonzero(fresh)
    return np.searchsorted(rows, offsets), rows


def _slices(column: PartColumn, windows: WindowTable) -> PartColumn:
    """The partials of slices, without those of heads."""
    return column if windows.slices is None else column.take(windows.slices)


def windows_of(source: Source, family: Family, slicing: Slicing | None = None) -> WindowTable:
    """Every due window and group of each query that holds a row, and the slices it covers.

    With a ``slicing``, its slices have heads.
    """
    groups, starts, segments = source.groups, source.starts, source.segments
    headed = None if slicing is None else Headed(slicing, groups, starts, segments)
    if headed is not None:
        groups, starts = groups[headed.slices], starts[headed.slices]
        segments = headed.slice_segments
    rows = np.concatenate((segments, family.windows), axis=1)
    counts = bound_windows(groups, starts, rows)
    if counts.sum(dtype=np.float64) > _ROOM + 2 * (rows[:, 1] - rows[:, 0]).sum():
        # Windows far apart: what is listed is counted first.
        counts = count_windows(groups, starts, rows)
        most = int(np.argmax(counts))
        check_size(family.finals[most], int(counts[most]), MAX_RESULT_ROWS)
    room = int(counts.sum())
    windows, owners, lows, highs = np.empty((4, room), np.int64)
    found = list_windows(groups, starts, rows, (windows, owners, lows, highs))
    held = slice(0, int(found[:, 0].sum()))
    windows, owners, lows, highs = windows[held], owners[held], lows[held], highs[held]
    heads: Ints | None = None
    if headed is not None:
        queries = np.repeat(np.arange(len(found)), found[:, 0])
        offsets = np.concatenate(([0], np.cumsum(found[:, 0])))
        highs, heads = headed.read(family.windows, offsets, windows, owners, highs)
        kept = (highs > lows) | (heads >= 0)
        windows, owners, lows = windows[kept], owners[kept], lows[kept]
        highs, heads = highs[kept], heads[kept]
        found = _found(queries[kept], windows, len(found))
    own = None if headed is None else headed.slices
    if family.finals[0].query.emit_empty and found[0, 0]:
        none = np.empty(0, np.int64)
        return _filled(WindowTable(windows, owners, lows, highs, none, None, heads, own), family)
    offsets = np.concatenate(([0], np.cumsum(found[:, 0])))
    grouped = groups.size > 0 and groups.max() > 0
    order = _order(windows, offsets, found[:, 1:]) if grouped else None
    return WindowTable(windows, owners, lows, highs, offsets, order, heads, own)


def _found(queries: Ints, windows: Ints, count: int) -> Ints:
    """For each of so many queries how many windows there are, the lowest and the highest."""
    found = np.empty((count, 3), np.int64)
    found[:, 0] = np.bincount(queries, minlength=count)
    found[:, 1], found[:, 2] = 2**62, -(2**62)
    np.minimum.at(found[:, 1], queries, windows)
    np.maximum.at(found[:, 2], queries, windows)
    return found


def _order(windows: Ints, offsets: Ints, bounds: Ints) -> Ints:
    spans = np.where(np.diff(offsets) > 0, bounds[:, 1] - bounds[:, 0], 0)
    if spans.sum() <= _MOST_COUNTED * (windows.size + 1024):
        order = np.empty(windows.size, np.int64)
        window_order(windows, offsets, bounds, order)
        return order
    queries = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    return np.lexsort((windows, queries))


def _filled(held: WindowTable, family: Family) -> WindowTable:
    """The windows of one ungrouped query from the first to the last, those without rows too."""
    windows = held.windows
    lowest, highest = int(windows[0]), int(windows[-1])
    if family.gap is not None:
        lowest = min(lowest, family.gap)
    check_size(family.finals[0], highest - lowest + 1, MAX_FILLED_ROWS)
    every = np.arange(lowest, highest + 1)
    # A window in a gap covers no slice: its run is empty, at the next slice that follows.
    at = np.searchsorted(windows, every)
    given = windows[at] == every
    ends = np.where(given, held.highs[at], held.lows[at])
    heads = None if held.heads is None else np.where(given, held.heads[at], -1)
    owners, offsets = np.zeros(every.size, np.int64), np.array([0, every.size])
    return WindowTable(every, owners, held.lows[at], ends, offsets, None, heads, held.slices)


def check_size(final: Final, rows: float, most: int) -> None:
    """Refuse results of more rows than anybody can want."""
    if rows > most:
        empty = ", or leave out EMIT EMPTY" if final.query.emit_empty else ""
        raise DataError(
            f"query {final.name} would give {rows:,.0f} rows", hint=f"use a larger SLIDE{empty}"
        )
