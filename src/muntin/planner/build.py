"""From queries to a plan: one tuple of steps, each of which takes a draft further."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from muntin._garbage import uncollected
from muntin.aggregates.caps import UNSAID, Guarantees
from muntin.aggregators.choice import Prefer
from muntin.expressions.zones import UTC, Zone
from muntin.plan.nodes import SharedPlan, Strategy
from muntin.plan.relations import Relation
from muntin.plan.timeline import Timeline
from muntin.planner.continuity import continues
from muntin.planner.draft import Draft
from muntin.planner.owners import Sharer, share_all
from muntin.planner.steps.assemble import assemble
from muntin.planner.steps.bind import bind
from muntin.planner.steps.cells import cells
from muntin.planner.steps.share import share
from muntin.planner.steps.weigh import weigh
from muntin.planner.techniques import Preferences
from muntin.queries import Query
from muntin.windows.edges import Slicing as SlicingName

Step = Callable[[Draft], Draft]

STEPS: tuple[Step, ...] = (bind, weigh, share, cells, assemble)


def build_plan(
    queries: Sequence[Query],
    schema: pa.Schema,
    time: str,
    *,
    strategy: Strategy = "cells",
    slicing: SlicingName = "pairs",
    tables: Mapping[str, pa.Schema] | None = None,
    rate: float | None = None,
    sample: pa.Table | Mapping[Relation, pa.Table] | None = None,
    previous: SharedPlan | None = None,
    sharer: Sharer = share_all,
    watermark: int | None = None,
    zone: Zone = UTC,
    technique: str | None = None,
    prefer: Prefer = "throughput",
    guarantees: Guarantees = UNSAID,
) -> SharedPlan:
    """Bind queries to a schema and share what they have in common.

    Which queries share a set of partials is the strategy's rule; within it, equal parts of their
    aggregates are kept once. Problems of all queries are reported together.

    Args:
        queries: The queries.
        schema: The columns of the rows.
        time: The column of event times.
        strategy: ``unshared``, ``slices``, ``fragments``, ``shards`` or ``cells``.
        slicing: How windows are cut: ``panes``, ``pairs`` or ``cutty``.
        tables: The columns of the tables that queries may join, by name.
        rate: Rows per tick, as far as it was measured; it tells which queries are cut together.
        sample: Some rows, or joined rows by relation where queries join tables; they tell which
            predicates share their cells.
        previous: The plan of the queries that run already: those that stay keep their slices.
        sharer: Decides which queries are cut together, where the strategy leaves it open
            (``slices``, ``shards`` and ``cells``); all are if not given.
        watermark: The time up to which the windows of queries that run already are answered.
        zone: Where the local times are that expressions ask for; that of the previous plan.
        technique: The final technique of queries that name none themselves; chosen if not given.
        prefer: What a choice goes by: ``throughput`` or ``latency``.
        guarantees: Caps and bounds of queries that say nothing of these.

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
    if isinstance(sample, pa.Table):
        sample = {Relation((), schema, zone): sample}
    draft = Draft(
        queries,
        schema,
        Timeline.of(schema, time),
        tables=tables or {},
        strategy=strategy,
        slicing=slicing,
        zone=zone,
        told=Preferences(technique, prefer, guarantees),
        sharer=sharer,
        previous=previous,
        watermark=watermark,
        rate=rate,
        sample=sample or {},
    )
    return plan_draft(draft)


def plan_draft(draft: Draft, *, since: Step = bind) -> SharedPlan:
    """The plan of a draft: all steps from one on, which finds those before it taken."""
    with uncollected():
        draft = _taken(draft, since)
        previous, stay = draft.previous, draft.sharing.stay
        assert draft.plan is not None
        if stay is None or previous is None or continues(draft.plan, previous, draft.watermark):
            return draft.plan
        # A move that would cost a query what is kept for it is not made.
        sharing = replace(draft.sharing, owners=stay, why="", stay=None)
        draft = _taken(replace(draft, sharing=sharing), share)
        assert draft.plan is not None
        return draft.plan


def _taken(draft: Draft, since: Step) -> Draft:
    for step in STEPS[STEPS.index(since) :]:
        draft = step(draft)
    return draft
