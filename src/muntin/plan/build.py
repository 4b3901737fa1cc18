"""From queries and a schema to a shared plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from muntin.errors import MuntinError, Problem, QueryError
from muntin.plan.bind import BoundQuery, bind_query
from muntin.plan.nodes import Accumulator, Final, Lowering, Partials, SharedPlan, Slicing
from muntin.plan.timeline import Timeline
from muntin.queries import Query
from muntin.windows import Window, reduce_classes


def build_plan(queries: Sequence[Query], schema: pa.Schema, time: str) -> SharedPlan:
    """Bind queries to a schema and share what they have in common.

    Queries with the same windowed attribute, groups and predicate share one set of partials;
    within it, equal parts of their aggregates are kept once. Problems of all queries are
    reported together.

    >>> from muntin.queries import queries
    >>> schema = pa.schema({"ts": pa.timestamp("us"), "v": pa.float64()})
    >>> print(build_plan(queries("SELECT avg(v), sum(v) FROM s [RANGE '1 min' SLIDE '1 min']"),
    ...                  schema, "ts"))
    SharedPlan  1 query → 1 set of partials  nothing to share
    ├─ slices of ts  1 window → 60 edges/h
    └─ partials 1
       ├─ count(*), sum(v), count(v)  serve q1
       └─ final q1  range 1 minute slide 1 minute  gives avg(v), sum(v)
    """
    timeline = Timeline.of(schema, time)
    bound: list[BoundQuery] = []
    problems: list[Problem] = []
    for query in queries:
        try:
            bound.append(bind_query(query, schema, timeline))
        except QueryError as error:
            problems.extend(error.problems)
        except MuntinError as error:
            problems.append(Problem(error.message, error.hint, query.name))
    if problems:
        raise QueryError(problems)
    return _share(bound, schema, timeline)


def _share(bound: Sequence[BoundQuery], schema: pa.Schema, timeline: Timeline) -> SharedPlan:
    slicings = _share_slices(bound)
    numbers = {(s.measure, s.timeline): number for number, s in enumerate(slicings)}
    shared: dict[tuple[object, ...], list[BoundQuery]] = {}
    for query in bound:
        shared.setdefault((query.axis, query.grouping, query.predicate), []).append(query)

    partials: list[Partials] = []
    finals: dict[str, Final] = {}
    for number, members in enumerate(shared.values()):
        first = members[0]
        accumulators = _share_partials(members)
        partials.append(
            Partials(numbers[first.axis], first.grouping, first.predicate, tuple(accumulators))
        )
        for query in members:
            finals[query.query.name] = _final(query, number, accumulators)
    in_order = tuple(finals[query.query.name] for query in bound)
    return SharedPlan(schema, timeline, slicings, tuple(partials), in_order)


def _share_slices(bound: Sequence[BoundQuery]) -> tuple[Slicing, ...]:
    """One slicing per windowed attribute, cut by the edges of every window over it."""
    windows: dict[tuple[str, Timeline], dict[Window, None]] = {}
    for query in bound:
        windows.setdefault(query.axis, {})[query.query.window] = None
    return tuple(
        Slicing(measure, timeline, tuple(members), _edge_classes(members))
        for (measure, timeline), members in windows.items()
    )


def _edge_classes(windows: Iterable[Window]) -> tuple[tuple[int, int], ...]:
    return reduce_classes(edges for window in windows for edges in window.edge_classes())


def _share_partials(members: Sequence[BoundQuery]) -> dict[Accumulator, int]:
    """The distinct accumulators of queries that agree on rows and groups, numbered."""
    accumulators: dict[Accumulator, int] = {}
    for query in members:
        for accumulator in query.accumulators():
            accumulators.setdefault(accumulator, len(accumulators))
    return accumulators


def _final(bound: BoundQuery, partials: int, accumulators: dict[Accumulator, int]) -> Final:
    lowerings = tuple(
        Lowering(
            call.name,
            call.aggregate,
            call.args,
            call.filter,
            tuple(accumulators[accumulator] for accumulator in call.accumulators()),
        )
        for call in bound.calls
    )
    return Final(
        bound.query, partials, lowerings, bound.outputs, bound.having, bound.lowered_schema
    )
