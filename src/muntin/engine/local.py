"""The local engine: runs a shared plan on columnar batches in one process."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates.column import PartColumn
from muntin.engine.stage_a import PartialBatch, StageA
from muntin.engine.stage_b import SliceTable, WindowTable, bounds, merge, windows_of
from muntin.expressions import Evaluator
from muntin.plan.nodes import Final, SharedPlan
from muntin.windows import Window

Ints = npt.NDArray[np.int64]


@dataclass
class Statistics:
    """What a run has seen: rows, rows without a time, and failed values per query."""

    rows: int = 0
    bad_rows: int = 0
    errors: Counter[str] = field(default_factory=Counter)


class LocalEngine:
    """Feeds batches through stage A, keeps their partials, and answers every query at the end.

    Batches of a plan with ROWS windows must come in time order
    (:func:`muntin.engine.ordering.in_time_order`); all others may come in any order.
    """

    def __init__(self, plan: SharedPlan) -> None:
        self.plan = plan
        self.statistics = Statistics()
        self._stage_a = StageA(plan)
        self._batches: list[list[PartialBatch]] = [[] for _ in plan.partials]
        # Bounds of ROWS windows are times of rows, so those times are kept.
        self._by_rows = any(slicing.measure == "rows" for slicing in plan.slicings)
        self._ticks: list[Ints] = []
        self._position = 0

    def feed(self, batch: pa.Table | pa.RecordBatch) -> None:
        """Take a batch of rows into the partials."""
        if isinstance(batch, pa.RecordBatch):
            batch = pa.Table.from_batches([batch])
        output = self._stage_a(batch, self._position)
        for kept, partials in zip(self._batches, output.partials, strict=True):
            kept.append(partials)
        if self._by_rows:
            self._ticks.append(output.ticks)
        self._position += output.rows - output.bad_rows
        self.statistics.rows += output.rows
        self.statistics.bad_rows += output.bad_rows
        self.statistics.errors.update(output.errors)

    def close(self) -> dict[str, pa.Table]:
        """Close every window that holds a row; the result of each query, by name."""
        if self._position == 0:
            self.feed(self.plan.source.empty_table())
        results = {}
        for index, node in enumerate(self.plan.partials):
            table = merge(node, self._batches[index])
            answers = _Answers(table)
            for final in self.plan.finals:
                if final.partials == index:
                    results[final.name] = self._answer(final, table, answers)
        return {final.name: results[final.name] for final in self.plan.finals}

    def _answer(self, final: Final, table: SliceTable, answers: _Answers) -> pa.Table:
        windows = answers.windows(final)
        order = np.lexsort((windows.groups, windows.windows)) if table.keys else None
        columns = [key.take(pa.array(windows.groups)) for key in table.keys]
        for lowering in final.lowerings:
            parts = [answers.slide(final, index) for index in lowering.accumulators]
            lowered = lowering.aggregate.lower(parts)
            self._count(final, lowered.errors)
            columns.append(lowered.values)
        lowered_batch = pa.RecordBatch.from_arrays(columns, schema=final.schema)
        indices = windows.windows
        if order is not None:
            lowered_batch = lowered_batch.take(pa.array(order))
            indices = indices[order]
        return self._show(final, indices, lowered_batch)

    def _show(self, final: Final, windows: Ints, lowered: pa.RecordBatch) -> pa.Table:
        evaluated = Evaluator([output.value for output in final.outputs])(lowered)
        for output in evaluated:
            self._count(final, output.errors)
        starts, ends = self._bounds(final.window, windows)
        timeline = self.plan.slicings[self.plan.partials[final.partials].slicing].timeline
        result = pa.Table.from_arrays(
            [
                timeline.from_ticks(starts),
                timeline.from_ticks(ends),
                *(output.values for output in evaluated),
            ],
            names=["window_start", "window_end", *(output.name for output in final.outputs)],
        )
        if final.having is not None:
            having = Evaluator([final.having])(lowered)[0]
            self._count(final, having.errors)
            result = result.filter(having.values)
        return result

    def _bounds(self, window: Window, windows: Ints) -> tuple[Ints, Ints]:
        starts, ends = bounds(window, windows)
        if window.measure == "time":
            return starts, ends
        ticks = np.concatenate(self._ticks)
        return ticks[np.maximum(starts, 0)], ticks[np.minimum(ends, ticks.size) - 1]

    def _count(self, final: Final, errors: pa.Array | None) -> None:
        if errors is not None:
            self.statistics.errors[final.name] += errors.true_count


class _Answers:
    """Windows and slid partials of one node, computed once for all queries that agree on them."""

    def __init__(self, table: SliceTable) -> None:
        self._table = table
        self._windows: dict[tuple[Window, bool], WindowTable] = {}
        self._slid: dict[tuple[Window, bool, int], PartColumn] = {}

    def windows(self, final: Final) -> WindowTable:
        key = (final.window, final.query.emit_empty)
        if key not in self._windows:
            self._windows[key] = windows_of(self._table, final)
        return self._windows[key]

    def slide(self, final: Final, index: int) -> PartColumn:
        key = (final.window, final.query.emit_empty, index)
        if key not in self._slid:
            windows = self.windows(final)
            self._slid[key] = self._table.columns[index].slide(windows.lows, windows.highs)
        return self._slid[key]
