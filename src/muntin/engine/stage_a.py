"""Stage A: rows become partial aggregates per slice, group and predicate. Stateless."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from muntin.aggregates.column import PartColumn
from muntin.aggregates.columns import empty
from muntin.engine.encoding import compact, encode
from muntin.engine.grouping import Groups, group, pairs
from muntin.expressions import Bound, Evaluated, Evaluator
from muntin.plan.nodes import Partials, SharedPlan, Slicing
from muntin.plan.timeline import Timeline
from muntin.windows.cut import slice_starts

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# What a column derives from its arguments stays in the cache, and off fresh pages of memory.
_BLOCK = 1 << 17


@dataclass(frozen=True)
class PartialBatch:
    """Partials of one batch: cell ``i`` is the slice ``starts[i]`` of the group ``keys[..][i]``."""

    starts: Ints
    keys: tuple[pa.Array, ...]
    columns: tuple[PartColumn, ...]


@dataclass
class StageOutput:
    """What stage A makes of one batch."""

    partials: list[PartialBatch]
    ticks: Ints
    rows: int
    late_rows: int
    bad_rows: int
    errors: Counter[str] = field(default_factory=Counter)


class StageA:
    """Turns batches of rows into partials, one :class:`PartialBatch` per node of the plan."""

    def __init__(self, plan: SharedPlan) -> None:
        self.plan = plan
        self._bounds = plan.expressions()
        self._evaluate = Evaluator(self._bounds)
        self._classes = [np.array(s.classes, np.int64).reshape(-1, 2) for s in plan.slicings]
        self._timelines = list(dict.fromkeys(slicing.timeline for slicing in plan.slicings))

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
        values = dict(zip(self._bounds, self._evaluate(batch), strict=True))
        scope = _Scope(batch.num_rows, values)
        cuts = [
            _cut(slicing, classes, times[slicing.timeline], first_position)
            for slicing, classes in zip(self.plan.slicings, self._classes, strict=True)
        ]
        partials = [_accumulate(node, cuts[node.slicing], scope) for node in self.plan.partials]
        errors = _count_errors(self.plan, cuts, scope)
        late_rows = rows - batch.num_rows - (bad_rows if len(self._timelines) == 1 else 0)
        # Only queries that name another time column may do without the stream's own.
        own = times.get(self.plan.timeline)
        ticks = np.empty(0, np.int64) if own is None else own.given()
        return StageOutput(partials, ticks, rows, late_rows, bad_rows, errors)

    def _usable(self, batch: pa.Table) -> tuple[pa.Table, int]:
        """The batch without rows that no query can place, and how many lack some time.

        Queries over different time columns have different rows to leave out: they do so later.
        """
        given = [pc.is_valid(batch[timeline.column]) for timeline in self._timelines]
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


@dataclass(frozen=True)
class _Cut:
    """The slice of every row as a small number (-1 for none), slices' starts, rows' times."""

    slices: Ints
    starts: Ints
    ticks: Ints


def _read_times(timeline: Timeline, batch: pa.Table) -> _Times:
    ticks = timeline.to_ticks(batch[timeline.column].combine_chunks())
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


def _cut(slicing: Slicing, classes: Ints, times: _Times, first_position: int) -> _Cut:
    places = times.ticks
    if slicing.measure == "rows":
        steps = np.ones(places.size, np.int64) if times.missing is None else ~times.missing
        places = np.cumsum(steps, dtype=np.int64) - 1 + first_position
    starts = slice_starts(places, classes)
    # Numbers are given to distances from the first slice, which are never negative.
    low = int(starts.min()) if starts.size else 0
    distances = starts - low
    if times.missing is not None:
        distances[times.missing] = -1
    slices, used = compact(distances)
    return _Cut(slices, used + low, times.ticks)


class _Scope:
    """Values of one batch, and what is derived from them once for all nodes."""

    def __init__(self, rows: int, values: dict[Bound, Evaluated]) -> None:
        self.rows = rows
        self.values = values
        self._masks: dict[Bound, Bools] = {}
        self._codes: dict[Bound, tuple[Ints, pa.Array]] = {}
        self._groups: dict[tuple[Bound, ...], Groups] = {}

    def mask(self, bound: Bound) -> Bools:
        """Where a predicate is true; NULL is not."""
        if bound not in self._masks:
            truth = self.values[bound].values.fill_null(False)
            self._masks[bound] = truth.to_numpy(zero_copy_only=False)
        return self._masks[bound]

    def groups(self, grouping: tuple[Bound, ...]) -> Groups:
        """The group of every row."""
        if grouping not in self._groups:
            columns = [self._encoded(bound) for bound in grouping]
            self._groups[grouping] = group(columns, self.rows)
        return self._groups[grouping]

    def _encoded(self, bound: Bound) -> tuple[Ints, pa.Array]:
        if bound not in self._codes:
            self._codes[bound] = encode(self.values[bound].values)
        return self._codes[bound]


def _accumulate(node: Partials, cut: _Cut, scope: _Scope) -> PartialBatch:
    cells, cell_slices, cell_groups = _cells(node, cut, scope)
    filtered: dict[Bound | None, Ints] = {None: cells}
    counted: dict[Bound | None, PartColumn] = {}
    columns: list[PartColumn] = []
    for accumulator in node.accumulators:
        condition = accumulator.filter
        if condition is not None and condition not in filtered:
            filtered[condition] = np.where(scope.mask(condition), cells, -1)
        args = tuple(scope.values[arg].values for arg in accumulator.args)
        # Where no argument is NULL, every count under one filter is the count of its rows.
        every_row = accumulator.part.kind == "count" and not any(arg.null_count for arg in args)
        if every_row and condition in counted:
            columns.append(counted[condition])
            continue
        column = empty(accumulator.part, cell_slices.size)
        _update(column, filtered[condition], args, cut.ticks)
        columns.append(column)
        if every_row:
            counted[condition] = column
    keys = scope.groups(node.grouping).keys
    taken = tuple(key.take(pa.array(cell_groups)) for key in keys)
    return PartialBatch(cut.starts[cell_slices], taken, tuple(columns))


def _update(column: PartColumn, cells: Ints, args: tuple[pa.Array, ...], ticks: Ints) -> None:
    for low in range(0, cells.size, _BLOCK):
        high = min(low + _BLOCK, cells.size)
        block = tuple(arg.slice(low, high - low) for arg in args)
        column.update(cells[low:high], block, ticks[low:high])


def _cells(node: Partials, cut: _Cut, scope: _Scope) -> tuple[Ints, Ints, Ints]:
    """The cell of every selected row (-1 for the others), and each cell's slice and group."""
    count = cut.starts.size
    if not node.grouping and node.predicate is None:
        return cut.slices, np.arange(count), np.zeros(count, np.int64)
    groups = scope.groups(node.grouping)
    where = None if node.predicate is None else scope.mask(node.predicate)
    return pairs(cut.slices, count, groups.codes, groups.count, where)


def _count_errors(plan: SharedPlan, cuts: list[_Cut], scope: _Scope) -> Counter[str]:
    """Values that failed, per query, on the rows for which the query wanted them."""
    counts: Counter[str] = Counter()
    if all(evaluated.errors is None for evaluated in scope.values.values()):
        return counts
    for final in plan.finals:
        node = plan.partials[final.partials]
        everywhere = cuts[node.slicing].slices >= 0
        selected = everywhere
        if node.predicate is not None:
            selected = everywhere & scope.mask(node.predicate)
        wanted: dict[Bound, Bools] = {}
        for bound in node.grouping:
            wanted[bound] = selected
        for lowering in final.lowerings:
            passing = selected
            if lowering.filter is not None:
                passing = selected & scope.mask(lowering.filter)
                wanted[lowering.filter] = wanted.get(lowering.filter, selected) | selected
            for arg in lowering.args:
                wanted[arg] = wanted.get(arg, passing) | passing
        if node.predicate is not None:
            wanted[node.predicate] = everywhere
        for bound, where in wanted.items():
            errors = scope.values[bound].errors
            if errors is not None:
                failed = errors.to_numpy(zero_copy_only=False)
                counts[final.name] += int(np.count_nonzero(failed & where))
    return counts
