"""Stage A: rows become partial aggregates per slice, group and predicate. Stateless."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

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

    def __call__(
        self, batch: pa.Table, first_position: int = 0, watermark: int | None = None
    ) -> StageOutput:
        """Partials of a batch, without the rows that have no time or lie below the watermark.

        ``first_position`` is the place of the first row in time order, for ROWS windows.
        """
        rows = batch.num_rows
        time = batch[self.plan.timeline.column]
        if time.null_count:
            batch = batch.filter(pc.is_valid(time))
        bad_rows = rows - batch.num_rows
        ticks = _places(self.plan.timeline, batch)[0]
        if watermark is not None and ticks.size and ticks.min() < watermark:
            batch = batch.filter(pa.array(ticks >= watermark))
            ticks = ticks[ticks >= watermark]
        values = dict(zip(self._bounds, self._evaluate(batch), strict=True))
        scope = _Scope(ticks, values)
        slices = [
            _cut(slicing, classes, batch, first_position)
            for slicing, classes in zip(self.plan.slicings, self._classes, strict=True)
        ]
        partials = [_accumulate(node, *slices[node.slicing], scope) for node in self.plan.partials]
        errors = _count_errors(self.plan, scope)
        late_rows = rows - bad_rows - batch.num_rows
        return StageOutput(partials, ticks, rows, late_rows, bad_rows, errors)


def _places(timeline: Timeline, batch: pa.Table) -> tuple[Ints, Bools | None]:
    """Ticks of every row, and where there are none (NULL)."""
    ticks = timeline.to_ticks(batch[timeline.column].combine_chunks())
    missing = None
    if ticks.null_count:
        missing = ticks.is_null().to_numpy(zero_copy_only=False)
        ticks = ticks.fill_null(0)
    return ticks.to_numpy(), missing


def _cut(
    slicing: Slicing, classes: Ints, batch: pa.Table, first_position: int
) -> tuple[Ints, Ints]:
    """The slice of every row as a small number (-1 for none), and the slices' starts."""
    places, missing = _places(slicing.timeline, batch)
    if slicing.measure == "rows":
        places = np.arange(first_position, first_position + batch.num_rows, dtype=np.int64)
    starts = slice_starts(places, classes)
    # Numbers are given to distances from the first slice, which are never negative.
    low = int(starts.min()) if starts.size else 0
    distances = starts - low
    if missing is not None:
        distances[missing] = -1
    slices, used = compact(distances)
    return slices, used + low


class _Scope:
    """Values of one batch, and what is derived from them once for all nodes."""

    def __init__(self, ticks: Ints, values: dict[Bound, Evaluated]) -> None:
        self.ticks = ticks
        self.rows = ticks.size
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


def _accumulate(node: Partials, slices: Ints, starts: Ints, scope: _Scope) -> PartialBatch:
    cells, cell_slices, cell_groups = _cells(node, slices, starts.size, scope)
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
        _update(column, filtered[condition], args, scope.ticks)
        columns.append(column)
        if every_row:
            counted[condition] = column
    keys = scope.groups(node.grouping).keys
    taken = tuple(key.take(pa.array(cell_groups)) for key in keys)
    return PartialBatch(starts[cell_slices], taken, tuple(columns))


def _update(column: PartColumn, cells: Ints, args: tuple[pa.Array, ...], ticks: Ints) -> None:
    for low in range(0, cells.size, _BLOCK):
        high = min(low + _BLOCK, cells.size)
        block = tuple(arg.slice(low, high - low) for arg in args)
        column.update(cells[low:high], block, ticks[low:high])


def _cells(node: Partials, slices: Ints, count: int, scope: _Scope) -> tuple[Ints, Ints, Ints]:
    """The cell of every selected row (-1 for the others), and each cell's slice and group."""
    if not node.grouping and node.predicate is None:
        return slices, np.arange(count), np.zeros(count, np.int64)
    groups = scope.groups(node.grouping)
    where = None if node.predicate is None else scope.mask(node.predicate)
    return pairs(slices, count, groups.codes, groups.count, where)


def _count_errors(plan: SharedPlan, scope: _Scope) -> Counter[str]:
    """Values that failed, per query, on the rows for which the query wanted them."""
    counts: Counter[str] = Counter()
    if all(evaluated.errors is None for evaluated in scope.values.values()):
        return counts
    for final in plan.finals:
        node = plan.partials[final.partials]
        everywhere = np.ones(scope.rows, np.bool_)
        selected = everywhere if node.predicate is None else scope.mask(node.predicate)
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
