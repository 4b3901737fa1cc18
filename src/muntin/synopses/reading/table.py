"""The table of an answer: its columns with their bounds, no wider than asked, in order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from muntin.engine.answers.group_keys import sort_order
from muntin.errors import QueryError, QuestionError
from muntin.queries.asking.questions import Ordering
from muntin.synopses.fit import Fit, would_do
from muntin.synopses.reading.bounds import widths

ALIGNED_HINT = "ask with ALIGNED, as in [RANGE '7 minutes' ALIGNED], for the window of whole slices"

# The least and the greatest that an aggregate may be, by its place in the question.
Bounds = Mapping[int, tuple[pa.Array, pa.Array]]


class Read(NamedTuple):
    """What was read: the rows, whether they are exact, and how many rows went into them."""

    table: pa.Table
    exact: bool
    rows: int


def answer_table(fit: Fit, shown: Sequence[pa.Array], bounds: Bounds | None) -> pa.Table:
    """The columns that are shown; aggregates have their bounds beside them, if there are any."""
    names = [output.name for output in fit.bound.outputs]
    if bounds is None and len({*names}) == len(names):
        return pa.Table.from_arrays(list(shown), names=names)
    columns: dict[str, pa.Array] = {}
    for place, (name, values) in enumerate(zip(names, shown, strict=True)):
        aggregate = fit.plain[place]
        listed = [(name, values)]
        if bounds is not None and aggregate is not None:
            low, high = bounds[aggregate]
            listed += [(f"{name}_low", low), (f"{name}_high", high)]
        for each, column in listed:
            if each in columns:
                problem = fit.question.query.problem(
                    fit.question.query.select[0].node,
                    f"two columns of the answer are named {each}",
                    "give one of them another name with AS",
                )
                raise QueryError([problem])
            columns[each] = column
    return pa.table(columns)


def check_widths(fit: Fit, table: pa.Table) -> None:
    """Refuse an answer whose bounds are wider than its question allows."""
    within = fit.question.within
    if within is None:
        return
    for output, aggregate in zip(fit.bound.outputs, fit.plain, strict=True):
        if aggregate is None:
            continue
        name = output.name
        columns = [table[each] for each in (name, f"{name}_low", f"{name}_high")]
        # Without values an aggregate is NULL for certain; a sum may be too large for its type.
        is_told = fit.calls[aggregate].call.aggregate.name != "sum"
        for width, value in zip(widths(*columns[1:]), columns[0].to_pylist(), strict=True):
            most = _most(value, within)
            if not width <= most and not (is_told and value is None):
                raise _too_wide(fit, name, width, most)


def _most(value: Any, within: float) -> float:
    """How wide bounds may be around a value; 0 around what is not a finite number."""
    is_number = isinstance(value, int | float | Decimal)
    most = abs(float(value)) * within / 100 if is_number else 0.0
    return most if math.isfinite(most) else 0.0


def _too_wide(fit: Fit, name: str, width: float, most: float) -> QuestionError:
    kept, step = fit.kept, fit.kept.timeline.resolution
    share = most / width if math.isfinite(width) else 0.0
    grid = max(int(kept.keep.slide * share) // step * step, step)
    would = would_do(fit.question, kept, slide=grid, plain=fit.is_bounded)
    return QuestionError(
        f"the bounds of {name} are {width:g} apart, and {fit.question.within:g}% of the answer is "
        f"{most:g}",
        hint=f"a keep with a shorter SLIDE would do: {would}; or {ALIGNED_HINT}"
        if not fit.is_bounded
        else f"exact aggregates would do: {would}; or more buckets, and a shorter SLIDE",
    )


def in_order(table: pa.Table, fit: Fit, limit: int | None, *, is_sorted: bool) -> pa.Table:
    """Rows in the order asked for, else by group; no more than there may be."""
    if fit.question.order:
        order = _order(table, fit.question.order)
    elif fit.groups and table.num_rows > 1 and not is_sorted:
        groups = [table.column(place).combine_chunks() for place in range(len(fit.groups))]
        order = sort_order(groups)
    else:
        return table if limit is None else table.slice(0, limit)
    return table.take(order if limit is None else order.slice(0, limit))


def _order(table: pa.Table, order: Sequence[Ordering]) -> pa.Array:
    """The order of rows by some columns, with NULLs where each wants them; NaN above numbers."""
    columns: dict[str, Any] = {}
    listed: list[tuple[str, str]] = []
    for place, each in enumerate(order):
        column = table.column(each.column)
        if pa.types.is_nested(column.type):
            raise QuestionError(
                f"{each.column} is a {column.type}, which has no order",
                hint="order by a column of numbers, texts or times",
            )
        way = "descending" if each.descending else "ascending"
        if column.null_count:
            columns[f"null {place}"] = pc.is_null(column)
            listed.append((f"null {place}", "descending" if each.nulls_first else "ascending"))
        if pa.types.is_floating(column.type):
            columns[f"nan {place}"] = pc.is_nan(column).fill_null(False)
            listed.append((f"nan {place}", way))
        columns[f"key {place}"] = column
        listed.append((f"key {place}", way))
    return pc.sort_indices(pa.table(columns), listed)
