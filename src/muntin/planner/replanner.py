"""The replanner: the next plan of a stream whose queries join, leave and move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from muntin._garbage import uncollected
from muntin.plan.nodes import SharedPlan
from muntin.planner.build import plan_draft
from muntin.planner.continuity import settled
from muntin.planner.draft import Draft
from muntin.planner.owners import Reviewer, share_all
from muntin.planner.placement.homes import with_homes
from muntin.planner.steps.bind import bind
from muntin.planner.steps.weigh import weigh
from muntin.planner.techniques import Preferences
from muntin.queries import Query


@dataclass(frozen=True)
class Moment:
    """What a stream knows between two batches.

    Attributes:
        plan: The plan that its state is of; None before the first batch.
        watermark: The time up to which windows are answered.
        rate: Rows per tick, as far as they were counted.
    """

    plan: SharedPlan | None = None
    watermark: int | None = None
    rate: float | None = None


class Replanner:
    """Plans for one stream: queries of the plan before keep what is kept for them.

    Whoever runs the stream says what it knows, and gets a plan to adopt, as data. A plan takes
    effect between two batches; :func:`muntin.planner.continuity.dated` notes when.

    Args:
        choices: What all plans have in common: a draft without queries.
        reviewer: Decides who shares slices, and when to look again; without one all share, and
            nothing moves.
        buckets: On how many buckets trees without groups are placed; none if not given.
        placement: The method that places them; see ``muntin.planner.METHODS``.

    >>> from muntin.plan import Timeline
    >>> from muntin.queries import queries
    >>> schema = pa.schema({"ts": pa.int64(), "v": pa.int64()})
    >>> replanner = Replanner(Draft((), schema, Timeline.of(schema, "ts")))
    >>> one, other = queries(
    ...     "SELECT sum(v) FROM s [RANGE 6 SLIDE 2]; SELECT sum(v) FROM s [RANGE 9 SLIDE 3]")
    >>> plan = replanner.plan([one], {}, Moment())
    >>> plan = replanner.plan([one, other], {}, Moment(plan, watermark=4))
    >>> [(node.number, len(plan.finals)) for node in plan.partials]
    [(0, 2)]
    """

    def __init__(
        self,
        choices: Draft,
        reviewer: Reviewer | None = None,
        *,
        buckets: int | None = None,
        placement: str | None = None,
    ) -> None:
        self._choices = replace(choices, sharer=reviewer or share_all)
        self._reviewer = reviewer
        self._buckets, self._placement = buckets, placement

    @classmethod
    def of(cls, plan: SharedPlan, reviewer: Reviewer | None = None) -> Replanner:
        """The replanner of a stream that runs a plan: what follows has the same choices."""
        choices = Draft(
            (),
            plan.source,
            plan.timeline,
            strategy=plan.strategy,
            slicing=plan.slicing,
            zone=plan.zone,
            told=Preferences(plan.technique, plan.prefer, plan.guarantees),
        )
        return cls(choices, reviewer)

    def plan(
        self, queries: Sequence[Query], tables: Mapping[str, pa.Schema], now: Moment
    ) -> SharedPlan:
        """The plan of all queries from the next batch on, made for the state that it meets.

        Args:
            queries: The queries, those that run already and others.
            tables: The columns of the tables that queries may join, by name.
            now: What the stream knows.
        """
        previous = now.plan
        draft = replace(
            self._choices,
            queries=queries,
            tables=tables,
            # The rules for a zone may be others than when the stream began.
            zone=self._choices.zone if previous is None else previous.zone,
            previous=previous,
            watermark=now.watermark,
            rate=now.rate,
            # What is kept lies where it was put when the stream began.
            spreads=(self._buckets or 1) > 1 if previous is None else previous.spreads,
        )
        # Placement may plan the same queries again, on other slicings.
        with uncollected():
            draft = bind(draft)
        plan = plan_draft(draft, since=weigh)
        if self._buckets is None:
            return plan
        return with_homes(plan, self._buckets, previous, self._placement, draft)

    def is_due(self, now: Moment) -> bool:
        """Whether to plan the same queries again: sharing pays otherwise, or a twin is over."""
        if self._reviewer is None or now.plan is None:
            return False
        return self._reviewer.is_due(now.plan, now.rate) or bool(settled(now.plan, now.watermark))
