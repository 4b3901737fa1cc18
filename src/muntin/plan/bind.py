"""One query bound to a schema: columns found, types known, aggregates split into parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import pyarrow as pa
from sqlglot import exp

from muntin.aggregates import Part, ResolvedAggregate, resolve
from muntin.errors import AggregateError, ExpressionError, QueryError, WindowError
from muntin.expressions import Bound, bind
from muntin.expressions.types import name_of
from muntin.plan.nodes import Accumulator, OutputColumn
from muntin.plan.relations import Relation, relate
from muntin.plan.timeline import Timeline
from muntin.queries import AggregateCall, Output, Query, replace_calls

COUNT_ROWS = Accumulator(Part("count", ()), ())

Result = TypeVar("Result")


@dataclass(frozen=True)
class BoundCall:
    """An aggregate call with its arguments bound; ``name`` is its column once lowered."""

    name: str
    aggregate: ResolvedAggregate
    args: tuple[Bound, ...]
    filter: Bound | None

    def accumulators(self) -> tuple[Accumulator, ...]:
        """What the call is read off, one accumulator per part."""
        return tuple(
            Accumulator(part, tuple(self.args[i] for i in part.args), self.filter)
            for part in self.aggregate.parts
        )


@dataclass(frozen=True)
class BoundQuery:
    """A query of which every name and type is known."""

    query: Query
    axis: tuple[str, Timeline]
    grouping: tuple[Bound, ...]
    predicate: Bound | None
    calls: tuple[BoundCall, ...]
    outputs: tuple[OutputColumn, ...]
    having: Bound | None
    lowered_schema: pa.Schema
    relation: Relation

    def accumulators(self) -> tuple[Accumulator, ...]:
        """Every accumulator the query needs, the count of rows first."""
        needed = [accumulator for call in self.calls for accumulator in call.accumulators()]
        return (COUNT_ROWS, *needed)


def bind_query(
    query: Query,
    schema: pa.Schema,
    timeline: Timeline,
    tables: Mapping[str, pa.Schema] | None = None,
) -> BoundQuery:
    """Bind a query, or raise a :class:`QueryError` that points into its text."""
    relation, related = relate(query, schema, tables or {})
    bound = _Binder(related, relation, timeline).bind()
    return replace(bound, query=query)


class _Binder:
    def __init__(self, query: Query, relation: Relation, timeline: Timeline) -> None:
        self.query = query
        self.relation = relation
        self.schema = relation.schema
        self.timeline = timeline

    def bind(self) -> BoundQuery:
        query = self.query
        axis = self._axis()
        grouping = tuple(self._bind(group.node, self.schema) for group in query.group_by)
        calls = {call: self._call(f"${i}", call) for i, call in enumerate(query.calls)}
        lowered = pa.schema(
            [
                *((group.name, b.type) for group, b in zip(query.group_by, grouping, strict=True)),
                *((call.name, call.aggregate.type) for call in calls.values()),
            ]
        )
        groups = tuple(Output(group.name, _column(group.name)) for group in query.group_by)
        outputs = tuple(
            OutputColumn(output.name, self._bind(self._lowered(output.node, calls), lowered))
            for output in (*groups, *query.select)
        )
        predicate = self._predicate(query.where, self.schema)
        having = None
        if query.having is not None:
            having = self._predicate(self._lowered(query.having, calls), lowered)
        aggregates = tuple(calls.values())
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

    def _axis(self) -> tuple[str, Timeline]:
        """What the query's window is measured by."""
        window = self.query.window
        if not window.periodic:
            raise WindowError(
                "the window has no SLIDE of time, so nothing says when it is answered",
                hint="add one, for example [RANGE '10 minutes' SLIDE '1 minute']",
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
        return window.measure, timeline

    def _bind(self, node: exp.Expr, schema: pa.Schema) -> Bound:
        return self._located(node, lambda: bind(node, schema))

    def _predicate(self, node: exp.Expr | None, schema: pa.Schema) -> Bound | None:
        if node is None:
            return None
        bound = self._bind(node, schema)
        if bound.type != pa.bool_():
            kind = "NULL" if pa.types.is_null(bound.type) else name_of(bound.type)
            message = f"a condition must be a boolean, {bound.key} has the type {kind}"
            hint = "compare it with something, for example x > 0"
            raise QueryError([self.query.problem(node, message, hint)])
        return bound

    def _call(self, name: str, call: AggregateCall) -> BoundCall:
        args = tuple(self._bind(arg, self.schema) for arg in call.args)
        types = tuple(arg.type for arg in args)
        aggregate = self._located(
            call.node, lambda: resolve(call.name, types, ignore_nulls=call.ignore_nulls)
        )
        return BoundCall(name, aggregate, args, self._predicate(call.filter, self.schema))

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
