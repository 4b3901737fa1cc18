"""``muntin.aggregate``: any number of queries over bounded data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from muntin.aggregates.caps import Guarantees, OnCap
from muntin.aggregators.choice import Prefer
from muntin.errors import DataError, Problem, QueryError
from muntin.faults import about_stream, failed_values, is_fail
from muntin.faults import bad_rows as bad_rows_error
from muntin.frames import check_names, of_stream, read_tables
from muntin.inputs import LocalSource, Source, planned, read_inputs, routed_inputs
from muntin.plan import SharedPlan, Strategy
from muntin.plan.joined import by_owner
from muntin.plan.timeline import Timeline
from muntin.planner import Draft
from muntin.planner.placement.optimizers import check_method
from muntin.planner.sharing import Optimizer, OptimizerName
from muntin.planner.techniques import Preferences
from muntin.queries import QueriesLike, Query, RowQuery, all_queries
from muntin.queries.rows import filling
from muntin.queries.spec import all_approximated, all_promised
from muntin.results import Answer, Outcome, Results
from muntin.windows.edges import Slicing

if TYPE_CHECKING:
    from muntin.engine import LocalEngine
    from muntin.plan.operators import RowPlan


def aggregate(
    data: Any,
    queries: QueriesLike,
    time: str | Mapping[str, str],
    *,
    name: str | None = None,
    tables: Mapping[str, Any] | None = None,
    emit_empty: bool = False,
    on_error: Literal["null", "fail"] = "null",
    on_bad_row: Literal["skip", "fail"] = "skip",
    strategy: Strategy = "cells",
    slicing: Slicing = "pairs",
    optimizer: OptimizerName = "auto",
    placement: str | None = None,
    timezone: str | None = None,
    technique: str | None = None,
    prefer: Prefer = "throughput",
    bounds: bool = False,
    on_cap: OnCap = "null",
    cap_values: int | None = None,
    cap_bytes: int | None = None,
    approximate: bool = False,
) -> Results:
    """Answer many sliding-window queries over bounded data in one shared pass.

    Every window that holds a row gives a result row per group: ``window_start``,
    ``window_end``, the group columns, then the aggregates. A window that ends at ``t`` covers
    ``[t - range, t)``. The order of the input rows does not matter.

    Queries over rows with lifetimes (joins of windowed streams, EXISTS, DISTINCT, EXCEPT and their
    like) give every row with ``valid_from`` and ``valid_to``, over data in this process or bounded
    Spark DataFrames.

    Args:
        data: A pyarrow Table or RecordBatch, an iterable of RecordBatches, a pandas or polars
            frame, a bounded Spark DataFrame, files that Spark's workers read
            (:func:`muntin.files`), or a mapping from names in FROM to such frames.
        queries: SQL text, a path to a ``.sql`` file, queries, or a list of these.
        time: The column of event times: timestamps, dates or integers; or one for each name.
        name: What FROM must call the data; by default FROM may use any name.
        tables: Frames that queries may join, by name: ``JOIN close ON trades.symbol =
            close.symbol``. A Spark DataFrame is collected.
        emit_empty: Fill the gaps between the windows of ungrouped queries.
        on_error: What happens to a value that fails (overflow, division by zero): ``null`` makes
            it NULL and counts it in ``Results.errors``, ``fail`` fails the call.
        on_bad_row: What happens to a row without a time: ``skip`` leaves it out and counts it in
            ``Results.bad_rows``, ``fail`` fails the call.
        strategy: What queries share. All give the same answers to the last bit; ``cells`` is the
            fastest, and the others are for comparison: ``unshared``, ``slices``, ``fragments``,
            ``shards``.
        slicing: How windows are cut into slices: ``pairs``, ``panes``, or ``cutty``, which cuts
            where windows start only and is for data in this process, not on Spark.
        optimizer: Who decides which queries share slices: ``auto``, ``weave_share`` and
            ``tri_weave`` (which aggregates rows once for all trees) weigh the costs,
            ``all_share`` and ``no_share`` do not. It changes no answer.
        placement: Who places trees without groups on Spark's buckets, and weaves them there: one
            of the thirteen names in ``muntin.planner.METHODS``, ``WG_I`` by
            default. It changes no answer; data in this process has no buckets.
        timezone: The zone of local times in expressions, as in ``hour(ts)`` or
            ``ts >= '2013-10-07 10:00:00'``: a region such as ``America/New_York``, or an offset
            such as ``+01:00``. The default is the Spark session's zone for data on Spark, and UTC
            for all other data. Windows are aligned in UTC.
        technique: The final technique that makes windows of slices, by its name in
            ``muntin.aggregators.names()``, for queries that name none themselves (``CREATE QUERY
            top WITH (technique = 'daba') AS ...``). Each query then has a structure of its own. The
            planner chooses if not given. It changes no answer.
        prefer: What the planner chooses by: ``throughput``, or ``latency`` where no step may be
            slow.
        bounds: Whether approximate aggregates have columns ``_low`` and ``_high`` beside them. This
            and the next three options are for queries that do not say it themselves.
        on_cap: What a window gives that has too many values for an exact aggregate over all of
            them: ``null``, which is counted, ``fail``, or ``approximate`` and a column ``_exact``.
        cap_values: How many different values a window may have; a million by default.
        cap_bytes: How many bytes these may have; 64 MB by default.
        approximate: Whether sums of products of several streams' DOUBLE columns are products of
            sums, for all queries; ``WITH (approximate = true)`` says so for one.

    Returns:
        Results by query name, as the same kind of frame as the data.

    >>> import pyarrow as pa
    >>> trades = pa.table({"ts": [1, 2, 5, 8], "price": [10.0, 20.0, 30.0, 40.0]})
    >>> results = aggregate(
    ...     trades, "SELECT sum(price) AS total FROM trades [RANGE 5 SLIDE 5]", time="ts")
    >>> results["q1"].to_pydict()
    {'window_start': [0, 5], 'window_end': [5, 10], 'total': [30.0, 70.0]}

    >>> opening = pa.table({"ts": pa.array([1_381_152_600], pa.timestamp("s", "UTC"))})
    >>> results = aggregate(
    ...     opening, "SELECT max(hour(ts)) AS hour FROM t [RANGE '1 h' SLIDE '1 h']", "ts",
    ...     timezone="America/New_York")
    >>> results["q1"]["hour"].to_pylist()
    [9]
    """
    fail_on_errors = is_fail("on_error", on_error, "null")
    fail_on_bad_rows = is_fail("on_bad_row", on_bad_row, "skip")
    if placement is not None:
        check_method(placement)
    everything = all_approximated(all_queries(queries)) if approximate else all_queries(queries)
    promised = Guarantees(bounds, on_cap, cap_values, cap_bytes)
    everything = all_promised(everything, promised)
    lived = [query for query in everything if isinstance(query, RowQuery)]
    asked = [query for query in everything if isinstance(query, Query)]
    if emit_empty:
        asked = [q if q.group_by else replace(q, emit_empty=True) for q in asked]
        lived = [filling(query) for query in lived]
    if not everything:
        raise QueryError([Problem("there are no queries", "give at least one SELECT")])
    frames = read_inputs(data, name, timezone)
    check_names("time", time, frames)
    joined = read_tables(tables, next(iter(frames.values())).zone.name)
    row_plan = _row_plan(lived, frames, time, joined) if lived else None
    sides = [] if row_plan is None else row_plan.sides
    inputs = routed_inputs(frames, [*asked, *sides])
    plans: dict[str, SharedPlan] = {}
    for source, (frame, members) in inputs.items():
        with about_stream(source if len(frames) > 1 else None):
            timeline = Timeline.of(frame.schema, of_stream(time, source, "time"))
        draft = Draft(
            members,
            frame.schema,
            timeline,
            tables={each: table.schema for each, table in joined.items()},
            strategy=strategy,
            slicing=slicing,
            zone=frame.zone,
            told=Preferences(technique, prefer, promised),
            sharer=Optimizer(optimizer),
        )
        plans[source] = planned(draft, frame, joined, placement)
    answers: dict[str, Answer] = {}
    rows, bad_rows, errors = 0, 0, Counter[str]()
    for source, found in _outcomes(inputs, plans, joined, frames, row_plan):
        if fail_on_bad_rows and found.bad_rows:
            column = of_stream(time, source, "time")
            raise bad_rows_error(found.bad_rows, f"column {column!r}")
        answers.update(found.answers)
        rows += found.rows
        bad_rows += found.bad_rows
        errors.update(found.errors)
    errors = by_owner(errors)
    if fail_on_errors and errors.total():
        raise failed_values(errors)
    plan_or_plans = next(iter(plans.values())) if len(plans) == 1 else plans
    ordered = {query.name: answers[query.name] for query in everything}
    return Results(
        ordered,
        plan_or_plans,
        rows=rows,
        bad_rows=bad_rows,
        errors=errors,
        row_plan=row_plan,
    )


def _row_plan(
    queries: Sequence[RowQuery],
    frames: Mapping[str, Source],
    time: str | Mapping[str, str],
    tables: Mapping[str, pa.Table],
) -> RowPlan:
    """The plan of row queries, over frames in this process or over Spark DataFrames."""
    from muntin.lifetimes import plan_rows  # noqa: PLC0415 - the operators bring numba

    read = {each.lower() for query in queries for each in query.streams}
    known = {name: frame for name, frame in frames.items() if name in read or not name}
    local = {name: frame for name, frame in frames.items() if isinstance(frame, LocalSource)}
    on_spark = {name: frame for name, frame in known.items() if name not in local}
    if on_spark and len(on_spark) < len(known):
        raise DataError(
            f"query {queries[0].name} reads Spark DataFrames and other frames together",
            hint="make DataFrames of all, or collect them, for example with toArrow()",
        )
    given = on_spark or local
    return plan_rows(
        queries, given, {name: of_stream(time, name, "time") for name in given}, tables
    )


def _outcomes(
    inputs: Mapping[str, tuple[Source, list[Query]]],
    plans: Mapping[str, SharedPlan],
    tables: Mapping[str, pa.Table],
    frames: Mapping[str, Source],
    row_plan: RowPlan | None,
) -> Iterator[tuple[str, Outcome]]:
    """What all queries give, by the stream whose rows are counted there."""
    local = {name: frame for name, frame in frames.items() if isinstance(frame, LocalSource)}
    given: dict[str, Answer] = {}
    if row_plan is not None and row_plan.finals:
        from muntin.lifetimes import run_rows, run_spark_rows  # noqa: PLC0415 - they bring numba

        if all(name in local for name in row_plan.streams):
            lived = run_rows(row_plan, local, tables)
        else:
            read = {name: frames[name] for name in row_plan.streams}
            paired = tuple(final for final in row_plan.joined if final.pairs)
            lived = run_spark_rows(replace(row_plan, joined=paired), read, tables)
        yield "", Outcome(lived.answers, errors=lived.errors)
        # Rows of a stream that aggregates read as well are counted with these.
        for name in [name for name in lived.rows if name not in inputs]:
            yield name, Outcome({}, lived.rows[name], lived.bad_rows[name])
    engines: dict[str, LocalEngine] = {}
    for name, (frame, members) in inputs.items():
        # What sides answer may be large: in this process it is made when it is combined.
        if name in local and any(member.kept for member in members):
            engines[name] = local[name].fed(plans[name], tables)
            continue
        outcome = frame.run(plans[name], tables)
        given |= {member.name: outcome.answers[member.name] for member in members if member.kept}
        yield name, outcome
    if row_plan is not None and row_plan.joined:
        from muntin.lifetimes import run_joined  # noqa: PLC0415 - the engine brings numba

        answers, errors = run_joined(row_plan, engines, given, frames)
        yield "", Outcome(answers, errors=errors)
    for name, engine in engines.items():
        yield name, local[name].closed(engine)
