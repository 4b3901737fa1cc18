"""The oracle: every query alone, every window recomputed from the rows it covers.

Slow on purpose. It shares nothing with the engine but the evaluation of expressions and the order
of rows with equal times: rows are Python tuples, a window is a list of rows, an aggregate is a
plain function of that list.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from muntin.engine.answers.group_keys import in_time_order
from muntin.expressions import Bound, Evaluator
from muntin.plan.nodes import Final, SharedPlan
from muntin.plan.timeline import Timeline
from muntin.testing.aggregates import compute
from muntin.windows import Window


class Row(NamedTuple):
    """One input row as a query sees it: ``place`` is what its window is measured by."""

    tick: int
    place: int
    selected: bool
    group: tuple[Any, ...]
    calls: list[tuple[bool, tuple[Any, ...]]]


def answer(plan: SharedPlan, name: str, table: pa.Table) -> pa.Table:
    """The result of the query ``name`` over a bounded table."""
    final = next(final for final in plan.finals if final.name == name)
    timeline = plan.slicings[plan.partials[final.partials].slicing].timeline
    table = table.filter(table[timeline.column].is_valid())
    if final.window.measure == "rows":
        table = in_time_order(table, timeline.column)
    rows = _read(plan, final, timeline, table)

    windows: dict[int, dict[tuple[Any, ...], list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.selected:
            for index in _indices(final.window, row.place):
                windows[index][_key(row.group)].append(row)
    if final.query.emit_empty and windows:
        for index in range(min(windows), max(windows) + 1):
            windows[index][()] = windows[index][()]
    return _show(final, timeline, rows, windows)


def _indices(window: Window, place: int) -> list[int]:
    """Every window that covers a place, by the definition: start <= place < end."""
    assert window.slide is not None
    first = (place - window.range - window.phase) // window.slide - 1
    last = (place + window.range - window.phase) // window.slide + 1
    return [
        index
        for index in range(first, last + 1)
        if (end := window.phase + index * window.slide) - window.range <= place < end
    ]


def _read(plan: SharedPlan, final: Final, timeline: Timeline, table: pa.Table) -> list[Row]:
    def values(bound: Bound | None, default: Any = None) -> list[Any]:
        if bound is None:
            return [default] * table.num_rows
        result: list[Any] = _python(Evaluator([bound])(table)[0].values)
        return result

    ticks = timeline.to_ticks(table[timeline.column].combine_chunks()).to_pylist()
    places = range(table.num_rows) if final.window.measure == "rows" else ticks
    selected = values(final.predicate, True)
    groups = [values(bound) for bound in final.grouping]
    calls = []
    for lowering in final.lowerings:
        passes = values(lowering.filter, True)
        args = [values(arg) for arg in lowering.args]
        calls.append((passes, args))
    return [
        Row(
            tick,
            places[i],
            selected[i] is True,
            tuple(group[i] for group in groups),
            [(passes[i] is True, tuple(arg[i] for arg in args)) for passes, args in calls],
        )
        for i, tick in enumerate(ticks)
    ]


def _python(values: pa.Array) -> list[Any]:
    # Python's datetime has no years beyond 9999: times travel as integers.
    if pa.types.is_timestamp(values.type):
        values = values.view(pa.int64())
    elif pa.types.is_date32(values.type):
        values = values.view(pa.int32())
    result: list[Any] = values.to_pylist()
    return result


def _key(group: tuple[Any, ...]) -> tuple[Any, ...]:
    """Group keys as SQL compares them: NaN equals NaN, and -0.0 equals 0.0."""
    return tuple(
        "NaN" if isinstance(value, float) and math.isnan(value) else (value,) for value in group
    )


def _show(
    final: Final,
    timeline: Timeline,
    rows: list[Row],
    windows: dict[int, dict[tuple[Any, ...], list[Row]]],
) -> pa.Table:
    bounds: list[tuple[int, int]] = []
    lines: list[list[Any]] = []
    for index in sorted(windows):
        for members in windows[index].values():
            line: list[Any] = list(members[0].group) if members else []
            line = [0.0 if value == 0 and isinstance(value, float) else value for value in line]
            for i, lowering in enumerate(final.lowerings):
                taken = [(row.tick, *row.calls[i][1]) for row in members if row.calls[i][0]]
                line.append(compute(lowering.aggregate, taken))
            bounds.append(_bounds(final.window, index, rows))
            lines.append(line)

    columns = [
        pa.array([line[i] for line in lines], _storage(field.type)).cast(field.type)
        for i, field in enumerate(final.schema)
    ]
    lowered = pa.RecordBatch.from_arrays(columns, names=final.schema.names)
    evaluate = Evaluator([output.value for output in final.outputs])
    outputs = [evaluated.values for evaluated in evaluate(lowered)]
    starts, ends = np.array(bounds, dtype=np.int64).reshape(-1, 2).T
    result = pa.Table.from_arrays(
        [timeline.from_ticks(starts), timeline.from_ticks(ends), *outputs],
        names=[*final.query.bounds, *(output.name for output in final.outputs)],
    )
    if final.having is not None:
        result = result.filter(Evaluator([final.having])(lowered)[0].values)
    return result


def _storage(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_list(type_):
        return pa.list_(_storage(type_.value_type))
    if pa.types.is_struct(type_):
        return pa.struct([(each.name, _storage(each.type)) for each in type_])
    if pa.types.is_timestamp(type_):
        return pa.int64()
    return pa.int32() if pa.types.is_date32(type_) else type_


def _bounds(window: Window, index: int, rows: list[Row]) -> tuple[int, int]:
    assert window.slide is not None
    end = window.phase + index * window.slide
    start = end - window.range
    if window.measure == "rows":
        return rows[max(start, 0)].tick, rows[min(end, len(rows)) - 1].tick
    return start, end
