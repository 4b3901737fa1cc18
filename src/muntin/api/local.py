"""``muntin.stream``: any number of queries over streams in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

import pyarrow as pa

from muntin.aggregates.caps import Guarantees, OnCap
from muntin.aggregators.choice import Prefer
from muntin.errors import DataError
from muntin.expressions.zone_names import zone as zone_named
from muntin.faults import is_fail
from muntin.frames import by_stream, check_names, is_frame, of_stream, read_tables, schema_of
from muntin.plan import Strategy
from muntin.plan.timeline import Timeline
from muntin.planner import build_plan
from muntin.planner.sharing import Optimizer, OptimizerName
from muntin.queries import (
    AnyKeep,
    KeepsLike,
    QueriesLike,
    RowQuery,
    all_queries,
    queries_and_keeps,
)
from muntin.queries import queries as read_queries
from muntin.queries.spec import all_approximated, all_promised
from muntin.windows import DurationLike, duration
from muntin.windows.edges import Slicing

if TYPE_CHECKING:
    from muntin.streams import Stream, StreamGroup


class Options(TypedDict, total=False):
    """What :func:`stream` takes in the same way for one stream and for several."""

    tables: Mapping[str, Any] | None
    on_error: Literal["null", "fail"]
    on_bad_row: Literal["skip", "fail"]
    max_ahead: DurationLike | None
    strategy: Strategy
    slicing: Slicing
    optimizer: OptimizerName
    timezone: str
    technique: str | None
    prefer: Prefer
    bounds: bool
    on_cap: OnCap
    cap_values: int | None
    cap_bytes: int | None
    approximate: bool
    keeps: KeepsLike | None


@overload
def stream(
    queries: QueriesLike,
    schema: Mapping[str, pa.Schema] | Mapping[str, Mapping[str, Any]],
    time: str | Mapping[str, str] = "ts",
    *,
    lateness: DurationLike | Mapping[str, DurationLike] = 0,
    idle: DurationLike | Mapping[str, DurationLike] | None = None,
    advance_when_idle: DurationLike | Mapping[str, DurationLike] | None = None,
    relations: Mapping[str, Any] | None = None,
    snapshot: bytes | None = None,
    **options: Unpack[Options],
) -> StreamGroup: ...


@overload
def stream(
    queries: QueriesLike,
    schema: Any,
    time: str = "ts",
    *,
    name: str | None = None,
    lateness: DurationLike = 0,
    snapshot: bytes | Sequence[bytes] | None = None,
    **options: Unpack[Options],
) -> Stream: ...


def stream(
    queries: QueriesLike,
    schema: Any,
    time: str | Mapping[str, str] = "ts",
    *,
    name: str | None = None,
    tables: Mapping[str, Any] | None = None,
    relations: Mapping[str, Any] | None = None,
    lateness: DurationLike | Mapping[str, DurationLike] = 0,
    idle: DurationLike | Mapping[str, DurationLike] | None = None,
    advance_when_idle: DurationLike | Mapping[str, DurationLike] | None = None,
    on_error: Literal["null", "fail"] = "null",
    on_bad_row: Literal["skip", "fail"] = "skip",
    max_ahead: DurationLike | None = "1 day",
    strategy: Strategy = "cells",
    slicing: Slicing = "pairs",
    optimizer: OptimizerName = "auto",
    timezone: str = "UTC",
    technique: str | None = None,
    prefer: Prefer = "throughput",
    bounds: bool = False,
    on_cap: OnCap = "null",
    cap_values: int | None = None,
    cap_bytes: int | None = None,
    approximate: bool = False,
    snapshot: bytes | Sequence[bytes] | None = None,
    keeps: KeepsLike | None = None,
) -> Stream | StreamGroup:
    """Answer many sliding-window queries over a stream in this process, without Spark.

    It is the engine that Spark's workers run, and gives the same answers to the last bit. Batches
    are fed by hand, from any source; rows may be out of order by as much as ``lateness``.

    Args:
        queries: SQL text, a path to a ``.sql`` file, queries, or a list of these. With queries over
            rows it is a :class:`StreamGroup` that runs, be it of one stream.
        schema: The columns of the batches: a pyarrow Schema, a mapping of names to Arrow types, or
            a frame that has such columns. Several streams are a mapping of their names to these;
            then :meth:`StreamGroup.feed` takes the name of the stream beside a batch.
        time: The column of event times: timestamps, dates or integers; or one for each stream.
        name: What FROM must call the stream; any name will do if not given.
        tables: Frames that queries may join, by name.
        relations: Retroactive relations by name, frames of what they hold at first: unlike a
            table's, an update holds for rows that came before it, too. Queries over rows may join
            them; see :meth:`StreamGroup.update`.
        lateness: How far rows may be out of order: a duration, or a number if times are numbers;
            or by stream, 0 for those that are not named.
        idle: How long a stream may be silent, by the clock, before it holds the others back no
            longer; if not given, a silent stream holds all queries that read it. One value, or by
            stream.
        advance_when_idle: How long one of several streams may be silent before the clock moves it,
            with the next batch of any: its W is then its largest event time plus the time since,
            less its lateness. One value, or by stream. A stream alone is moved by ``advance``.
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
        bounds: Whether approximate aggregates have columns for their bounds; see
            :func:`aggregate`, as for the next three options.
        on_cap: What a window over its cap gives: ``null``, ``fail`` or ``approximate``.
        cap_values: How many different values a window may have.
        cap_bytes: How many bytes these may have.
        approximate: Whether sums of products of several streams' DOUBLE columns are products of
            sums, for all queries given here; ``WITH (approximate = true)`` says so for one.
        snapshot: What :meth:`Stream.snapshot` gave, to resume from: a whole one, or a list of a
            whole one and those taken since, each since the one before. The stream has the queries,
            the lateness and the choices that it had at the last; another ``lateness`` is refused.
            If ``queries`` are others, those that are new join and those that are missing leave.
        keeps: What is kept to be asked, from the first batch on: ``CREATE KEEP`` statements, or
            what :func:`muntin.keep` makes. They may stand among the queries as well. See
            :meth:`Stream.keep`.

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
    is_fail("on_error", on_error, "null")
    is_fail("on_bad_row", on_bad_row, "skip")
    queries, kept = queries_and_keeps(queries, keeps)
    several = _several(schema)
    if several is None and any(isinstance(each, RowQuery) for each in all_queries(queries)):
        # Row queries run beside aggregates in a group, which may be of one stream.
        several, name = {name or "": schema}, None
    guarantees = Guarantees(bounds, on_cap, cap_values, cap_bytes)
    zone = zone_named("UTC" if timezone is None else timezone)
    if several is not None:
        from muntin.streams import open_group  # noqa: PLC0415 - it brings numba

        if name is not None:
            raise DataError(f"name is {name!r}", hint="several streams have the names in schema")
        asked = all_promised(all_queries(queries), guarantees)
        check_names("time", time, several)
        group = open_group(
            all_approximated(asked) if approximate else asked,
            {each: schema_of(columns) for each, columns in several.items()},
            times={each: of_stream(time, each, "time") for each in several},
            lateness=_each("lateness", lateness, several, 0),
            idle=_each("idle", idle, several, None),
            advance_when_idle=_each("advance_when_idle", advance_when_idle, several, None),
            tables=read_tables(tables, zone.name),
            relations=read_tables(relations, zone.name),
            zone=zone,
            build=partial(
                build_plan,
                strategy=strategy,
                slicing=slicing,
                technique=technique,
                prefer=prefer,
                guarantees=guarantees,
            ),
            reviewer=partial(Optimizer, optimizer),
            on_error=on_error,
            on_bad_row=on_bad_row,
            max_ahead=None if max_ahead is None else duration(max_ahead),
            snapshot=snapshot,
        )
        if kept is not None:
            _keep_only(group, kept)
        return group
    if relations:
        raise DataError(
            "no query over rows joins the relations",
            hint="only queries that show rows join relations; give frames in tables= to others",
        )
    silences = idle is not None or advance_when_idle is not None
    if isinstance(time, Mapping) or isinstance(lateness, Mapping) or silences:
        raise DataError(
            "time, lateness or idle are those of several streams, and there is one",
            hint='give the columns of each by name, as in schema={"orders": ..., "payments": ...}',
        )
    # The engine brings numba, which takes longer to import than everything else together.
    from muntin.streams import LiveEngine, Stream, check_lateness, check_resumed, unpacked  # noqa: PLC0415

    asked = read_queries(queries)
    joined = read_tables(tables, zone.name)
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
            zone=zone,
            technique=technique,
            prefer=prefer,
            guarantees=guarantees,
        )
        engine = LiveEngine(plan, timeline.lateness(lateness), tables=joined, optimizer=reviewer)
    else:
        plan, states, before = unpacked(snapshot)
        check_resumed(plan, columns, time, None if timezone is None else zone_named(timezone))
        engine = LiveEngine.restore(plan, states, tables=joined, optimizer=reviewer)
        check_lateness(engine.lateness, plan.timeline, lateness)
        if [final.query for final in plan.finals] != list(asked):
            engine.replace(asked)
    engine.threads = pa.cpu_count()
    ahead = None if max_ahead is None else duration(max_ahead)
    opened = Stream(engine, name=name, on_error=on_error, on_bad_row=on_bad_row, max_ahead=ahead)
    if snapshot is not None:
        opened.resume_keeps(before)
    if kept is not None:
        _keep_only(opened, kept)
    return opened


def _keep_only(stream: Stream | StreamGroup, wanted: Sequence[AnyKeep]) -> None:
    """Keep what is named, and nothing else; what is kept already stays."""
    held = {each.name.lower(): each for each in stream.keeps()}
    for name in held.keys() - {each.name.lower() for each in wanted}:
        stream.drop_keep(name)
    for each in wanted:
        before = held.get(each.name.lower())
        if before is not None and before != each:
            stream.drop_keep(each.name)
        if before != each:
            stream.keep(each)


def _several(schema: Any) -> dict[str, Any] | None:
    """The columns of several streams by name; None if these are the columns of one."""
    if not isinstance(schema, Mapping) or is_frame(schema) or not schema:
        return None
    kinds = [isinstance(each, pa.Schema | Mapping) or is_frame(each) for each in schema.values()]
    return {str(each): columns for each, columns in schema.items()} if all(kinds) else None


def _each(option: str, given: Any, names: Mapping[str, Any], default: Any) -> dict[str, Any]:
    """An option by stream."""
    return dict(zip(names, by_stream(option, given, list(names), default), strict=True))
