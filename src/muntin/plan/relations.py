"""Streams joined with tables: which tables, on which keys, and the rows that come out."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from muntin.errors import DataError, ExpressionError, Problem, QueryError, did_you_mean
from muntin.expressions import BindingError, Bound, bind, subexpression
from muntin.expressions.binding.coercion import in_zone, unify
from muntin.expressions.types import name_of
from muntin.expressions.zones import UTC, Zone
from muntin.queries import Join, JoinKind, Output, Query, aggregate_calls
from muntin.queries.names import Names, Origin
from muntin.queries.query import column
from muntin.queries.source import position


@dataclass(frozen=True)
class TableJoin:
    """One table that rows are joined with.

    Attributes:
        table: The table's name, as it was given.
        kind: ``inner`` drops rows without a match, ``left`` keeps them, with NULLs.
        keys: Pairs that must be equal: an expression over the rows joined so far, and a column of
            the table. Both are compared as values of the expression's type.
        prefix: What the table's columns start with among the joined ones; followed by a dot.
    """

    table: str
    kind: JoinKind
    keys: tuple[tuple[Bound, str], ...]
    prefix: str


@dataclass(frozen=True)
class Relation:
    """A stream joined with tables, in order; or the stream itself, if there are none.

    Relations are equal when they join the same tables in the same way, whatever a query calls
    them, so that queries over equal relations share their work.

    Attributes:
        joins: The tables.
        schema: The joined rows: the stream's columns under their own names, then each table's as
            ``table.column``, or ``table#2.column`` where a table is joined a second time.
        zone: Where local times are asked for, in keys and by queries.
    """

    joins: tuple[TableJoin, ...]
    schema: pa.Schema
    zone: Zone = UTC


def table_named(name: str, known: Collection[str]) -> str:
    """The known table of a name in any case; or the name, where it is that of another table.

    One that is nearly known is refused: a slip of the pen would leave the table as it was, and
    the answers wrong.

    >>> table_named("CLOSE", ["close"]), table_named("index", ["close"])
    ('close', 'index')
    """
    lowered = {each.lower(): each for each in known}
    if name.lower() in lowered:
        return lowered[name.lower()]
    near = difflib.get_close_matches(name.lower(), list(lowered), n=1, cutoff=0.8)
    if near:
        raise DataError(
            f"there is no table {name!r}",
            hint=f"did you mean {lowered[near[0]]}? A new table needs a name less like it",
        )
    return name


def relate(
    query: Query, stream: pa.Schema, tables: Mapping[str, pa.Schema], zone: Zone = UTC
) -> tuple[Relation, Query]:
    """What a query reads, and the query with its columns named as the joined rows name them.

    Tables and columns are found regardless of letter case. A column without a qualifier must be
    one of the stream or of one table only, where those that USING joins count once. Nodes keep
    their places in the query's text, and a query related once is related again to itself.

    Raises:
        QueryError: With every table and column that is unknown or ambiguous, and every key whose
            sides cannot be compared.

    >>> from muntin.queries import queries
    >>> stream = pa.schema({"ts": pa.int64(), "symbol": pa.string(), "price": pa.float64()})
    >>> close = pa.schema({"symbol": pa.string(), "cp": pa.float64()})
    >>> (query,) = queries("SELECT max(price - c.cp) FROM trades [RANGE 5 SLIDE 5]"
    ...                    " JOIN close c ON trades.symbol = c.symbol")
    >>> relation, related = relate(query, stream, {"close": close})
    >>> relation.schema.names, relation.joins[0].keys[0][0].key
    (['ts', 'symbol', 'price', 'close.symbol', 'close.cp'], 'symbol')
    >>> related.select
    (Output('max(price - cp)', 'max(price - `close.cp`)'),)
    """
    if not query.joins:
        return Relation((), stream, zone), query
    return Relating(query, stream, tables, zone).relate()


class _Unresolved(exp.Expression):
    """Stands for a column that is unknown, in an expression that goes no further."""


class Relating:
    """One query on its way to what it reads: its tables joined so far, and its problems."""

    def __init__(
        self,
        query: Query,
        stream: pa.Schema,
        tables: Mapping[str, pa.Schema],
        zone: Zone = UTC,
    ) -> None:
        self.query = query
        self.zone = zone
        self.tables = tables
        self.fields = [pa.field(field.name, field.type, field.nullable) for field in stream]
        label = query.alias or query.source.rpartition(".")[2]
        self.names = Names(Origin(label, {name: name for name in stream.names}))
        self.joins: list[TableJoin] = []
        self.problems: list[Problem] = []

    def relate(self) -> tuple[Relation, Query]:
        """The relation and the named query, or the problems of both."""
        for join in self.query.joins:
            self._join(join)
        related = self.named()
        return Relation(tuple(self.joins), pa.schema(self.fields), self.zone), related

    def relation(self) -> Relation:
        """The relation alone, or its problems."""
        for join in self.query.joins:
            self._join(join)
        if self.problems:
            raise QueryError(self.problems)
        return Relation(tuple(self.joins), pa.schema(self.fields), self.zone)

    def named(self) -> Query:
        """The query over joined columns, or all problems found so far."""
        related = replace(
            self.query,
            where=None if self.query.where is None else self._all_named(self.query.where),
            group_by=tuple(Output(g.name, self._all_named(g.node)) for g in self.query.group_by),
            select=tuple(Output(o.name, self._calls_named(o.node)) for o in self.query.select),
            having=None if self.query.having is None else self._calls_named(self.query.having),
        )
        if self.problems:
            raise QueryError(self.problems)
        return related

    def _join(self, join: Join) -> None:
        table = self._table(join)
        if table is None:
            # What its columns are is not known, so nothing is said about them.
            for left, _ in join.on:
                self._all_named(left)
            self.names.add(Origin(join.alias, None))
            return
        keys = [self._key(join, table, left, right) for left, right in join.on]
        times = sum(other.table == table for other in self.joins) + 1
        prefix = table if times == 1 else f"{table}#{times}"
        self.joins.append(
            TableJoin(table, join.kind, tuple(key for key in keys if key is not None), prefix)
        )
        self._add_columns(join, table, prefix)

    def _table(self, join: Join) -> str | None:
        if join.table in self.tables:
            return join.table
        found = [name for name in self.tables if name.lower() == join.table.lower()]
        if len(found) == 1:
            return found[0]
        if found:
            message, hint = f"table {join.table} is ambiguous: {', '.join(found)}", None
        else:
            message, hint = f"no table {join.table}", did_you_mean(join.table, self.tables)
        fallback = (
            'pass it by name, for example tables={"close": table}; '
            "a stream needs a window of its own, as in payments [RANGE '1 hour'] p"
        )
        self._problem(column(join.table, join.start), message, hint or fallback)
        return None

    def _add_columns(self, join: Join, table: str, prefix: str) -> None:
        schema = self.tables[table]
        taken = {field.name.lower() for field in self.fields}
        for field in schema:
            name = f"{prefix}.{field.name}"
            if name.lower() in taken:
                hint = "rename the column before, or give the table another name"
                message = f"there is a column named {name} already, beside table {table}'s own"
                self._problem(column(table, join.start), message, hint)
            self.fields.append(
                pa.field(name, field.type, field.nullable or join.kind == "left", field.metadata)
            )
        merged = {
            right.name.lower()
            for left, right in join.on
            if isinstance(left, exp.Column)
            and not left.table
            and left.name.lower() == right.name.lower()
        }
        columns = {f"{prefix}.{name}": name for name in schema.names}
        self.names.add(Origin(join.alias, columns, frozenset(merged)))

    def _key(
        self, join: Join, table: str, left: exp.Expr, right: exp.Expr
    ) -> tuple[Bound, str] | None:
        over = self._all_named(left)
        own = Names(Origin(join.alias, {name: name for name in self.tables[table].names}))
        name = self._resolved(right, own)
        if name is None or over.find(_Unresolved) is not None:
            return None
        try:
            value = bind(over, pa.schema(self.fields), zone=self.zone).root
            other = bind(column(name), self.tables[table]).root
        except BindingError as error:
            self._problem(error.node or left, error.message, error.hint)
            return None
        try:
            return subexpression(in_zone(unify([value, other])[0], self.zone)), name
        except BindingError as error:
            hint = f"CAST this side: CAST(... AS {name_of(other.type)})"
            self._problem(left, f"{table}.{name} cannot be compared: {error.message}", hint)
            return None

    def _all_named(self, node: exp.Expr) -> exp.Expr:
        """A copy in which every column is named as among the joined ones."""
        named = node.copy()
        self._name_columns(named)
        return named

    def _calls_named(self, node: exp.Expr) -> exp.Expr:
        """The same inside aggregate calls; outside, columns stand for groups."""
        named = node.copy()
        for call in aggregate_calls(named):
            self._name_columns(call.node)
        return named

    def _name_columns(self, node: exp.Expr) -> None:
        for part in list(node.find_all(exp.Column)):
            name, start = self._resolved(part, self.names), position(part)
            part.set("this", _Unresolved() if name is None else column(name, start).this)
            part.set("table", None)

    def _resolved(self, part: exp.Expr, names: Names) -> str | None:
        try:
            return names.find(part)
        except ExpressionError as error:
            self._problem(part, error.message, error.hint)
            return None

    def _problem(self, node: exp.Expr, message: str, hint: str | None) -> None:
        self.problems.append(self.query.problem(node, message, hint))
