"""Queries against the columns of their stream: everything wrong with each, at its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
from sqlglot import exp

from muntin.errors import MuntinError, Problem, QueryError, did_you_mean
from muntin.expressions.zone_names import zone
from muntin.pipelines.model import StreamSpec
from muntin.plan.timeline import Timeline
from muntin.planner.bound import BoundQuery
from muntin.planner.steps.bind import Binding
from muntin.queries import CreateQuery, Query
from muntin.queries.source import shown

TABLE_HINT = "declare it: CREATE TABLE {} (...) WITH (format = 'csv', path = '...')"


class QueryChecker:
    """Checks queries over one stream.

    Args:
        stream: The stream.
        tables: The columns of every table, by name.
        declared: Names of all streams and tables in lower case, readable ones or not.
    """

    def __init__(
        self, stream: StreamSpec, tables: Mapping[str, pa.Schema], declared: Mapping[str, str]
    ) -> None:
        self._stream = stream
        self._tables = tables
        self._declared = declared
        self._timeline = Timeline.of(stream.schema, stream.time)
        local = zone(stream.timezone or "UTC")
        self._binding = Binding(stream.schema, self._timeline, tables, local)

    def problems(self, statement: CreateQuery) -> list[Problem]:
        """All that is wrong with a query; nothing if it can run on the stream."""
        found = list(self._joins(statement.query))
        if self._joins_unreadable(statement.query):
            return found
        try:
            found += self._streaming(statement, self._binding.bind(statement.query))
        except QueryError as error:
            found += self._unknown_columns(statement.query)
            found += error.problems
        except MuntinError as error:
            found.append(self._at_window(statement, error.message, error.hint))
        placed = [one if one.line else _placed(statement, one) for one in found]
        # What is said first about a place is said best.
        return list({(one.line, one.column): one for one in reversed(placed)}.values())

    def _joins(self, query: Query) -> Iterator[Problem]:
        known = [name.lower() for name in self._tables]
        for join in query.joins:
            name = join.table.lower()
            if name in known or self._declared.get(name) == "table":
                continue
            message, hint = f"there is no table {shown(join.table)}", None
            if name in self._declared:
                message = f"{shown(join.table)} is a stream, and has no window"
                length = "3600" if self._timeline.plain else "'1 hour'"
                window = f"{shown(join.table)} [RANGE {length}]"
                hint = f"write {window} to join its rows: only tables go without"
            fallback = TABLE_HINT.format(shown(join.table))
            hint = hint or did_you_mean(join.table, self._tables) or fallback
            yield query.text.problem(join.start or 0, message, hint, query.name)

    def _joins_unreadable(self, query: Query) -> bool:
        """Whether a joined table is declared, but in a way that cannot be read."""
        known = {name.lower() for name in self._tables}
        names = [join.table.lower() for join in query.joins]
        return any(name not in known and self._declared.get(name) == "table" for name in names)

    def _unknown_columns(self, query: Query) -> Iterator[Problem]:
        """Binding stops at the first column that is not there; a file should learn of all."""
        if query.joins:
            return
        known = {name.lower() for name in self._stream.schema.names}
        nodes = [query.where, *(group.node for group in query.group_by)]
        nodes += [argument for call in query.calls for argument in (*call.args, call.filter)]
        for node in nodes:
            for column in node.find_all(exp.Column) if node is not None else ():
                if column.name.lower() not in known:
                    hint = did_you_mean(column.name, self._stream.schema.names)
                    fallback = f"{self._stream.name} has {len(known)} columns"
                    message = f"no column {shown(column.name)}"
                    yield query.problem(column, message, hint or fallback)

    def _streaming(self, statement: CreateQuery, bound: BoundQuery) -> Iterator[Problem]:
        """What a plan may hold, but a stream cannot answer."""
        measure, timeline, _ = bound.axis
        column = self._timeline.column
        if measure == "rows" or timeline != self._timeline:
            what = "ROWS" if measure == "rows" else f"WATTR {timeline.column}"
            message = f"{what} windows are answered over bounded data only"
            yield self._at_window(statement, message, f"use a RANGE of {column}")
        for call in bound.calls:
            if not call.aggregate.commutative:
                message = "an aggregate depends on the order of rows, which a stream does not keep"
                yield self._at_window(statement, message, "order the rows by time inside it")

    def _at_window(self, statement: CreateQuery, message: str, hint: str | None) -> Problem:
        query = statement.query
        return query.text.problem(statement.from_start, message, hint, query.name)


def _placed(statement: CreateQuery, problem: Problem) -> Problem:
    query = statement.query
    return query.text.problem(statement.start, problem.message, problem.hint, query.name)
