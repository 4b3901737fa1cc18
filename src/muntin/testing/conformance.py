"""What every technique must do with every aggregate it takes, as checks anybody can run.

Each check compares answers with the aggregate's definition, recomputed from the rows of the
window, and raises AssertionError with what differs. Run them on an aggregate of your own.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from muntin.aggregates import Aggregate
from muntin.aggregates.algebra import same
from muntin.aggregators.aggregator import Aggregator
from muntin.aggregators.registry import create, info

_OVERFLOW = "overflow"


def check_slides(
    name: str, aggregate: Aggregate, rows: Sequence[Any], ranges: Iterable[int]
) -> None:
    """Sliding by one answers every range, also before the windows are full.

    >>> import pyarrow as pa
    >>> from muntin.aggregates import resolve
    >>> check_slides("daba", resolve("sum", [pa.int64()]).algebra, [3, None, 4, 1], ranges=[2])
    """
    aggregator = create(name, aggregate, ranges)
    for i, row in enumerate(rows):
        answers = _inserted(aggregator, aggregate.partial(row))
        for size, answer in zip(aggregator.ranges, answers, strict=True):
            window = rows[max(0, i + 1 - size) : i + 1]
            _require(name, aggregate, answer, window)


def check_positions(name: str, aggregate: Aggregate, rows: Sequence[Any], seed: int) -> None:
    """Inserts, evictions and queries by position, in any mixture, with gaps between positions."""
    moves = random.Random(seed)
    aggregator = create(name, aggregate)
    held: list[tuple[int, Any]] = []
    position = moves.randrange(-5, 5)
    for row in rows:
        aggregator.insert_partial(aggregate.partial(row), position)
        held.append((position, row))
        position += moves.choice((0, 1, 1, 3))
        if moves.random() < 0.5:
            before = moves.choice([place for place, _ in held]) + moves.randrange(2)
            aggregator.evict(before)
            held = [item for item in held if item[0] >= before]
        starts = [place for place, _ in held] + [position]
        since = moves.choice(starts) if info(name).several_ranges else starts[0]
        window = [item for place, item in held if place >= since]
        _require(name, aggregate, _lowered(partial(aggregator.query, since)), window)


def check_snapshots(name: str, aggregate: Aggregate, rows: Sequence[Any], size: int) -> None:
    """From a snapshot at any moment another aggregator goes on identically."""
    aggregator = create(name, aggregate, [size])
    for row in rows:
        other = create(name, aggregate, [size])
        other.restore(aggregator.snapshot())
        lifted = aggregate.partial(row)
        ours, theirs = _inserted(aggregator, lifted), _inserted(other, lifted)
        if not same(ours, theirs) or aggregator.operations != other.operations:
            raise AssertionError(f"{aggregator!r} answers {ours}, restored {theirs}")


def check_run(
    name: str, aggregate: Aggregate, values: Any, ranges: Iterable[int], seed: int = 0
) -> None:
    """A run answers like the definition, however the values are cut into batches."""
    aggregator = create(name, aggregate, ranges)
    rows = values.to_pylist() if hasattr(values, "to_pylist") else values.tolist()
    cuts, done = random.Random(seed), 0
    while done < len(rows):
        batch = values[done : done + cuts.randrange(1, len(rows) + 1)]
        answers = aggregator.run(batch)
        for i in range(len(batch)):
            for j, size in enumerate(aggregator.ranges):
                end = done + i + 1
                answer = answers[i, j]
                _require(
                    name,
                    aggregate,
                    answer.item() if hasattr(answer, "item") else answer,
                    rows[max(0, end - size) : end],
                )
        done += len(batch)


def _inserted(aggregator: Aggregator, lifted: Any) -> tuple[Any, ...]:
    answers: Any = _lowered(partial(aggregator.insert_partial, lifted))
    return (_OVERFLOW,) * len(aggregator.ranges) if answers == _OVERFLOW else answers


def _lowered(answer: Any) -> Any:
    try:
        return answer()
    except OverflowError:
        return _OVERFLOW


def _require(name: str, aggregate: Aggregate, answer: Any, window: Sequence[Any]) -> None:
    expected = _lowered(partial(aggregate.of, window))
    # One range that overflows hides the others' answers.
    if answer != _OVERFLOW and not same(answer, expected):
        raise AssertionError(
            f"{name} of {aggregate.name} answers {answer!r}, not {expected!r}, for {window}"
        )
