"""The plans of one stream's queries: they join, leave and move, and those that stay keep state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from muntin.aggregators.registry import own
from muntin.engine.slices.newcomers import check_streams
from muntin.errors import Problem, QueryError
from muntin.expressions.zones import Zone
from muntin.plan import SharedPlan, Strategy
from muntin.planner import Draft, Moment, Replanner
from muntin.planner.continuity import dated
from muntin.planner.sharing import Optimizer, OptimizerName
from muntin.planner.techniques import Preferences
from muntin.queries import MixedCatalog, Query
from muntin.spark.streaming.checkpoint.checkpoint import Checkpoint
from muntin.spark.streaming.checkpoint.records import StreamOutcome
from muntin.spark.streaming.driver.inputs import StreamInput
from muntin.spark.streaming.driver.plans.rows import check_columns
from muntin.spark.streaming.driver.tables import StaticTables
from muntin.spark.streaming.problems import RunError


@dataclass(frozen=True)
class Planning:
    """How plans are made, whatever the stream."""

    strategy: Strategy
    optimizer: OptimizerName
    zone: Zone
    told: Preferences
    placement: str | None = None


class StreamPlans:
    """The plans that are made of one stream's queries.

    A plan is made for the state it meets: queries of the plan that the state is of keep their
    slices. So it is made when a batch begins, unless a change has made it already to see whether
    it can be, or the optimizer found after a batch that queries are better shared otherwise.
    """

    def __init__(
        self, given: StreamInput, checkpoint: Checkpoint, tables: StaticTables, how: Planning
    ) -> None:
        self._given, self._checkpoint, self._tables, self._how = given, checkpoint, tables, how
        self._replanner = Replanner(
            Draft(
                (),
                given.source.schema,
                given.timeline,
                strategy=how.strategy,
                zone=how.zone,
                told=how.told,
            ),
            Optimizer(how.optimizer),
            buckets=checkpoint.buckets.count,
            placement=how.placement,
        )
        # What is known after the last batch.
        self._outcome = StreamOutcome()
        # The plan that the state is of, the plan for the queries as they are, and the plan of
        # the batch that runs with the version of the queries it was made of.
        self._state: tuple[str, SharedPlan] | None = None
        self.next: SharedPlan | None = None
        self._running: tuple[str, SharedPlan, MixedCatalog] | None = None

    def adopt(self, outcome: StreamOutcome, catalog: MixedCatalog) -> None:
        """Take note of what a batch has seen, and of the plan that the state is of."""
        self._outcome, state = outcome, outcome.state
        if state is None or (self._state is not None and self._state[0] == state):
            return
        if self._running is not None and self._running[0] == state:
            plan, is_current = self._running[1], self._running[2] is catalog
        else:
            plan, is_current = self._checkpoint.plan(state), False
            wanted = {name: plan.source.field(name).type for name in plan.columns()}
            check_columns(wanted, self._given.source.schema)
        self._state = (state, plan)
        self.next = plan if is_current else None

    def review(self, queries: Sequence[Query]) -> None:
        """Share anew, from the next batch on, where the optimizer finds that due.

        Where queries have joined or left since the last batch, it has looked already.
        """
        if self._state is None or self.current(queries) is not self._state[1]:
            return
        if self._replanner.is_due(self._now):
            self.next = self._plan(queries)

    def current(self, queries: Sequence[Query]) -> SharedPlan:
        """The plan for the queries as they are."""
        if self.next is None:
            self.next = self.build(queries)
        return self.next

    def take(self, queries: Sequence[Query], catalog: MixedCatalog) -> str:
        """The name of the plan for the next batch, which is kept."""
        plan = self.next = dated(self.current(queries), self._outcome.seen)
        if self._state is not None and self._state[1] is plan:
            name = self._state[0]
        else:
            name = self._checkpoint.save_plan(plan)
        self._running = (name, plan, catalog)
        return name

    def named(self, name: str) -> SharedPlan | None:
        """A plan that is at hand."""
        known = (each for each in (self._running, self._state) if each is not None)
        return next((each[1] for each in known if each[0] == name), None)

    def build(self, queries: Sequence[Query]) -> SharedPlan:
        """The plan for some queries, given the state; that of the state, if it will do."""
        previous = None if self._state is None else self._state[1]
        if previous is not None and _is_plan_of(previous, queries, self._how.told):
            return previous
        return self._plan(queries)

    def _plan(self, queries: Sequence[Query]) -> SharedPlan:
        plan = self._replanner.plan(queries, self._tables.schemas, self._now)
        check_streams(plan)
        _check_order(plan)
        _check_techniques(plan)
        return plan

    @property
    def _now(self) -> Moment:
        """What is known after the last batch."""
        plan = None if self._state is None else self._state[1]
        return Moment(plan, self._outcome.watermark, self._outcome.recent.rate)


def _is_plan_of(plan: SharedPlan, queries: Sequence[Query], told: Preferences) -> bool:
    """Whether a plan will do; tables may have other columns than when it was made."""
    is_joined = any(relation.joins for relation in plan.relations)
    if Preferences(plan.technique, plan.prefer, plan.guarantees) != told:
        return False
    return not is_joined and [final.query for final in plan.finals] == queries


def _check_order(plan: SharedPlan) -> None:
    for final in plan.finals:
        if not final.commutative:
            raise QueryError(
                [
                    Problem(
                        "an aggregate depends on the order of rows, and a stream's tasks see "
                        "them in no particular order",
                        "use a commutative aggregate, or muntin.aggregate over bounded data",
                        final.name,
                    )
                ]
            )


def _check_techniques(plan: SharedPlan) -> None:
    """Refuse techniques that the next process of a stream would not find."""
    for card, state in own(plan.techniques):
        if state.__module__ == "__main__" or "<locals>" in state.__qualname__:
            raise RunError(
                f"the technique {card.name} is defined in this very program, and a stream may be "
                "resumed by another one",
                hint=f"put the class {state.__name__} and its card into a module that workers can "
                "import, or name one of Muntin's techniques",
            )
