"""The plans of queries over rows, which may read several streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from muntin.plan.operators import RowPlan, StreamSchema
from muntin.plan.routes import RoutedPlan
from muntin.planner.rows import routed, row_plan, with_sides
from muntin.planner.rows.shares import Choices, Known
from muntin.queries import RowQuery
from muntin.spark.streaming.checkpoint.checkpoint import Checkpoint
from muntin.spark.streaming.checkpoint.records import StreamOutcome
from muntin.spark.streaming.driver.inputs import StreamInput
from muntin.spark.streaming.driver.tables import StaticTables
from muntin.spark.streaming.problems import CheckpointError


class RowPlans:
    """The plan of the queries over rows, from batch to batch.

    It depends on the queries; and the sides of joins that are aggregated, which keep slices, on the
    plan that the state is of. Once there was a plan there always is, be it of no query: its buckets
    keep state.
    """

    def __init__(
        self,
        inputs: Sequence[StreamInput],
        checkpoint: Checkpoint,
        choices: Choices,
        tables: StaticTables,
    ) -> None:
        self._checkpoint, self._choices, self._tables = checkpoint, choices, tables
        self._streams = {
            given.name or "": StreamSchema(given.source.schema, given.timeline) for given in inputs
        }
        # The plan for the queries as they are, and these; plans by name: of the state, of the
        # batch that runs.
        self._next: RoutedPlan | None = None
        self._asked: list[str] = []
        self._named: dict[str, RoutedPlan] = {}
        self._known: dict[str, Known] = {}
        self.state: str | None = None

    def adopt(self, state: str | None, streams: Sequence[StreamOutcome]) -> None:
        """Take note of the plan that the state is of, which must be of these streams."""
        if state is not None and state not in self._named:
            for feed in self.named(state).feeds.values():
                fields = self.named(state).asked.streams[feed.stream].schema
                wanted = {name: fields.field(name).type for name in feed.reads}
                check_columns(wanted, self._streams[feed.stream].schema)
        self.state = state
        self._known = {
            name: Known(each.watermark, each.seen)
            for name, each in zip(self._streams, streams, strict=True)
        }

    def build(self, queries: Sequence[RowQuery]) -> RoutedPlan:
        """The plan of some queries, or the problems of all of them."""
        # Tables may have other columns by now.
        is_joined = any(feed.relation for feed in self.current.feeds.values())
        asked = [each.sql() for each in queries]
        if self._next is not None and not is_joined and self._asked == asked:
            return self._next
        # Queries that run keep their operators, and so what these keep.
        before = None if self.state is None else self.named(self.state).asked
        schemas, zone = self._tables.schemas, self._choices.zone
        plan = row_plan(queries, self._streams, zone, schemas, previous=before)
        return self._with_sides(routed(plan))

    def _with_sides(self, plan: RoutedPlan) -> RoutedPlan:
        """The plan with sides that go on from the state."""
        if not plan.asked.joined:
            return plan
        before = None if self.state is None else self.named(self.state)
        return with_sides(plan, before, self._known, self._choices)

    def use(self, plan: RoutedPlan, queries: Sequence[RowQuery]) -> None:
        """Go on with a plan of some queries from the next batch on."""
        self._next = plan
        self._asked = [each.sql() for each in queries]

    @property
    def current(self) -> RoutedPlan:
        """The plan for the queries as they are."""
        return self._next or RoutedPlan(RowPlan(self._streams, ()), RowPlan({}, ()), {}, {})

    def take(self) -> str | None:
        """The name of the plan for the next batch, which is kept; None if no rows are needed."""
        plan = self.current
        if self.state is None and not plan.feeds:
            return None
        if self.state is not None and self.named(self.state) == plan:
            # Written by another process, the same plan may have another name.
            return self.state
        known = next((name for name, each in self._named.items() if each is plan), None)
        if known is None and plan.sides:
            # A batch may have run since it was made: sides go on from what that left.
            plan = self._next = self._with_sides(routed(plan.asked))
        name = self._checkpoint.save_plan(plan) if known is None else known
        self._named = {key: each for key, each in self._named.items() if key == self.state}
        self._named[name] = plan
        return name

    def named(self, name: str) -> RoutedPlan:
        """A plan of a batch."""
        if name not in self._named:
            self._named[name] = self._checkpoint.row_plan(name)
        return self._named[name]


def check_columns(wanted: Mapping[str, pa.DataType], schema: pa.Schema) -> None:
    """Refuse a stream whose columns are not those that the state was made of."""
    for name, kind in wanted.items():
        found = schema.field(name).type if name in schema.names else None
        if found != kind:
            what = "is gone" if found is None else f"is {found}, and was {kind}"
            raise CheckpointError(
                f"column {name!r} of the stream {what}",
                hint="cast or rename it as it was, or start with an empty checkpoint",
            )
