"""From accumulators of windows and groups to the rows that a query over joined streams shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin._typing import Bools, Ints
from muntin.aggregates.algebra import Lowered
from muntin.aggregates.columns.column import AdditiveColumn, PartColumn
from muntin.engine.answers.group_keys import sort_order
from muntin.engine.answers.stage_b import MAX_FILLED_ROWS
from muntin.errors import DataError
from muntin.expressions import Evaluator
from muntin.plan.joined import JoinFinal

# Codes are looked up in a table while it has no more than so many places per row.
ROOM = 8
FEW = 1 << 16


@dataclass(frozen=True)
class Cells:
    """The cell of each row: one for each window and group that holds rows.

    ``numbers`` are the windows of the cells, ``firsts`` a row of each, -1 for none.
    """

    cells: Ints
    numbers: Ints
    firsts: Ints


@dataclass(frozen=True)
class Totals:
    """The accumulators of all cells, before they are shown.

    Attributes:
        cells: The windows.
        groups: The group columns, one value for each cell.
        columns: For each aggregate the accumulators it is read from.
        rows: How many rows of the join each cell has.
        overflowed: The cells whose numbers of rows do not fit 64 bits; None for none.
        failed: The cells of some aggregates, by their places, that have no value.
        errors: How many values failed so far.
    """

    cells: Cells
    groups: Sequence[pa.Array]
    columns: Sequence[Sequence[PartColumn]]
    rows: Ints
    overflowed: Bools | None = None
    failed: Mapping[int, Bools] = field(default_factory=dict)
    errors: int = 0

    @property
    def last(self) -> int | None:
        """The last window that holds a row."""
        held = self.cells.numbers[self.cells.firsts >= 0]
        return int(held.max()) if held.size else None


@dataclass(frozen=True)
class Answered:
    """Results, the last window that holds a row, and how many values failed."""

    table: pa.Table
    last: int | None = None
    errors: int = 0


def cells_of(final: JoinFinal, numbers: Ints, groups: Ints, gap: int | None) -> Cells:
    """The cells of rows by window number and group code.

    Where windows without rows are shown, these have cells as well, from ``gap`` on.
    """
    if not numbers.size:
        none = np.empty(0, np.int64)
        return Cells(none, none, none)
    lowest = int(numbers.min())
    if final.emit_empty:
        lowest = lowest if gap is None else min(gap, lowest)
        count = int(numbers.max()) - lowest + 1
        if count > MAX_FILLED_ROWS:
            raise DataError(
                f"query {final.name} would give {count:,} rows",
                hint="use a larger SLIDE, or leave out EMIT EMPTY",
            )
        firsts = np.full(count, -1)
        cells = numbers - lowest
        firsts[cells] = np.arange(cells.size)
        return Cells(cells, np.arange(lowest, lowest + count), firsts)
    width = int(groups.max()) + 1
    windows, _ = dense(numbers - lowest)
    cells, firsts = dense(windows * width + groups)
    return Cells(cells, numbers[firsts], firsts)


def dense(codes: Ints) -> tuple[Ints, Ints]:
    """Codes, which are not negative, as numbers from 0 on in their order, and a row of each."""
    span = int(codes.max(initial=-1)) + 1
    if span > ROOM * codes.size + FEW:
        _, firsts, places = np.unique(codes, return_index=True, return_inverse=True)
        return places, firsts
    firsts = np.full(span, -1)
    firsts[codes] = np.arange(codes.size)
    held = np.flatnonzero(firsts >= 0)
    places = np.empty(span, np.int64)
    places[held] = np.arange(held.size)
    return places[codes], firsts[held]


class Finish:
    """Shows the accumulators of cells as a query's results."""

    def __init__(self, final: JoinFinal) -> None:
        self._final = final
        having = () if final.having is None else (final.having,)
        self._evaluator = Evaluator((*(each.value for each in final.outputs), *having))

    def __call__(self, totals: Totals) -> Answered:
        """The rows of all cells, in order of window and group."""
        final, cells, overflowed = self._final, totals.cells, totals.overflowed
        if not cells.numbers.size:
            return Answered(final.schema.empty_table(), errors=totals.errors)
        failed = np.zeros(cells.numbers.size, np.int64)
        values = list(totals.groups)
        for place, (call, parts) in enumerate(zip(final.calls, totals.columns, strict=True)):
            lowered = call.aggregate.lower(parts)
            if place in totals.failed:
                lowered = _failing(lowered, totals.failed[place])
            if overflowed is not None and any(isinstance(each, AdditiveColumn) for each in parts):
                lowered = _failing(lowered, overflowed)
            values.append(lowered.values)
            if lowered.errors is not None:
                failed += lowered.errors.to_numpy(zero_copy_only=False)
        lowered_rows = pa.Table.from_arrays(values, schema=final.lowered)
        table, errors = self._shown(cells.numbers, lowered_rows, failed)
        return Answered(table, totals.last, totals.errors + errors)

    def _shown(self, numbers: Ints, lowered: pa.Table, failed: Ints) -> tuple[pa.Table, int]:
        final = self._final
        order = sort_order([pa.array(numbers), *lowered.columns[: len(final.groups)]])
        lowered, numbers = lowered.take(order), numbers[order.to_numpy()]
        evaluated = self._evaluator(lowered)
        errors = int(failed.sum())
        for each in evaluated:
            if each.errors is not None:
                errors += pc.sum(each.errors).as_py() or 0
        ends = final.phase + numbers * final.slide
        bounds = [final.timeline.from_ticks(each) for each in (ends - final.range, ends)]
        shown = [*bounds, *(each.values for each in evaluated[: len(final.outputs)])]
        table = pa.Table.from_arrays(shown, schema=final.schema)
        if final.having is not None:
            table = table.filter(evaluated[-1].values.fill_null(False))
        return table, errors


def _failing(lowered: Lowered, failed: Bools) -> Lowered:
    flags = pa.array(failed)
    values = pc.if_else(flags, pa.scalar(None, lowered.values.type), lowered.values)
    errors = flags if lowered.errors is None else pc.or_(flags, lowered.errors)
    return Lowered(values, errors)
