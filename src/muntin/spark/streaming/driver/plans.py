"""The plans of the next batch: queries join, leave and move, and those that stay keep state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import RLock
from typing import Any

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.aggregators.registry import own
from muntin.engine.slices.newcomers import check_streams
from muntin.errors import Problem, QueryError
from muntin.expressions.zones import Zone
from muntin.plan import SharedPlan, Strategy
from muntin.plan.operators import leaves
from muntin.plan.routes import RoutedPlan
from muntin.planner import Draft, Moment, Replanner
from muntin.planner.continuity import dated
from muntin.planner.rows.shares import Choices
from muntin.planner.sharing import Optimizer, OptimizerName
from muntin.planner.techniques import Preferences
from muntin.queries import AnyQuery, MixedCatalog, Query, RowQuery, Statement
from muntin.queries.routes import routed
from muntin.sinks import with_key
from muntin.spark.streaming.checkpoint.checkpoint import Changes, Checkpoint
from muntin.spark.streaming.checkpoint.records import BatchOutcome, StreamOutcome
from muntin.spark.streaming.driver.inputs import StreamInput
from muntin.spark.streaming.driver.row_plans import RowPlans, check_columns
from muntin.spark.streaming.driver.statements import parsed, reconcile
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


@dataclass(frozen=True)
class NextPlans:
    """What the next batch runs with: plans by name, and the versions of tables and queries."""

    streams: list[str]
    rows: str | None
    tables: dict[str, str]
    changes: int


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


class Planner:
    """The queries that run, and the plans that are made of them: one for each stream.

    ``check`` refuses queries by how they show their results, where the sink cannot take them.
    """

    def __init__(
        self,
        inputs: Sequence[StreamInput],
        checkpoint: Checkpoint,
        tables: StaticTables,
        how: Planning,
        check: Callable[[Mapping[str, str]], None] | None = None,
    ) -> None:
        self._checkpoint, self.tables, self._check = checkpoint, tables, check
        self._names = [given.name for given in inputs]
        self.rows = RowPlans(inputs, checkpoint, Choices(how.zone, how.told), tables)
        self._streams = [StreamPlans(given, checkpoint, tables, how) for given in inputs]
        self.lock = RLock()
        self._changes = Changes()
        self.catalog = MixedCatalog()

    def start(self, asked: Sequence[AnyQuery], outcome: BatchOutcome) -> None:
        """Begin with the queries of the checkpoint, as far as the caller has not changed them."""
        with self.lock:
            self.adopt(outcome)
            known = self._checkpoint.changes()
            queries: Iterable[AnyQuery] = asked
            if known is not None:
                self._changes = known
                queries = reconcile(parsed(known.queries), parsed(known.asked), asked)
            catalog = MixedCatalog(queries)
            self._commit(catalog, *self._build(catalog), [query.sql() for query in asked])

    def adopt(self, outcome: BatchOutcome) -> None:
        """Take note of what a batch has seen, and of the plans that the state is of."""
        with self.lock:
            for stream, each in zip(self._streams, outcome.streams, strict=True):
                stream.adopt(each, self.catalog)
            self.rows.adopt(outcome.row_state, outcome.streams)

    def review(self) -> None:
        """Share anew, from the next batch on, where the optimizer finds that due."""
        with self.lock:
            for stream, queries in self._routed(self.catalog):
                stream.review(queries)

    def apply(
        self, statements: Sequence[Statement], shipped: Sequence[frozenset[str]] | None
    ) -> bool:
        """Make a change durable, or refuse it; it takes effect with the next batch.

        Where a plan reads a column that is not among those ``shipped`` of its stream, nothing is
        done, and the answer is False.
        """
        with self.lock:
            catalog = MixedCatalog(self.catalog)
            catalog.apply(statements)
            plans, rows = self._build(catalog)
            if shipped is not None and not all(
                sent.issuperset(read)
                for sent, read in zip(shipped, columns_of(plans, rows), strict=True)
            ):
                return False
            self._commit(catalog, plans, rows, self._changes.asked)
            return True

    def refresh(self, table: str) -> None:
        """Read a table again; rows of the next batch on are joined with what it holds."""
        with self.lock:
            self._use(self.tables.refresh(table))

    def update_table(self, name: str, frame: Any) -> None:
        """Join rows of the next batch on with another frame; a name that is new adds a table."""
        with self.lock:
            joined = self.rows.current.is_joined(name)
            joined = joined or any(plan.is_joined(name) for plan in self.current)
            self._use(self.tables.update(name, frame, is_joined=joined))

    def _use(self, versions: dict[str, str]) -> None:
        self.tables.versions = versions
        self._write(self.catalog, self._changes.asked)

    @property
    def current(self) -> list[SharedPlan]:
        """The plans for the queries as they are, one for each stream."""
        with self.lock:
            return [stream.current(queries) for stream, queries in self._routed(self.catalog)]

    @property
    def windows(self) -> list[Ints]:
        """The range, slide and phase of windows over each stream, at whose ends something is due.

        Rows end at any time: an eighth of their lifetime is near enough for those.
        """
        rows = self.rows.current.asked
        found = []
        for stream, plan in zip(rows.streams, self.current, strict=True):
            lengths = sorted(
                {
                    leaf.range
                    for final in rows.finals
                    for leaf in leaves(final.root)
                    if leaf.stream == stream and leaf.range is not None
                }
            )
            steps = [max(length // 8, 1) for length in lengths]
            own = [[each + step, step, 0] for each, step in zip(lengths, steps, strict=True)]
            own += [
                [final.range, final.slide, final.phase]
                for final in rows.joined
                if stream in final.streams
            ]
            found.append(np.concatenate([plan.windows, np.array(own, np.int64).reshape(-1, 3)]))
        return found

    def next(self) -> NextPlans:
        """The names of the plans for the next batch, and the versions of tables and queries."""
        with self.lock:
            names = [
                stream.take(queries, self.catalog) for stream, queries in self._routed(self.catalog)
            ]
            versions = dict(self.tables.versions), self._changes.version
            return NextPlans(names, self.rows.take(), *versions)

    def named(self, name: str) -> SharedPlan:
        """A plan of a batch."""
        with self.lock:
            known = (stream.named(name) for stream in self._streams)
            found = next((plan for plan in known if plan is not None), None)
            return self._checkpoint.plan(name) if found is None else found

    def _commit(
        self,
        catalog: MixedCatalog,
        plans: Sequence[SharedPlan],
        rows: RoutedPlan,
        asked: Sequence[str],
    ) -> None:
        self._write(catalog, asked)
        self.catalog = catalog
        self.rows.use(rows, _over_rows(catalog))
        for stream, plan in zip(self._streams, plans, strict=True):
            stream.next = plan

    def _write(self, catalog: MixedCatalog, asked: Sequence[str]) -> None:
        changes = Changes(
            self._changes.version + 1,
            tuple(query.sql() for query in catalog),
            tuple(asked),
            dict(self.tables.versions),
        )
        self._checkpoint.write_changes(changes)
        self._changes = changes

    def _build(self, catalog: MixedCatalog) -> tuple[list[SharedPlan], RoutedPlan]:
        """The plans for some queries, or the problems of all of them."""
        plans: list[SharedPlan] = []
        problems: list[Problem] = []
        rows = self.rows.current
        try:
            rows = self.rows.build(_over_rows(catalog))
        except QueryError as error:
            problems.extend(error.problems)
        for stream, queries in self._routed(catalog):
            try:
                plans.append(stream.build(queries))
            except QueryError as error:
                problems.extend(error.problems)
        if problems:
            raise QueryError(problems)
        if self._check is not None:
            shown = {final.name: final.shown for final in rows.finals}
            self._check({query.name: shown.get(query.name, "windows") for query in catalog})
        return plans, rows

    def _routed(self, catalog: MixedCatalog) -> Iterator[tuple[StreamPlans, list[Query]]]:
        """Each stream with the queries over it."""
        queries = [each for each in catalog if isinstance(each, Query)]
        asked = routed(queries, [name or "" for name in self._names])
        yield from zip(self._streams, asked.values(), strict=True)


def _over_rows(catalog: MixedCatalog) -> list[RowQuery]:
    return [each for each in catalog if isinstance(each, RowQuery)]


def columns_of(plans: Sequence[SharedPlan], rows: RoutedPlan) -> list[set[str]]:
    """The columns of each stream that plans read."""
    return [
        set(plan.columns()) | rows.columns(stream)
        for plan, stream in zip(plans, rows.asked.streams, strict=True)
    ]


def result_schemas(
    plans: Iterable[SharedPlan], rows: RoutedPlan | None = None
) -> dict[str, pa.Schema]:
    """The columns of every query's results, and which of them name a row: window and groups.

    Rows of queries over rows have no key: two may be equal.
    """
    found = {} if rows is None else {each.name: each.schema for each in rows.finals}
    for joined in () if rows is None else rows.asked.joined:
        keyed = joined.schema.names[: 2 + len(joined.groups)]
        found[joined.name] = with_key(joined.schema, keyed)
    for plan in plans:
        for final in plan.finals:
            schema = plan.result_schema(final)
            found[final.name] = with_key(schema, schema.names[: 2 + len(final.grouping)])
    return found


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
