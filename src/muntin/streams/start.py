"""Several streams that start, or resume from a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from muntin.errors import DataError
from muntin.expressions.zones import Zone
from muntin.faults import about_stream
from muntin.frames import read_tables
from muntin.plan import SharedPlan, Timeline
from muntin.plan.operators import StreamSchema
from muntin.plan.timeline import check_one_clock
from muntin.planner.rows import row_plan
from muntin.planner.sharing import Optimizer
from muntin.queries import AnyQuery, RowQuery
from muntin.streams.group import StreamGroup
from muntin.streams.live import LiveEngine
from muntin.streams.members import aggregates_of, columns_read, relation_schemas
from muntin.streams.snapshots import (
    check_lateness,
    check_relations,
    check_resumed,
    unpacked_group,
)
from muntin.windows import DurationLike


def open_group(
    queries: Sequence[AnyQuery],
    schemas: Mapping[str, pa.Schema],
    *,
    times: Mapping[str, str],
    lateness: Mapping[str, DurationLike],
    idle: Mapping[str, DurationLike | None],
    advance_when_idle: Mapping[str, DurationLike | None],
    tables: Mapping[str, pa.Table],
    zone: Zone,
    build: Callable[..., SharedPlan],
    reviewer: Callable[[], Optimizer],
    snapshot: Any = None,
    relations: Mapping[str, pa.Table] | None = None,
    **options: Any,
) -> StreamGroup:
    """Several streams that start, or resume from a snapshot.

    Args:
        queries: What runs from the first batch on.
        schemas: The columns of each stream.
        times: The time column of each stream.
        lateness: How far rows of each stream may be out of order.
        idle: How long each may be silent before it holds the others back no longer.
        advance_when_idle: How long each may be silent before the clock moves it.
        tables: What aggregates may join.
        zone: Where local times are asked for.
        build: What makes a plan of queries, a schema and a time column.
        reviewer: What makes an optimizer for one stream.
        snapshot: What `StreamGroup.snapshot` gave.
        relations: Retroactive relations; a snapshot has their rows.
        options: Further arguments of `StreamGroup`.
    """
    if len({name.lower() for name in schemas}) < len(schemas):
        raise DataError(
            f"streams {', '.join(schemas)} differ only in letter case", hint="rename one of them"
        )
    streams = {}
    for name, schema in schemas.items():
        with about_stream(name if len(schemas) > 1 else None):
            streams[name] = StreamSchema(schema, Timeline.of(schema, times[name]))
    lines = {name: each.timeline for name, each in streams.items()}
    options["idle"] = {name: line.silence("idle", idle[name]) for name, line in lines.items()}
    options["by_clock"] = {
        name: line.silence("advance_when_idle", advance_when_idle[name])
        for name, line in lines.items()
    }
    if any(each is not None for each in idle.values()):
        check_one_clock(lines)
    rows = [query for query in queries if isinstance(query, RowQuery)]
    static = {name: table.schema for name, table in tables.items()}
    updated = relation_schemas(streams, relations)
    known = streams | updated
    asked = aggregates_of(queries, schemas, row_plan(rows, known, zone, static))
    held = None if snapshot is None else unpacked_group(snapshot, schemas)
    if held is not None:
        check_relations(held["relations"], {name: each.schema for name, each in updated.items()})
    engines = {}
    for name, schema in schemas.items():
        own = reviewer()
        if held is not None:
            plan, state = held["engines"][name]
            read = columns_read(held["rows"][0], name)
            check_resumed(plan, schema, times[name], zone, read)
            engines[name] = LiveEngine.restore(plan, state, tables=tables, optimizer=own)
            check_lateness(engines[name].lateness, plan.timeline, lateness[name])
            continue
        joined = {each: table.schema for each, table in tables.items()}
        plan = build(asked[name], schema, times[name], tables=joined, sharer=own, zone=zone)
        ticks = plan.timeline.lateness(lateness[name])
        engines[name] = LiveEngine(plan, ticks, tables=tables, optimizer=own)
    if held is None:
        return StreamGroup(engines, queries, zone=zone, relations=relations, **options)
    group = StreamGroup(engines, held["queries"], zone=zone, relations=relations, **options)
    group.resume(held)
    if group.queries() != list(queries):
        group.replace(queries)
    return group


def resume_group(snapshot: Any, tables: Mapping[str, Any] | None, **options: Any) -> StreamGroup:
    """Several streams that resume from a snapshot alone.

    Args:
        snapshot: What `StreamGroup.snapshot` gave.
        tables: The frames that queries join, which it does not hold.
        options: What happens to values that fail and to rows without a usable time.
    """
    held = unpacked_group(snapshot)
    joined = read_tables(tables, held["zone"].name)
    engines = {
        name: LiveEngine.restore(plan, state, tables=joined, optimizer=Optimizer("auto"))
        for name, (plan, state) in held["engines"].items()
    }
    idle, by_clock = held["silences"]
    relations = {name: schema.empty_table() for name, schema in held["relations"].items()}
    group = StreamGroup(
        engines,
        held["queries"],
        zone=held["zone"],
        idle=idle,
        by_clock=by_clock,
        relations=relations,
        **options,
    )
    group.resume(held)
    return group
