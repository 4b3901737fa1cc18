"""What may be fed: rows as a table of Arrow, with the columns that the plan reads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from muntin._typing import Ints
from muntin.aggregates.algebra import USER
from muntin.engine.rows.key_ranges import KeyRanges
from muntin.engine.rows.stage_a import StageA, StageOutput
from muntin.errors import DataError, did_you_mean
from muntin.expressions.evaluation.evaluator import single
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


Piece = TypeVar("Piece")

# What is derived from so many rows stays in the cache, and off fresh pages of memory; of fewer
# rows, calls would take a good part of the time.
BLOCK = 1 << 18
# So many rows at once keep some threads busy; the same for any number of them, so that what is
# not exact is rounded the same.
ENOUGH = 8 * BLOCK
# Blocks that are under way or wait to be taken, for each thread: enough that none is idle.
_AHEAD = 2


def outputs(
    stage: StageA,
    batch: pa.Table,
    position: int,
    watermark: int | None,
    threads: int = 1,
    ranges: KeyRanges | None = None,
) -> Iterator[StageOutput]:
    """Partials of a batch's blocks, in their order; no row is late within its own batch.

    Blocks are rows as they come, or, with ``ranges`` of a key that has many values, those of a
    range each.

    Which thread computes a block changes nothing: blocks are the same for any number of threads,
    and kernels do their work without the interpreter's lock. They are computed one by one where
    windows count rows: rows without a time have no position, and those before must be known. So
    they are with aggregates of users, whose code keeps the lock, and may keep more.
    """
    if ranges is not None and _is_free(stage.plan):
        parts = ranges.rows(batch, BLOCK)
        if parts is not None:
            yield from _by_range(stage, batch, parts, threads)
            return
    pieces = [batch.slice(low, BLOCK) for low in range(0, max(batch.num_rows, 1), BLOCK)]
    if threads > 1 and len(pieces) > 1 and _is_free(stage.plan):
        yield from _side_by_side(lambda piece: stage(piece, 0, watermark), pieces, threads)
        return
    for piece in pieces:
        output = stage(piece, position, watermark)
        position += output.ticks.size
        yield output


def _is_free(plan: SharedPlan) -> bool:
    kinds = [each.part.kind for node in plan.partials for each in node.accumulators]
    return not plan.ordered and not any(kind.startswith(USER) for kind in kinds)


def _by_range(
    stage: StageA, batch: pa.Table, parts: Sequence[Ints], threads: int
) -> Iterator[StageOutput]:
    whole = pa.table({name: single(batch[name]) for name in batch.column_names})

    def work(part: int) -> StageOutput:
        output = stage(whole.take(pa.array(parts[part])))
        output.partials = [replace(each, part=part) for each in output.partials]
        return output

    return _side_by_side(work, range(len(parts)), threads)


def _side_by_side(
    work: Callable[[Piece], StageOutput], pieces: Iterable[Piece], threads: int
) -> Iterator[StageOutput]:
    """What the work makes of every piece, in order, with few pieces under way at a time."""
    under_way: deque[Future[StageOutput]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="muntin-block")
    try:
        for piece in pieces:
            if len(under_way) == _AHEAD * threads:
                yield under_way.popleft().result()
            under_way.append(pool.submit(work, piece))
        while under_way:
            yield under_way.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
