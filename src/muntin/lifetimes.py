"""Row queries over bounded data: every row with its whole lifetime, or aggregates of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from muntin.engine import LocalEngine
from muntin.engine.answers.families import FIRST_WINDOW
from muntin.engine.joined import JoinAnswers
from muntin.engine.tables.feeds import TableFeeds
from muntin.expressions.zones import Zone
from muntin.operators import RowEngine
from muntin.plan.operators import RowPlan, StreamSchema, leaves
from muntin.plan.timeline import Timeline
from muntin.planner.rows import row_plan
from muntin.queries import RowQuery
from muntin.results import TableAnswer

# Answers of sides that are in memory at a time, as a rule of thumb.
_AT_ONCE = 1 << 22


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


def plan_rows(
    queries: Sequence[RowQuery],
    frames: Mapping[str, Whole],
    times: Mapping[str, str],
    tables: Mapping[str, pa.Table],
) -> RowPlan:
    """The plan of row queries over streams by name, whose time columns are given, and tables.

    Raises:
        QueryError: With the problems of all queries.
    """
    streams = {
        name: StreamSchema(frame.schema, Timeline.of(frame.schema, times[name]))
        for name, frame in frames.items()
    }
    zone = next(iter(frames.values())).zone
    return row_plan(queries, streams, zone, {name: each.schema for name, each in tables.items()})


def run_rows(
    plan: RowPlan, frames: Mapping[str, Whole], tables: Mapping[str, pa.Table]
) -> RowOutcome:
    """Answer row queries over whole streams by name; no row is late, whatever its order.

    Answers are by query, those of the rows that aggregates read among them.
    """
    streams = plan.streams
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
    found = engine.close(timed, TableFeeds(plan, tables, failed).join(timed))
    answers = {}
    for final in plan.finals:
        first = leaves(final.root)[0].stream
        answers[final.name] = TableAnswer(found[final.name], frames[first].restore)
    return RowOutcome(answers, plan, Counter(engine.errors) + failed, rows, bad)


def run_joined(
    plan: RowPlan,
    engines: Mapping[str, LocalEngine],
    rows: Mapping[str, pa.Table],
    frames: Mapping[str, Whole],
) -> tuple[dict[str, TableAnswer], Counter[str]]:
    """Answer aggregates over joined streams, and count the values that failed.

    Args:
        plan: The queries.
        engines: By stream, what was fed with its rows and answers the sides.
        rows: The answers of row queries, for those that aggregate them.
        frames: The streams, whose first gives a result its kind of frame.
    """
    answers: dict[str, TableAnswer] = {}
    errors: Counter[str] = Counter()
    some = 1
    left = list(plan.joined)
    while left:
        finals, left = tuple(left[:some]), left[some:]
        found = dict(rows)
        names = {side.query.name for final in finals for side in final.sides}
        for engine in engines.values():
            found |= engine.close_some(names)
        # As many queries at a time as keep what waits small.
        size = sum(found[name].num_rows for name in names)
        some = max(_AT_ONCE * len(finals) // max(size, 1), 1)
        joins = JoinAnswers()
        joins.adopt(finals, dict.fromkeys(names, FIRST_WINDOW))
        shown = joins.take(found)
        del found
        shown |= joins.close()
        errors += joins.errors
        for final in finals:
            table = shown.get(final.name)
            table = final.schema.empty_table() if table is None else table
            answers[final.name] = TableAnswer(table, frames[final.streams[0]].restore)
    return answers, errors
