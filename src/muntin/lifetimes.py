"""Row queries over bounded data: every row with its whole lifetime, or aggregates of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from muntin.engine import LocalEngine
from muntin.engine.answers.families import FIRST_WINDOW
from muntin.engine.joined import JoinAnswers
from muntin.engine.tables.feeds import TableFeeds
from muntin.errors import DataError
from muntin.expressions.zones import Zone
from muntin.faults import about_stream
from muntin.operators import RowEngine
from muntin.plan.joined import JoinFinal
from muntin.plan.operators import RowPlan, StreamSchema, leaves
from muntin.plan.timeline import Timeline
from muntin.planner.rows import is_undecided, rates_of, routed, row_plan, weighed, with_sides
from muntin.queries import RowQuery
from muntin.results import Answer, TableAnswer

# Answers of sides that are in memory at a time, as a rule of thumb.
_AT_ONCE = 1 << 22
# With fewer rows of a join at a time, more window ends are taken together.
_FEW_PAIRS = 1 << 20


class Described(Protocol):
    """Bounded input of any kind."""

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""
        ...

    @property
    def zone(self) -> Zone:
        """Where local times are asked for."""
        ...

    def sample(self) -> pa.Table | None:
        """Some rows of it, if they are there without much work."""
        ...


class Framed(Described, Protocol):
    """Bounded input, and what makes a table a frame of its kind."""

    @property
    def restore(self) -> Callable[[pa.Table], Any]:
        """What makes a frame of results."""
        ...


class Whole(Framed, Protocol):
    """Bounded input in this process."""

    def whole(self) -> pa.Table:
        """All rows."""
        ...


@dataclass(frozen=True)
class RowOutcome:
    """What row queries gave: results by name, their plan, and what was counted.

    ``rows`` and ``bad_rows``, those without a time, are by stream.
    """

    answers: dict[str, Answer]
    plan: RowPlan
    errors: Counter[str]
    rows: dict[str, int]
    bad_rows: dict[str, int]


def plan_rows(
    queries: Sequence[RowQuery],
    frames: Mapping[str, Described],
    times: Mapping[str, str],
    tables: Mapping[str, pa.Table],
) -> RowPlan:
    """The plan of row queries over streams by name, whose time columns are given, and tables.

    Raises:
        QueryError: With the problems of all queries.
    """
    streams = {}
    for name, frame in frames.items():
        with about_stream(name if len(frames) > 1 else None):
            streams[name] = StreamSchema(frame.schema, Timeline.of(frame.schema, times[name]))
    zone = next(iter(frames.values())).zone
    plan = row_plan(queries, streams, zone, {name: each.schema for name, each in tables.items()})
    if not is_undecided(plan):
        return plan
    # Rows are looked at only where there is something to weigh: on Spark, that takes a job.
    read = {name for final in plan.finals for name in final.streams}
    some = {name: rows for name in sorted(read) if (rows := frames[name].sample()) is not None}
    return weighed(plan, rates_of(some, {name: streams[name].timeline for name in some}))


def run_rows(
    plan: RowPlan, frames: Mapping[str, Whole], tables: Mapping[str, pa.Table]
) -> RowOutcome:
    """Answer row queries over whole streams by name; no row is late, whatever its order.

    Aggregates over such rows are answered as well.
    """
    streams = plan.streams
    rows: dict[str, int] = {}
    bad: dict[str, int] = {}
    timed: dict[str, pa.Table] = {}
    for name in sorted({name for final in plan.finals for name in final.streams}):
        table = frames[name].whole()
        column = table[streams[name].timeline.column]
        rows[name], bad[name] = table.num_rows, column.null_count
        timed[name] = table.filter(column.is_valid()) if bad[name] else table
    failed: Counter[str] = Counter()
    aggregated = {final.pairs for final in plan.joined}
    shown = RowPlan(streams, tuple(each for each in plan.finals if each.name not in aggregated))
    engine = RowEngine(shown, threads=pa.cpu_count())
    found = engine.close(timed, TableFeeds(shown, tables, failed).join(timed))
    failed.update(engine.errors)
    answers: dict[str, Answer] = {}
    for final in shown.finals:
        first = leaves(final.root)[0].stream
        answers[final.name] = TableAnswer(found[final.name], frames[first].restore)
    for joined in (each for each in plan.joined if each.pairs):
        table = _run_pairs(plan, joined, timed, tables, failed)
        answers[joined.name] = TableAnswer(table, frames[joined.streams[0]].restore)
    return RowOutcome(answers, plan, failed, rows, bad)


def _run_pairs(
    plan: RowPlan,
    final: JoinFinal,
    timed: Mapping[str, pa.Table],
    tables: Mapping[str, pa.Table],
    failed: Counter[str],
) -> pa.Table:
    """Aggregate the rows of a join, some window ends at a time.

    A row is shown at every window end it lives to see, and all of them together may be many times
    what there is room for.
    """
    own = tuple(each for each in plan.finals if each.name == final.pairs)
    one = RowPlan(plan.streams, own)
    engine = RowEngine(one, threads=pa.cpu_count())
    joins = JoinAnswers()
    joins.adopt((final,), {})
    read = {name: timed[name] for name in final.streams}
    if final.lived:
        joins.take(engine.close(read, TableFeeds(one, tables, failed).join(read)))
        shown = joins.close()
        failed.update(engine.errors)
        failed.update(joins.errors)
        return shown.get(final.name, final.schema.empty_table())
    found = [joins.take(engine.feed(read, {}, TableFeeds(one, tables, failed).join(read)))]
    at, last = _span(plan, read)
    last += final.range
    step = final.slide
    while at < last:
        at += step
        rows = engine.feed({}, dict.fromkeys(final.streams, at))
        many = rows[final.pairs].num_rows
        if many < _FEW_PAIRS:
            step *= 2
        elif many > _AT_ONCE:
            step = max(step // 2, final.slide)
        found.append(joins.take(rows))
    found.append(joins.take(engine.close()))
    failed.update(engine.errors)
    failed.update(joins.errors)
    answered = [each[final.name] for each in found if final.name in each]
    return pa.concat_tables([final.schema.empty_table(), *answered])


def _span(plan: RowPlan, timed: Mapping[str, pa.Table]) -> tuple[int, int]:
    """The first and the last tick of some streams."""
    found = []
    for name, table in timed.items():
        timeline = plan.streams[name].timeline
        if table.num_rows:
            bounds = pc.min_max(timeline.to_ticks(table[timeline.column].combine_chunks()))
            found += [bounds["min"].as_py(), bounds["max"].as_py()]
    return min(found, default=0), max(found, default=0)


def run_joined(
    plan: RowPlan,
    engines: Mapping[str, LocalEngine],
    given: Mapping[str, Answer],
    frames: Mapping[str, Framed],
) -> tuple[dict[str, TableAnswer], Counter[str]]:
    """Answer aggregates over the sides of joins, and count the values that failed.

    Args:
        plan: The queries.
        engines: By stream, what was fed with its rows and answers the sides.
        given: Answers of sides that were made elsewhere.
        frames: The streams, whose first gives a result its kind of frame.
    """
    answers: dict[str, TableAnswer] = {}
    errors: Counter[str] = Counter()
    some = 1
    left = [final for final in plan.joined if not final.pairs]
    while left:
        finals, left = tuple(left[:some]), left[some:]
        names = {side.query.name for final in finals for side in final.sides}
        found = {name: answer.table() for name, answer in given.items() if name in names}
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


def run_spark_rows(
    plan: RowPlan, sources: Mapping[str, Any], tables: Mapping[str, pa.Table]
) -> RowOutcome:
    """Answer row queries over bounded Spark DataFrames by name, in one job without state.

    Aggregates over rows of joins are among them, sides of joins are answered elsewhere.

    Raises:
        DataError: For a folder of files.
    """
    from muntin.spark.bounded.rows import run_row_job  # noqa: PLC0415  it needs Spark
    from muntin.spark.bounded.source import FrameSource  # noqa: PLC0415

    for name, source in sources.items():
        if not isinstance(source, FrameSource):
            raise DataError(
                f"row queries read DataFrames, and {name or 'the input'} is a folder of files",
                hint="read the files with spark.read, and give that DataFrame",
            )
    frames = {name: each.rows() for name, each in sources.items()}
    found = run_row_job(with_sides(routed(plan)), frames, tables)
    first = {each.name: each.streams[0] for each in plan.joined}
    answers: dict[str, Answer] = {}
    for name, each in found.answers.items():
        if isinstance(each, pa.Table):
            answers[name] = TableAnswer(each, sources[first[name]].restore)
        else:
            answers[name] = each
    return RowOutcome(answers, plan, found.errors, dict(found.rows), dict(found.bad_rows))
