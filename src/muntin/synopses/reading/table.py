"""The table of an answer: its columns with their bounds, no wider than asked, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
            if fit.question.within is not None:
                _check_width(fit, fit.question.within, name, (values, low, high))
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


def _check_width(fit: Fit, within: float, name: str, found: Sequence[pa.Array]) -> None:
    values, low, high = found
    for width, value in zip(widths(low, high), values.to_pylist(), strict=True):
        most = abs(float(value)) * within / 100 if isinstance(value, int | float) else 0.0
        if width > most:
            grid = fit.kept.keep.slide
            share = 1 if not most else max(int(grid * most / width), 1)
            hint = (
                "a keep with a shorter SLIDE would do: "
                f"{would_do(fit.question, fit.kept, slide=share)}; or {ALIGNED_HINT}"
            )
            if fit.is_bounded:
                hint = f"a keep with more than {fit.kept.keep.buckets} buckets, or a shorter SLIDE"
            raise QuestionError(
                f"the bounds of {name} are {width:g} apart, and {within:g}% of the answer is "
                f"{most:g}",
                hint=hint,
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
