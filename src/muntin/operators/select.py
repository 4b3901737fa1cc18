"""Rows of a stream with their lifetimes, and rows that satisfy a condition, computed anew."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from muntin._typing import Bools, Ints
from muntin.errors import DataError
from muntin.expressions import Bound, Evaluated, Evaluator
from muntin.expressions.tree import Column as ColumnNode
from muntin.operators.rows import NEVER, Changes, Columns, Rows, take
from muntin.plan.operators import Column, Select, StreamSchema, Windowed
from muntin.plan.timeline import Timeline


class Condition:
    """Which rows satisfy a condition; one that fails or is NULL is not satisfied."""

    def __init__(self, bound: Bound | None, schema: pa.Schema) -> None:
        self._evaluate = None if bound is None else Evaluator([bound])
        self._schema = schema
        self.errors = 0

    def __call__(self, rows: Rows) -> Bools:
        """A mask of the rows."""
        if self._evaluate is None or not len(rows):
            return np.ones(len(rows), np.bool_)
        [found] = self._evaluate(table_of(rows.columns, self._schema, len(rows)))
        self.errors += failures(found)
        return truths(found.values)


class Projection:
    """Columns computed from rows."""

    def __init__(self, columns: Sequence[Column], schema: pa.Schema) -> None:
        self._evaluate = Evaluator([each.value for each in columns])
        self._schema = schema
        self.errors = 0

    def __call__(self, columns: Columns, count: int) -> Columns:
        """The values for rows with some columns."""
        found = self._evaluate(table_of(columns, self._schema, count))
        self.errors += sum(map(failures, found))
        return tuple(each.values for each in found)


class Leaf:
    """The rows of one stream that satisfy a condition, each alive for the length of the window."""

    STATE = ("_next",)

    def __init__(self, node: Windowed, stream: StreamSchema) -> None:
        self._range = node.range
        self._shown = node.schema
        self._timeline = stream.timeline
        read = {stream.timeline.column}
        read |= set().union(*(each.value.columns for each in node.columns))
        schema = stream.schema if node.relation is None else node.relation.schema
        self._schema = pa.schema([field for field in schema if field.name in read])
        self._where = None if node.where is None else Evaluator([node.where])
        self._project = Projection(node.columns, self._schema)
        self._where_errors = 0
        self._next = 0

    @property
    def errors(self) -> int:
        """How often an expression failed."""
        return self._where_errors + self._project.errors

    def read(self, batch: pa.Table | None) -> Changes:
        """The rows of a batch of the stream."""
        if batch is None or not batch.num_rows:
            return Changes.births(Rows.none(self._shown))
        columns = tuple(single(batch.column(name)) for name in self._schema.names)
        if self._where is not None:
            [found] = self._where(batch)
            self._where_errors += failures(found)
            mask = truths(found.values)
            if not mask.all():
                columns = take(columns, np.flatnonzero(mask))
        start = self._ticks(columns[self._schema.get_field_index(self._timeline.column)])
        # No window reaches beyond the end of time.
        if self._range is None:
            end = np.full(start.size, NEVER)
        else:
            end = start + min(self._range, NEVER)
            np.minimum(end, NEVER, out=end)
        ids = np.arange(self._next, self._next + start.size)
        self._next += start.size
        return Changes.births(Rows(self._project(columns, start.size), ids, start, end))

    def _ticks(self, times: pa.Array) -> Ints:
        if times.null_count:
            raise DataError(
                f"the time column {self._timeline.column!r} has NULL values",
                hint="filter such rows out",
            )
        # Copied, as Arrow's memory cannot be written, which is another type to kernels.
        return np.array(self._timeline.to_ticks(times))


class Selection:
    """Rows of the input that satisfy a condition, with columns computed from them."""

    def __init__(self, node: Select) -> None:
        self._condition = Condition(node.where, node.input.schema)
        self._project = Projection(node.columns, node.input.schema)

    @property
    def errors(self) -> int:
        """How often an expression failed."""
        return self._condition.errors + self._project.errors

    def step(self, inputs: Sequence[Changes], bounds: Sequence[int]) -> Changes:
        """The rows of some changes; ends of rows that are left out mean nothing further on."""
        del bounds
        [changes] = inputs
        rows = changes.born.where(self._condition(changes.born))
        columns = self._project(rows.columns, len(rows))
        return Changes(Rows(columns, rows.ids, rows.start, rows.end), changes.ended, changes.at)


def table_of(columns: Columns, schema: pa.Schema, count: int) -> pa.Table:
    """Columns as a table, which has its rows even where it has no columns."""
    if not columns:
        return pa.table({"": pa.nulls(count)})
    return pa.Table.from_arrays(list(columns), names=schema.names)


def derivable(wanted: Iterable[Bound], held: Iterable[Bound], timeline: Timeline) -> bool:
    """Whether all of some expressions follow from others of the same rows, and from their times."""
    known = set(held)
    names = _plain(known).keys() | _time(timeline)
    return all(each in known or each.columns <= names for each in wanted)


def derived(
    wanted: Iterable[Bound], held: Mapping[Bound, pa.Array], timeline: Timeline, start: Ints
) -> dict[Bound, Evaluated]:
    """Those expressions that follow from others of the same rows, and from their times."""
    plain = {name: held[each] for name, each in _plain(held).items()}
    # As the stream has it: what expressions make of it may have another unit.
    plain |= {name: timeline.from_ticks(start) for name in _time(timeline)}
    wanted = list(wanted)
    found = {each: Evaluated(held[each]) for each in wanted if each in held}
    missing = [each for each in wanted if each not in held and each.columns <= plain.keys()]
    if missing:
        table = pa.table(plain or {"": pa.nulls(start.size)})
        found |= dict(zip(missing, Evaluator(missing)(table), strict=True))
    return found


def _time(timeline: Timeline) -> set[str]:
    """The time column, where ticks say all of it."""
    kind = timeline.type
    coarse = pa.types.is_date64(kind) or (pa.types.is_timestamp(kind) and kind.unit == "ns")
    return set() if coarse else {timeline.column}


def _plain(known: Iterable[Bound]) -> dict[str, Bound]:
    """Columns as they are, among expressions, by their names."""
    return {each.root.name: each for each in known if isinstance(each.root, ColumnNode)}


def truths(values: pa.Array) -> Bools:
    """Which values are true; NULL is not."""
    if pa.types.is_null(values.type):
        return np.zeros(len(values), np.bool_)
    filled = values.fill_null(False) if values.null_count else values
    mask: Bools = filled.to_numpy(zero_copy_only=False).astype(np.bool_, copy=False)
    return mask


def failures(found: Evaluated) -> int:
    """How often an expression failed."""
    return 0 if found.errors is None else int(found.errors.true_count)


def single(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece; copied only if it is not."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
