"""The plans of the next batch: those of every stream, and that of the queries over rows."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import RLock
from typing import Any

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.errors import MuntinError, Problem, QueryError
from muntin.plan import SharedPlan
from muntin.plan.operators import leaves
from muntin.plan.routes import RoutedPlan
from muntin.planner.rows.shares import Choices
from muntin.queries import AnyQuery, MixedCatalog, Query, RowQuery, Statement, all_queries
from muntin.queries.routes import routed
from muntin.sinks import with_key
from muntin.spark.streaming.checkpoint.checkpoint import Changes, Checkpoint
from muntin.spark.streaming.checkpoint.records import BatchOutcome
from muntin.spark.streaming.driver.inputs import StreamInput
from muntin.spark.streaming.driver.plans.rows import RowPlans
from muntin.spark.streaming.driver.plans.streams import Planning, StreamPlans
from muntin.spark.streaming.driver.tables import StaticTables

_logger = logging.getLogger("muntin.spark")


@dataclass(frozen=True)
class NextPlans:
    """What the next batch runs with: plans by name, and the versions of tables and queries."""

    streams: list[str]
    rows: str | None
    tables: dict[str, str]
    changes: int


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
                queries = _reconcile(_parsed(known.queries), _parsed(known.asked), asked)
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


def _reconcile(
    running: Sequence[AnyQuery], before: Sequence[AnyQuery], asked: Sequence[AnyQuery]
) -> list[AnyQuery]:
    """The queries to go on with: those that ran, with what the caller changed since.

    A query that is asked for as it was before stays as it was, also if it has been removed or
    replaced while the stream ran.
    """
    result = {query.name.lower(): query for query in running}
    known = {query.name.lower(): query for query in before}
    wanted = {query.name.lower(): query for query in asked}
    for name in [name for name in known if name not in wanted and name in result]:
        _logger.info("query %s is not asked for any more, and leaves", result.pop(name).name)
    for name, query in wanted.items():
        if known.get(name) == query:
            if name not in result:
                _logger.info("query %s was removed while the stream ran, and stays out", query.name)
            continue
        if result.get(name) != query:
            verb = "replaces the one of its name" if name in result else "joins"
            _logger.info("query %s %s", query.name, verb)
        result[name] = query
    for query in result.values():
        if query.name.lower() not in wanted:
            _logger.info("query %s was added while the stream ran, and goes on", query.name)
    return list(result.values())


def _parsed(texts: Sequence[str]) -> list[AnyQuery]:
    """The queries that a checkpoint holds as SQL."""
    try:
        return list(all_queries(list(texts))) if texts else []
    except MuntinError as error:
        raise MuntinError(
            f"a query of the checkpoint is not understood: {error}",
            hint="continue with the version of Muntin that wrote it",
        ) from error
