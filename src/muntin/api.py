"""What users call: ``aggregate`` for bounded data, ``stream`` for a stream in this process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, overload

import pyarrow as pa

from muntin.aggregators.choice import Prefer
from muntin.display import count
from muntin.errors import DataError, MuntinError, Problem, QueryError
from muntin.expressions.zone_names import zone as zone_named
from muntin.frames import (
    is_frame,
    of_stream,
    read_tables,
    schema_of,
)
from muntin.inputs import LocalSource, Source, planned, read_inputs, routed_inputs
from muntin.plan import SharedPlan, Strategy
from muntin.plan.timeline import Timeline
from muntin.planner import Draft, build_plan
from muntin.planner.placement.optimizers import check_method
from muntin.planner.sharing import Optimizer, OptimizerName
from muntin.planner.techniques import Preferences
from muntin.queries import QueriesLike, Query, RowQuery, all_queries
from muntin.queries import queries as read_queries
from muntin.results import Answer, Results
from muntin.windows import DurationLike, duration
from muntin.windows.edges import Slicing

if TYPE_CHECKING:
    from muntin.lifetimes import RowOutcome
    from muntin.plan.operators import RowPlan
    from muntin.streams import Stream, StreamGroup


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
) -> Results:
    """Answer many sliding-window queries over bounded data in one shared pass.

    Every window that holds a row gives a result row per group: ``window_start``,
    ``window_end``, the group columns, then the aggregates. A window that ends at ``t`` covers
    ``[t - range, t)``. The order of the input rows does not matter.

    Queries over rows with lifetimes (joins of windowed streams, EXISTS, DISTINCT, EXCEPT and their
    like) give every row with ``valid_from`` and ``valid_to``, and run on data in this process.

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
            of the thirteen names in ``muntin.planner.METHODS``, ``WG_I`` unless said
            otherwise. It changes no answer; data in this process has no buckets.
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

    Returns:
        Results by query name, as the same kind of frame as the data.

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
    _check_choice("on_error", on_error, ("null", "fail"))
    _check_choice("on_bad_row", on_bad_row, ("skip", "fail"))
    if placement is not None:
        check_method(placement)
    everything = all_queries(queries)
    lived = [query for query in everything if isinstance(query, RowQuery)]
    asked = [query for query in everything if isinstance(query, Query)]
    if emit_empty:
        asked = [q if q.group_by else replace(q, emit_empty=True) for q in asked]
    if not everything:
        raise QueryError([Problem("there are no queries", "give at least one SELECT")])
    frames = read_inputs(data, name, timezone)
    inputs = routed_inputs(frames, asked)
    joined = read_tables(tables)
    plans: dict[str, SharedPlan] = {}
    answers: dict[str, Answer] = {}
    rows, bad_rows, errors = 0, 0, Counter[str]()
    row_plan = None
    if lived:
        outcome, row_plan = _lived(lived, frames, time, on_bad_row)
        # Rows of a stream that aggregates read as well are counted with these.
        rows = sum(many for each, many in outcome.rows.items() if each not in inputs)
        bad_rows = sum(many for each, many in outcome.bad_rows.items() if each not in inputs)
        answers.update(outcome.answers)
        errors.update(outcome.errors)
    for source, (frame, members) in inputs.items():
        draft = Draft(
            members,
            frame.schema,
            Timeline.of(frame.schema, of_stream(time, source, "time")),
            tables={each: table.schema for each, table in joined.items()},
            strategy=strategy,
            slicing=slicing,
            zone=frame.zone,
            told=Preferences(technique, prefer),
            sharer=Optimizer(optimizer),
        )
        plan = plans[source] = planned(draft, frame, joined, placement)
        found = frame.run(plan, joined)
        if on_bad_row == "fail" and found.bad_rows:
            raise _bad_rows(found.bad_rows, plan.timeline.column)
        answers.update(found.answers)
        rows += found.rows
        bad_rows += found.bad_rows
        errors.update(found.errors)
    if on_error == "fail" and errors.total():
        raise _failed(errors)
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


@overload
def stream(
    queries: QueriesLike,
    schema: Mapping[str, pa.Schema] | Mapping[str, Mapping[str, Any]],
    time: str | Mapping[str, str] = "ts",
    *,
    tables: Mapping[str, Any] | None = None,
    lateness: DurationLike | Mapping[str, DurationLike] = 0,
    idle: DurationLike | None = None,
    on_error: Literal["null", "fail"] = "null",
    on_bad_row: Literal["skip", "fail"] = "skip",
    max_ahead: DurationLike | None = "1 day",
    strategy: Strategy = "cells",
    slicing: Slicing = "pairs",
    optimizer: OptimizerName = "auto",
    timezone: str = "UTC",
    technique: str | None = None,
    prefer: Prefer = "throughput",
    snapshot: bytes | None = None,
) -> StreamGroup: ...


@overload
def stream(
    queries: QueriesLike,
    schema: Any,
    time: str = "ts",
    *,
    name: str | None = None,
    tables: Mapping[str, Any] | None = None,
    lateness: DurationLike = 0,
    on_error: Literal["null", "fail"] = "null",
    on_bad_row: Literal["skip", "fail"] = "skip",
    max_ahead: DurationLike | None = "1 day",
    strategy: Strategy = "cells",
    slicing: Slicing = "pairs",
    optimizer: OptimizerName = "auto",
    timezone: str = "UTC",
    technique: str | None = None,
    prefer: Prefer = "throughput",
    snapshot: bytes | Sequence[bytes] | None = None,
) -> Stream: ...


def stream(
    queries: QueriesLike,
    schema: Any,
    time: str | Mapping[str, str] = "ts",
    *,
    name: str | None = None,
    tables: Mapping[str, Any] | None = None,
    lateness: DurationLike | Mapping[str, DurationLike] = 0,
    idle: DurationLike | None = None,
    on_error: Literal["null", "fail"] = "null",
    on_bad_row: Literal["skip", "fail"] = "skip",
    max_ahead: DurationLike | None = "1 day",
    strategy: Strategy = "cells",
    slicing: Slicing = "pairs",
    optimizer: OptimizerName = "auto",
    timezone: str = "UTC",
    technique: str | None = None,
    prefer: Prefer = "throughput",
    snapshot: bytes | Sequence[bytes] | None = None,
) -> Stream | StreamGroup:
    """Answer many sliding-window queries over a stream in this process, without Spark.

    It is the engine that Spark's workers run, and gives the same answers to the last bit. Batches
    are fed by hand, from any source; rows may be out of order by as much as ``lateness``.

    Args:
        queries: SQL text, a path to a ``.sql`` file, queries, or a list of these.
        schema: The columns of the batches: a pyarrow Schema, a mapping of names to Arrow types, or
            a frame that has such columns. Several streams are a mapping of their names to these;
            then :meth:`StreamGroup.feed` takes the name of the stream beside a batch.
        time: The column of event times: timestamps, dates or integers; or one for each stream.
        name: What FROM must call the stream; any name will do if not given.
        tables: Frames that queries may join, by name.
        lateness: How far rows may be out of order: a duration, or a number if times are numbers;
            or one for each stream.
        idle: How long a stream may be silent, by the clock, before it holds the others back no
            longer; if not given, a silent stream holds all queries that read it.
        on_error: What a value that fails (overflow, division by zero) does: it becomes NULL and is
            counted, or it ends the stream.
        on_bad_row: What a row without a time that can be used does: it is left out and counted,
            or it ends the stream.
        max_ahead: How far ahead of the clock a time may be; a row beyond is a bad row. None for
            any. Times that are numbers have no clock.
        strategy: What queries share; see :func:`aggregate`.
        slicing: How windows are cut into slices: ``pairs`` or ``panes``.
        optimizer: Who decides which queries share slices; see :func:`aggregate`.
        timezone: Where the local times are that expressions ask for; see :func:`aggregate`.
        technique: The final technique of queries that name none; see :func:`aggregate`.
        prefer: What the planner chooses techniques by: ``throughput`` or ``latency``.
        snapshot: What :meth:`Stream.snapshot` gave, to resume from: a whole one, or a list of a
            whole one and those taken since, each since the one before. The stream has the queries,
            the lateness and the choices that it had at the last; if ``queries`` are others, those
            that are new join and those that are missing leave.

    >>> columns = {"ts": "int64", "vol": "int64"}
    >>> volume = stream("SELECT sum(vol) AS vol FROM trades [RANGE 10 SLIDE 5]", columns)
    >>> len(volume.feed(pa.table({"ts": [1, 4, 7], "vol": [10, 20, 30]}))["q1"])
    1
    >>> volume.feed(pa.table({"ts": [12], "vol": [40]}))["q1"].to_pydict()
    {'window_start': [0], 'window_end': [10], 'vol': [60]}

    >>> paid = stream(
    ...     "SELECT o.id FROM orders [RANGE 10] o JOIN payments [RANGE 5] p ON o.id = p.id",
    ...     {"orders": {"ts": "int64", "id": "int64"}, "payments": {"ts": "int64", "id": "int64"}},
    ... )
    >>> len(paid.feed(pa.table({"ts": [1], "id": [7]}), "orders")["q1"])
    0
    >>> paid.feed(pa.table({"ts": [4], "id": [7]}), "payments")["q1"].to_pydict()
    {'valid_from': [4], 'valid_to': [9], 'id': [7]}
    """
    _check_choice("on_error", on_error, ("null", "fail"))
    _check_choice("on_bad_row", on_bad_row, ("skip", "fail"))
    several = _several(schema)
    if several is not None:
        from muntin.streams import open_group  # noqa: PLC0415 - it brings numba

        if name is not None:
            raise DataError(f"name is {name!r}", hint="several streams have the names in schema")
        return open_group(
            all_queries(queries),
            {each: schema_of(columns) for each, columns in several.items()},
            times={each: of_stream(time, each, "time") for each in several},
            lateness={each: of_stream(lateness, each, "lateness") for each in several},
            idle=None if idle is None else duration(idle),
            tables=read_tables(tables),
            zone=zone_named(timezone or "UTC"),
            build=partial(
                build_plan, strategy=strategy, slicing=slicing, technique=technique, prefer=prefer
            ),
            reviewer=partial(Optimizer, optimizer),
            on_error=on_error,
            on_bad_row=on_bad_row,
            max_ahead=None if max_ahead is None else duration(max_ahead),
            snapshot=snapshot,
        )
    if isinstance(time, Mapping) or isinstance(lateness, Mapping) or idle is not None:
        raise DataError(
            "time, lateness or idle are those of several streams, and there is one",
            hint='give the columns of each by name, as in schema={"orders": ..., "payments": ...}',
        )
    # The engine brings numba, which takes longer to import than everything else together.
    from muntin.streams import LiveEngine, Stream, check_resumed, unpacked  # noqa: PLC0415

    asked = read_queries(queries)
    joined = read_tables(tables)
    columns = schema_of(schema)
    timeline = Timeline.of(columns, time)
    reviewer = Optimizer(optimizer)
    if snapshot is None:
        plan = build_plan(
            asked,
            columns,
            time,
            strategy=strategy,
            slicing=slicing,
            tables={each: table.schema for each, table in joined.items()},
            sharer=reviewer,
            zone=zone_named(timezone or "UTC"),
            technique=technique,
            prefer=prefer,
        )
        engine = LiveEngine(plan, timeline.lateness(lateness), tables=joined, optimizer=reviewer)
    else:
        plan, states = unpacked(snapshot)
        check_resumed(plan, columns, time, None if timezone is None else zone_named(timezone))
        engine = LiveEngine.restore(plan, states, tables=joined, optimizer=reviewer)
        if [final.query for final in plan.finals] != list(asked):
            engine.replace(asked)
    engine.threads = pa.cpu_count()
    ahead = None if max_ahead is None else duration(max_ahead)
    return Stream(engine, name=name, on_error=on_error, on_bad_row=on_bad_row, max_ahead=ahead)


def _several(schema: Any) -> dict[str, Any] | None:
    """The columns of several streams by name; None if these are the columns of one."""
    if not isinstance(schema, Mapping) or is_frame(schema) or not schema:
        return None
    kinds = [isinstance(each, pa.Schema | Mapping) or is_frame(each) for each in schema.values()]
    return {str(each): columns for each, columns in schema.items()} if all(kinds) else None


def _lived(
    queries: Sequence[RowQuery],
    frames: Mapping[str, Source],
    time: str | Mapping[str, str],
    on_bad_row: str,
) -> tuple[RowOutcome, RowPlan]:
    """What row queries give, which run over frames in this process."""
    from muntin.lifetimes import run_rows  # noqa: PLC0415 - the operators bring numba

    read = {each.lower() for query in queries for each in query.streams}
    local = {}
    for name, frame in frames.items():
        if not isinstance(frame, LocalSource):
            if name in read or not name:
                raise DataError(
                    f"query {queries[0].name} shows rows, which Spark does not run yet",
                    hint="collect the streams first, for example with toArrow()",
                )
            continue
        local[name] = frame
    times = {name: of_stream(time, name, "time") for name in local}
    outcome = run_rows(queries, local, times)
    bad = [name for name, rows in outcome.bad_rows.items() if rows]
    if on_bad_row == "fail" and bad:
        raise _bad_rows(outcome.bad_rows[bad[0]], times[bad[0]])
    return outcome, outcome.plan


def _check_choice(option: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise DataError(f"{option} must be one of {', '.join(choices)}, not {value!r}")


def _bad_rows(rows: int, column: str) -> DataError:
    have = "has" if rows == 1 else "have"
    return DataError(
        f"{count(rows, 'row')} {have} no time in {column!r}",
        hint='filter them out before, or count and skip them with on_bad_row="skip"',
    )


def _failed(errors: Counter[str]) -> MuntinError:
    name, most = errors.most_common(1)[0]
    return DataError(
        f"{count(errors.total(), 'value')} failed (overflow, division by zero or a bad cast), "
        f"{most:,} of them in query {name}",
        hint='guard the expression, or take NULL for such values with on_error="null"',
    )
