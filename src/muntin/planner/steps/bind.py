"""The first step: queries bound to columns and types, their aggregates split into parts."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, TypeVar

import pyarrow as pa
from sqlglot import exp

from muntin.aggregates import resolve
from muntin.aggregates.algebra import FREQUENT
from muntin.aggregates.caps import UNSAID, Guarantees
from muntin.aggregates.kept import kept
from muntin.aggregates.shares import can_spread, spread_form
from muntin.errors import (
    AggregateError,
    ExpressionError,
    MuntinError,
    Problem,
    QueryError,
    WindowError,
)
from muntin.expressions import Bound
from muntin.expressions import bind as bind_expression
from muntin.expressions.binding.binder import Binder
from muntin.expressions.binding.bound import whole_column
from muntin.expressions.tree import structure
from muntin.expressions.types import name_of
from muntin.expressions.zones import UTC, Zone
from muntin.plan.nodes import Axis, OutputColumn
from muntin.plan.relations import Relation, relate
from muntin.plan.timeline import Timeline
from muntin.planner.bound import BoundCall, BoundQuery, calls_as_written
from muntin.planner.companions import Companions, with_cap
from muntin.planner.draft import Draft
from muntin.planner.related import Related, Relations
from muntin.queries import AggregateCall, Output, Query, replace_calls
from muntin.queries.sql.aggregate_calls import constant_of

# Bound conditions that are remembered from plan to plan, for each schema.
_MOST_CONDITIONS = 1 << 14

Result = TypeVar("Result")


def bind(draft: Draft) -> Draft:
    """Queries with every name and type known; the problems of all of them are told together.

    >>> from muntin.queries import queries
    >>> schema = pa.schema({"ts": pa.int64(), "price": pa.float64()})
    >>> asked = queries("SELECT avg(Price) FROM s [RANGE 9 SLIDE 3] WHERE PRICE > 5")
    >>> (query,) = bind(Draft(asked, schema, Timeline.of(schema, "ts"))).bound
    >>> query.predicate.key, [str(each) for each in query.accumulators()]
    ('price > 5', ['count(*)', 'sum(price)', 'count(price)'])
    """
    told = draft.told.guarantees
    given = draft.schema, draft.timeline, draft.tables, draft.zone, told
    binding = Binding(*given, spreads=draft.spreads)
    bound: list[BoundQuery] = []
    problems: list[Problem] = []
    for query in draft.queries:
        try:
            bound.append(binding.bind(query))
        except QueryError as error:
            problems.extend(error.problems)
        except MuntinError as error:
            problems.append(Problem(error.message, error.hint, query.name))
    if problems:
        raise QueryError(problems)
    return replace(draft, bound=tuple(bound))


def bind_query(
    query: Query,
    schema: pa.Schema,
    timeline: Timeline,
    tables: Mapping[str, pa.Schema] | None = None,
    zone: Zone = UTC,
    told: Guarantees = UNSAID,
    *,
    spreads: bool = False,
) -> BoundQuery:
    """Bind a query, or raise a :class:`QueryError` that points into its text.

    Where it ``spreads``, values of a query without groups lie in all buckets, if they can.
    """
    relation, related = relate(query, schema, tables or {}, zone)
    bound = _Binder(related, relation, timeline, told=told, spreads=spreads).bind()
    return replace(bound, query=query)


class Binding:
    """Binds queries to one schema, and what several of them write only once.

    What a query shows (its groups, outputs and HAVING) and its WHERE are told apart, since
    queries of a set often have one in common. Aggregates are resolved when they are first seen:
    a binding is for the queries of one plan. Conditions have none, and outlive it.
    """

    def __init__(
        self,
        schema: pa.Schema,
        timeline: Timeline,
        tables: Mapping[str, pa.Schema] | None = None,
        zone: Zone = UTC,
        told: Guarantees = UNSAID,
        *,
        spreads: bool = False,
    ) -> None:
        self._given = schema, timeline, tables, zone, told
        self._told, self._spreads = told, spreads
        self._timeline = timeline
        self._relations = Relations(schema, tables or {}, zone)
        self._shown: dict[Hashable, BoundQuery] = {}
        self._keys: dict[tuple[int, ...], tuple[Query, Hashable]] = {}
        self._predicates: dict[int, dict[Hashable, Bound]] = {}
        self._binders: dict[int, Binder] = {}
        self._axes: dict[Hashable, Axis] = {}

    def bind(self, query: Query) -> BoundQuery:
        """As :func:`bind_query`."""
        try:
            return self._bind(query)
        except MuntinError:
            # Says all that is wrong with the query, at its places in the query's own text.
            return bind_query(query, *self._given, spreads=self._spreads)

    def _bind(self, query: Query) -> BoundQuery:
        related = self._relations.of(query)
        relation = related.relation
        # Lists of frequent values are kept for windows of time only.
        key = (id(related), query.guarantees, query.window.measure, self._key(query))
        if key not in self._shown:
            bare = related.named(replace(query, where=None))
            binder = _Binder(bare, relation, self._timeline, told=self._told, spreads=self._spreads)
            self._shown[key] = binder.bind()
        predicate = self._predicate(query, related)
        return self._shown[key].asked_by(query, self._axis(query, relation), predicate)

    def _axis(self, query: Query, relation: Relation) -> Axis:
        """What the query's window is measured by; a window is checked once."""
        key = id(relation), query.time, query.window
        if key not in self._axes:
            self._axes[key] = _Binder(query, relation, self._timeline).axis()
        return self._axes[key]

    def _key(self, query: Query) -> Hashable:
        """What a query shows; queries that were read alike have it in common, node by node."""
        place = (id(query.group_by), id(query.select), id(query.having))
        if place not in self._keys:
            outputs = (*query.group_by, *query.select)
            key = (
                len(query.group_by),
                query.kept,
                tuple((output.name, structure(output.node)) for output in outputs),
                None if query.having is None else structure(query.having),
            )
            # The query is kept with it, or others might come to lie at the same place.
            self._keys[place] = query, key
        return self._keys[place][1]

    def _predicate(self, query: Query, related: Related) -> Bound | None:
        if query.where is None:
            return None
        if id(related) not in self._predicates:
            relation = related.relation
            # How joined columns are named depends on the joins.
            lasting = {} if query.joins else _conditions(relation.schema, relation.zone)
            self._predicates[id(related)] = lasting
        known, asked = self._predicates[id(related)], structure(query.where)
        found = known.get(asked)
        if found is None:
            found = self._where(query, related)
            assert found is not None
            if len(known) >= _MOST_CONDITIONS:
                known.clear()
            known[asked] = found
        return found

    def _where(self, query: Query, related: Related) -> Bound | None:
        relation = related.relation
        if id(related) not in self._binders:
            self._binders[id(related)] = Binder(relation.schema, relation.zone)
        if query.joins:
            query = related.named(replace(query, select=(), group_by=(), having=None))
        binder = self._binders[id(related)]
        return _Binder(query, relation, self._timeline, binder).predicate()


@lru_cache(maxsize=8)
def _conditions(schema: pa.Schema, zone: Zone) -> dict[Hashable, Bound]:
    """Conditions over a schema by their structure, as bound for plans before.

    A running plan changes by a query or two, and the conditions of all others stay.
    """
    return {}


class _Binder:
    def __init__(
        self,
        query: Query,
        relation: Relation,
        timeline: Timeline,
        binder: Binder | None = None,
        told: Guarantees = UNSAID,
        spreads: bool = False,
    ) -> None:
        self.query = query
        self._spreads = spreads and not query.group_by
        self.guarantees = query.guarantees.otherwise(told)
        self.binder = binder
        self.relation, self.schema = relation, relation.schema
        self.timeline = timeline

    def bind(self) -> BoundQuery:
        """The query, or a QueryError with all that is wrong with what it computes."""
        try:
            return self._bound()
        except QueryError as error:
            raise QueryError(self._problems() or error.problems) from error

    def _problems(self) -> list[Problem]:
        """What is wrong with groups, aggregates and WHERE, each looked at by itself."""
        query = self.query
        looks: list[Callable[[], object]] = []
        looks += [partial(self._bind, group.node, self.schema) for group in query.group_by]
        looks += [look for call in query.calls for look in self._looks(call)]
        looks.append(self.predicate)
        found: list[Problem] = []
        for look in looks:
            try:
                look()
            except QueryError as error:
                found += [each for each in error.problems if each not in found]
        return found

    def _looks(self, call: AggregateCall) -> list[Callable[[], object]]:
        """An aggregate's arguments, its constants and its FILTER; all of it where these are."""
        looks: list[Callable[[], object]] = [
            *(partial(self._bind, arg, self.schema) for arg in call.args),
            partial(self._constants, call),
            partial(self._predicate, call.filter, self.schema),
        ]
        try:
            for look in looks:
                look()
        except QueryError:
            return looks
        return [partial(self._call, "", call)]

    def _bound(self) -> BoundQuery:
        query = self.query
        axis = self.axis()
        grouping = tuple(self._bind(group.node, self.schema) for group in query.group_by)
        calls = {call: self._call(f"${i}", call) for i, call in enumerate(query.calls)}
        companions = Companions(query, calls, self.guarantees)
        aggregates = (*calls.values(), *companions.calls)
        lowered = pa.schema(
            [
                *((group.name, b.type) for group, b in zip(query.group_by, grouping, strict=True)),
                *((call.name, call.aggregate.type) for call in aggregates),
            ]
        )
        groups = tuple(Output(group.name, _column(group.name)) for group in query.group_by)
        shown = companions.outputs()
        predicate = self.predicate()
        having = None
        with calls_as_written(calls):
            outputs = tuple(
                OutputColumn(output.name, self._output(self._lowered(output.node, calls), lowered))
                for output in (*groups, *shown)
            )
            if query.having is not None:
                having = self._predicate(self._lowered(query.having, calls), lowered)
        return BoundQuery(
            query,
            axis,
            grouping,
            predicate,
            aggregates,
            outputs,
            having,
            lowered,
            self.relation,
        )

    def predicate(self) -> Bound | None:
        """The query's WHERE."""
        return self._predicate(self.query.where, self.schema)

    def axis(self) -> Axis:
        """What the query's window is measured by, together with all others."""
        window = self.query.window
        if not window.periodic:
            rows = window.measure == "rows"
            example = "[ROWS 100 SLIDE 10]" if rows else "[RANGE '10 minutes' SLIDE '1 minute']"
            raise WindowError(
                f"the window has no SLIDE{'' if rows else ' in time'}, "
                "so nothing says when to answer it",
                hint=f"add one, for example {example}",
            )
        timeline = self.timeline
        if self.query.time is not None:
            timeline = Timeline.of(self.schema, self.query.time)
            if window.measure == "rows" and timeline != self.timeline:
                raise WindowError(
                    f"ROWS counts in the order of {self.timeline.column!r}, "
                    f"not of {timeline.column!r}",
                    hint="leave out WATTR",
                )
        timeline.check(window)
        return window.measure, timeline, ""

    def _bind(self, node: exp.Expr, schema: pa.Schema) -> Bound:
        binder = self.binder if schema is self.schema else None
        return self._located(
            node, lambda: bind_expression(node, schema, binder, self.relation.zone)
        )

    def _predicate(self, node: exp.Expr | None, schema: pa.Schema) -> Bound | None:
        if node is None:
            return None
        bound = self._bind(node, schema)
        if bound.type != pa.bool_():
            kind = "NULL" if pa.types.is_null(bound.type) else name_of(bound.type)
            # What HAVING is bound to has names of our own in place of its aggregates.
            what = bound.key if schema is self.schema else "HAVING"
            message = f"a condition must be a boolean, {what} has the type {kind}"
            hint = "compare it with something, for example x > 0"
            raise QueryError([self.query.problem(node, message, hint)])
        return bound

    def _call(self, name: str, call: AggregateCall) -> BoundCall:
        args = tuple(self._bind(arg, self.schema) for arg in call.args)
        types = tuple(arg.type for arg in args)
        constants = self._constants(call)
        aggregate = self._located(
            call.node,
            lambda: resolve(
                call.name,
                types,
                constants,
                distinct=call.distinct,
                ignore_nulls=call.ignore_nulls,
            ),
        )
        if self.query.kept:
            kind = kept(aggregate)
            return BoundCall(name, kind, args, self._predicate(call.filter, self.schema))
        if aggregate.parts[0].kind.startswith(FREQUENT) and self.query.window.measure != "time":
            message = f"{call.name} keeps lists for slices of time, and ROWS windows have none"
            raise QueryError([self.query.problem(call.node, message, "use top_k or frequent")])
        aggregate = with_cap(self.query, call, aggregate, self.guarantees)
        spreads = self._spreads and can_spread(aggregate)
        aggregate = spread_form(aggregate) if spreads else aggregate
        return BoundCall(name, aggregate, args, self._predicate(call.filter, self.schema), spreads)

    def _output(self, node: exp.Expr, lowered: pa.Schema) -> Bound:
        """What a query shows: an expression, or a list or struct as an aggregate gives it."""
        if isinstance(node, exp.Column) and pa.types.is_nested(lowered.field(node.name).type):
            return whole_column(lowered.field(node.name))
        return self._bind(node, lowered)

    def _constants(self, call: AggregateCall) -> list[Any]:
        """What follows a call's arguments, and whether it counts from the greatest value on."""
        found = [constant_of(node) for node in call.constants]
        for node, value in zip(call.constants, found, strict=True):
            if value is None:
                message = f"this argument of {call.name} must be a constant"
                hint = "write a number, a string in quotes, or array(0.5, 0.9)"
                raise QueryError([self.query.problem(node, message, hint)])
        if call.descending and not found:
            message = f"{call.name} takes the least of equally frequent values, in any order"
            hint = "leave DESC out; top_k(x, 10) lists frequent values with their counts"
            raise QueryError([self.query.problem(call.node, message, hint)])
        return [*found, True] if call.descending else found

    def _lowered(self, node: exp.Expr, calls: dict[AggregateCall, BoundCall]) -> exp.Expr:
        """An output expression over lowered columns instead of aggregate calls."""
        return replace_calls(node, {call: _column(bound.name) for call, bound in calls.items()})

    def _located(self, node: exp.Expr, make: Callable[[], Result]) -> Result:
        try:
            return make()
        except (ExpressionError, AggregateError) as error:
            place = getattr(error, "node", None) or node
            raise QueryError([self.query.problem(place, error.message, error.hint)]) from error


def _column(name: str) -> exp.Column:
    return exp.Column(this=exp.to_identifier(name, quoted=True))
