"""The plan of one bucket, where values of queries without groups lie in all of them."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from muntin.aggregates.shares import share_of
from muntin.expressions.binding.bound import whole_column
from muntin.plan.nodes import Final, Lowering, OutputColumn, Partials, SharedPlan


def plan_in(plan: SharedPlan, bucket: int, buckets: int) -> SharedPlan:
    """The plan as one of so many buckets runs it.

    Queries whose values are spread answer with shares, in every bucket. At home, in the bucket that
    has the entries of all rows, these stand beside what else the queries read; there alone are the
    windows without rows filled in. Other queries without groups are answered at home only. All
    queries stay in the plan of every bucket, since they decide together what is kept, and for
    how long.

    >>> from muntin.planner import Draft, Moment, Replanner
    >>> from muntin.plan import Timeline
    >>> from muntin.queries import queries
    >>> schema = pa.schema({"ts": pa.int64(), "v": pa.int64()})
    >>> sql = "SELECT sum(v), count(DISTINCT v) FROM s [RANGE 9 SLIDE 3]"
    >>> replanner = Replanner(Draft((), schema, Timeline.of(schema, "ts")), buckets=4)
    >>> plan = replanner.plan(queries(sql), {}, Moment())
    >>> for bucket in (plan.partials[0].home, 3):
    ...     (final,) = plan_in(plan, bucket, 4).finals
    ...     print([str(each.aggregate.type) for each in final.lowerings])
    ['int64', 'struct<values: int64, bytes: int64>']
    ['struct<values: int64, bytes: int64>']
    """
    if not plan.spread_queries:
        return plan
    homes = homes_in(plan, bucket, buckets)
    finals: list[Final] = []
    elsewhere: list[str] = []
    for final in plan.finals:
        node, is_spread = plan.partials[final.partials], final.name in plan.spread_queries
        is_home = bool(node.grouping) or final.partials in homes
        finals.append(_in_shares(final, node, is_home=is_home) if is_spread else final)
        if not (is_spread or is_home):
            elsewhere.append(final.name)
    return replace(plan, finals=tuple(finals), elsewhere=frozenset(elsewhere))


def homes_in(plan: SharedPlan, bucket: int, buckets: int) -> tuple[int, ...]:
    """The partials without groups that a bucket is home to: all else that its plan depends on."""
    return tuple(
        place
        for place, node in enumerate(plan.partials)
        if not node.grouping and node.home_in(buckets) == bucket
    )


def lies_in_all(node: Partials, lowering: Lowering) -> bool:
    """Whether the values that an aggregate is read off lie in all buckets."""
    read = lowering.accumulators
    return bool(read) and node.accumulators[read[0]].is_spread


def _in_shares(final: Final, node: Partials, *, is_home: bool) -> Final:
    """The query with shares of the aggregates that are spread, shown as they are."""
    kept = [
        place for place, each in enumerate(final.lowerings) if is_home or lies_in_all(node, each)
    ]
    lowerings = [
        _shared(each, is_home=is_home) if lies_in_all(node, each) else each
        for each in (final.lowerings[place] for place in kept)
    ]
    schema = pa.schema([(each.name, each.aggregate.type) for each in lowerings])
    techniques = tuple(
        final.techniques[place][: len(each.accumulators)]
        for place, each in zip(kept, lowerings, strict=True)
    )
    fills = final.query.emit_empty and is_home
    return replace(
        final,
        query=replace(final.query, emit_empty=fills),
        lowerings=tuple(lowerings),
        outputs=tuple(OutputColumn(field.name, whole_column(field)) for field in schema),
        having=None,
        schema=schema,
        techniques=techniques,
    )


def _shared(lowering: Lowering, *, is_home: bool) -> Lowering:
    aggregate = share_of(lowering.aggregate, is_home=is_home)
    read = lowering.accumulators[: len(aggregate.parts)]
    return replace(lowering, aggregate=aggregate, accumulators=read)
