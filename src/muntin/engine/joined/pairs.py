"""Rows of a join at window ends, aggregated by window and group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from muntin._typing import Bools, Ints
from muntin.aggregates.columns.by_part import empty
from muntin.aggregates.columns.column import PartColumn
from muntin.engine.joined.finish import Cells, Totals, cells_of
from muntin.expressions import Evaluator
from muntin.operators.select import failures
from muntin.operators.state.keys import KeyTable
from muntin.plan.joined import JoinCall, JoinFinal
from muntin.plan.timeline import Timeline


class Grouped(NamedTuple):
    """The group columns of rows, a code of each row's group, and how many values failed."""

    columns: Sequence[pa.Array]
    codes: Ints
    errors: int = 0


class Pairs:
    """Aggregates rows of a join by cells: those alive at each window end, or others."""

    def __init__(self, final: JoinFinal) -> None:
        self._final = final
        self._groups = Evaluator([each.value for each in final.groups])
        self._args = [
            Evaluator((*call.args, *(() if call.filter is None else (call.filter,))))
            for call in final.calls
        ]

    def __call__(self, table: pa.Table, numbers: Ints, gap: int | None) -> Totals:
        """The totals of some windows, from the rows of each and their window numbers."""
        grouped = self.groups(table)
        return self.totals(table, grouped, cells_of(self._final, numbers, grouped.codes, gap))

    def groups(self, table: pa.Table) -> Grouped:
        """The groups of rows."""
        if not self._final.groups:
            return Grouped((), np.zeros(table.num_rows, np.int64))
        found = self._groups(table)
        groups = [each.values for each in found]
        codes = KeyTable([each.type for each in groups]).codes(tuple(groups), table.num_rows)
        return Grouped(groups, codes, sum(map(failures, found)))

    def totals(self, table: pa.Table, grouped: Grouped, cells: Cells) -> Totals:
        """The totals of cells of rows."""
        errors = grouped.errors
        columns = []
        for call, evaluate in zip(self._final.calls, self._args, strict=True):
            found, failed = self._column(call, evaluate, table, cells)
            columns.append(found)
            errors += failed
        shown = [each.take(pa.array(cells.firsts)) for each in grouped.columns]
        rows = np.bincount(cells.cells, minlength=cells.numbers.size)
        return Totals(cells, shown, columns, rows, errors=errors)

    def _column(
        self, call: JoinCall, evaluate: Evaluator, table: pa.Table, cells: Cells
    ) -> tuple[list[PartColumn], int]:
        evaluated = evaluate(table) if evaluate.bounds else []
        values = [each.values for each in evaluated]
        own = cells.cells
        if call.filter is not None:
            passes = values[-1].fill_null(False).to_numpy(zero_copy_only=False)
            own = np.where(passes, own, -1)
        times = None
        if call.times:
            times, known = _latest(table, call.times)
            own = np.where(known, own, -1)
        found = [empty(part, cells.numbers.size) for part in call.aggregate.parts]
        for part, column in zip(call.aggregate.parts, found, strict=True):
            column.update(own, tuple(values[i] for i in part.args), times)
        return found, sum(map(failures, evaluated))


def _latest(table: pa.Table, timelines: tuple[Timeline, ...]) -> tuple[Ints, Bools]:
    """The latest of several times of each row, and whether there is one."""
    latest = np.full(table.num_rows, np.iinfo(np.int64).min)
    for timeline in timelines:
        ticks = timeline.to_ticks(table.column(timeline.column).combine_chunks())
        held = ticks.is_valid().to_numpy(zero_copy_only=False)
        latest = np.where(held, np.maximum(latest, ticks.fill_null(0).to_numpy()), latest)
    return latest, latest > np.iinfo(np.int64).min
