"""All names of a row query that mean nothing: each of its parts looked at by itself.

Binding stops at the first problem, since what follows depends on what came before. A query that
could not be bound is looked through once more here, so that all its names are told at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import pyarrow as pa
from sqlglot import exp

from muntin.errors import Problem, QueryError
from muntin.expressions.zones import Zone
from muntin.plan.operators import StreamSchema
from muntin.planner.rows.relations import RelationJoin
from muntin.planner.rows.scope import Scope
from muntin.planner.rows.tables import attach_table
from muntin.queries import RowQuery, RowSource, Selection
from muntin.queries.query import Join
from muntin.queries.rows import STAR, Body


def all_problems(first: QueryError, names: UnknownNames) -> QueryError:
    """An error with what binding found first, and with all unknown names, as they are written."""
    found = list(first.problems)
    found += [each for each in names.problems() if each not in found]
    return QueryError(sorted(found, key=lambda each: (each.line, each.column)))


class UnknownNames:
    """What finds the unknown streams, tables and columns of one query."""

    def __init__(
        self,
        query: RowQuery,
        zone: Zone,
        find: Callable[[RowSource], tuple[str, StreamSchema]],
        tables: Mapping[str, pa.Schema],
        streams: Mapping[str, StreamSchema],
        relations: Mapping[str, StreamSchema],
    ) -> None:
        self._query = query
        self._zone = zone
        self._find = find
        self._tables = tables
        self._streams = streams
        self._relations = relations
        self._found: list[Problem] = []
        # What is called by these has columns that nobody knows.
        self._unknown: set[str] = set()

    def problems(self) -> list[Problem]:
        """All of them, each once."""
        self._body(self._query.body)
        return self._found

    def _body(self, body: Body) -> None:
        if isinstance(body, Selection):
            self._selection(body)
        else:
            self._body(body.left)
            self._body(body.right)

    def _selection(self, selection: Selection, outer: Scope | None = None) -> None:
        scope = Scope(self._query, self._zone, outer, self._streams)
        for source in selection.sources:
            self._source(scope, source)
        for join in selection.tables:
            self._table(scope, join)
        for item in selection.items:
            if item.name == STAR:
                self._star(scope, item.node)
            else:
                self._names(scope, [item.node])
        if outer is None and self._query.aggregation is not None:
            computed = self._query.aggregation
            self._names(scope, (each.node for each in computed.group_by))
            self._names(scope, (call.node for call in computed.calls))
        self._names(scope, [] if selection.where is None else [selection.where])
        for existence in selection.exists:
            self._selection(existence.selection, scope)
            self._names(scope, [] if existence.value is None else [existence.value])

    def _source(self, scope: Scope, source: RowSource) -> None:
        """A stream of FROM, with its ON, which names no stream behind it."""
        self._names(scope, source.columns_of_using())
        if not self._look(lambda: scope.add(source, *self._find(source))):
            self._unknown.add(source.label.lower())
        self._names(scope, source.columns_of_using(source.label))
        self._names(scope, [] if source.on is None else [source.on])

    def _table(self, scope: Scope, join: Join) -> None:
        self._names(scope, (left for left, _ in join.on))

        def add() -> None:
            if RelationJoin.of(join, scope, self._relations) is None:
                attach_table(join, scope, self._tables)

        if not self._look(add):
            self._unknown.add(join.alias.lower())

    def _star(self, scope: Scope, node: exp.Expr) -> None:
        if node.text("table").lower() not in self._unknown:
            self._look(lambda: list(scope.stars(node)))

    def _names(self, scope: Scope, nodes: Iterable[exp.Expr]) -> None:
        for part in (part for node in nodes for part in node.find_all(exp.Column)):
            if not self._may_be_any(part):
                self._look(partial(scope.resolve, part))

    def _may_be_any(self, part: exp.Column) -> bool:
        """Whether a column may be one of a stream or a table that is itself unknown."""
        return part.table.lower() in self._unknown if part.table else bool(self._unknown)

    def _look(self, look: Callable[[], object]) -> bool:
        """Whether there is no problem; one that there is gets noted."""
        try:
            look()
        except QueryError as error:
            self._found += [each for each in error.problems if each not in self._found]
            return False
        return True
