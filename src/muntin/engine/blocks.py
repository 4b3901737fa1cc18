"""Stage A over a large batch: block by block, several at once where there are threads for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from muntin.aggregates.parts import USER
from muntin.engine.key_ranges import Ints, KeyRanges
from muntin.engine.stage_a import StageA, StageOutput
from muntin.expressions.evaluator import single
from muntin.plan.nodes import SharedPlan

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
