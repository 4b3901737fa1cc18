"""Row queries over bounded data: every row with its whole lifetime."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from muntin.engine.tables.feeds import TableFeeds
from muntin.expressions.zones import Zone
from muntin.operators import RowEngine
from muntin.plan.operators import RowPlan, StreamSchema
from muntin.plan.timeline import Timeline
from muntin.planner.rows import row_plan
from muntin.queries import RowQuery
from muntin.results import TableAnswer


class Whole(Protocol):
    """Bounded input in this process."""

    schema: pa.Schema
    zone: Zone
    restore: Callable[[pa.Table], Any]

    def whole(self) -> pa.Table:
        """All rows."""
        ...


@dataclass(frozen=True)
class RowOutcome:
    """What row queries gave: results by name, their plan, and what was counted.

    ``rows`` and ``bad_rows``, those without a time, are by stream.
    """

    answers: dict[str, TableAnswer]
    plan: RowPlan
    errors: Counter[str]
    rows: dict[str, int]
    bad_rows: dict[str, int]


def run_rows(
    queries: Sequence[RowQuery],
    frames: Mapping[str, Whole],
    times: Mapping[str, str],
    tables: Mapping[str, pa.Table] | None = None,
) -> RowOutcome:
    """Answer row queries over whole streams by name; no row is late, whatever its order.

    Args:
        queries: The queries.
        frames: The rows of each stream.
        times: The time column of each stream.
        tables: What rows are joined with, by name.

    Raises:
        QueryError: With the problems of all queries.
    """
    streams = {
        name: StreamSchema(frame.schema, Timeline.of(frame.schema, times[name]))
        for name, frame in frames.items()
    }
    zone = next(iter(frames.values())).zone
    joined = tables or {}
    plan = row_plan(queries, streams, zone, {name: each.schema for name, each in joined.items()})
    engine = RowEngine(plan, threads=pa.cpu_count())
    rows: dict[str, int] = {}
    bad: dict[str, int] = {}
    timed: dict[str, pa.Table] = {}
    for name in sorted({name for final in plan.finals for name in final.streams}):
        table = frames[name].whole()
        column = table[streams[name].timeline.column]
        rows[name], bad[name] = table.num_rows, column.null_count
        timed[name] = table.filter(column.is_valid()) if bad[name] else table
    failed: Counter[str] = Counter()
    found = engine.close(timed, TableFeeds(plan, joined, failed).join(timed))
    answers = {}
    for query, final in zip(queries, plan.finals, strict=True):
        table = found[final.name]
        first = "" if list(frames) == [""] else query.source.lower()
        answers[final.name] = TableAnswer(table, frames[first].restore)
    return RowOutcome(answers, plan, Counter(engine.errors) + failed, rows, bad)
