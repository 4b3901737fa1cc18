"""What may be fed: rows as a table of Arrow, with the columns that the plan reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from muntin.errors import DataError, did_you_mean
from muntin.plan.nodes import SharedPlan
from muntin.plan.timeline import Timeline


def gathered(tables: Iterable[pa.Table], enough: int) -> Iterator[pa.Table]:
    """Few large tables of many small ones: each has enough rows, but the last.

    >>> [len(each) for each in gathered([pa.table({"a": [1, 2]})] * 5, 3)]
    [4, 4, 2]
    """
    held: list[pa.Table] = []
    rows = 0
    for table in tables:
        held.append(table)
        rows += table.num_rows
        if rows >= enough:
            yield pa.concat_tables(held)
            held, rows = [], 0
    if rows:
        yield pa.concat_tables(held)


def as_table(batch: object, plan: SharedPlan) -> pa.Table:
    """The batch as a table, refused where a column is missing or a time is of another type."""
    if isinstance(batch, pa.RecordBatch):
        batch = pa.Table.from_batches([batch])
    if not isinstance(batch, pa.Table):
        raise DataError(
            f"a batch is a pyarrow.Table or RecordBatch, not a {type(batch).__name__}",
            hint="make one with pyarrow.table({...}), pyarrow.Table.from_pandas or .from_pylist",
        )
    for name in plan.columns():
        if name not in batch.column_names:
            hint = did_you_mean(name, batch.column_names) or f"it has {batch.column_names}"
            raise DataError(f"the batch has no column {name!r}", hint=hint)
    for timeline in {plan.timeline, *(slicing.timeline for slicing in plan.slicings)}:
        _check_time(timeline, batch.schema.field(timeline.column).type)
    return batch


def _check_time(timeline: Timeline, given: pa.DataType) -> None:
    """Ticks are read as the plan's type has them: another unit would give other times."""
    wanted = timeline.type
    whole = pa.types.is_integer(wanted) and pa.types.is_integer(given)
    zoned = pa.types.is_timestamp(wanted) and pa.types.is_timestamp(given)
    if given != wanted and not whole and not (zoned and given.unit == wanted.unit):
        raise DataError(
            f"the time column {timeline.column!r} is of type {given}, the plan's is {wanted}",
            hint=f"cast it to {wanted} before, or plan the queries for a schema that has {given}",
        )
