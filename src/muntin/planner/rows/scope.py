"""The columns that one SELECT over windowed streams can name, and the leaves they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa
from sqlglot import exp

from muntin.errors import ExpressionError, QueryError
from muntin.expressions import Bound, bind, subexpression
from muntin.expressions.tree import Column as ColumnNode
from muntin.expressions.tree import Node as ExpressionNode
from muntin.expressions.types import name_of
from muntin.expressions.zones import Zone
from muntin.plan.operators import Column, StreamSchema, Windowed
from muntin.plan.relations import Relation, TableJoin
from muntin.queries import RowQuery, RowSource
from muntin.queries.names import Names, Origin
from muntin.queries.query import column
from muntin.queries.source import position, shown


@dataclass
class Leaf:
    """One stream of a SELECT on its way to a windowed leaf of the plan.

    Attributes:
        source: The stream as the query names it.
        stream: Its columns and its time.
        name: The name it is known by among all streams.
        prefix: What its columns start with in the plan; followed by a dot.
        nullable: Whether an outer join pads its columns with NULL.
        used: The columns that somebody needs, in the order they were asked for, and by what.
        computed: Further columns by their key: join keys that are not plain columns.
        where: The conditions that only its own columns decide, over the stream's names.
        joins: The tables that its rows are joined with; ``stream`` has their columns, too.
    """

    source: RowSource
    stream: StreamSchema
    name: str
    prefix: str
    joins: list[TableJoin] = field(default_factory=list)
    nullable: bool = False
    used: dict[str, exp.Expr | None] = field(default_factory=dict)
    computed: dict[str, Column] = field(default_factory=dict)
    where: list[exp.Expr] = field(default_factory=list)

    def named(self, own: str) -> str:
        """A column of the stream as the plan names it."""
        return f"{self.prefix}.{own}"

    def attach(self, join: TableJoin, columns: Iterable[pa.Field]) -> None:
        """Joins its rows with a table, whose columns are its own from then on."""
        schema = pa.schema([*self.stream.schema, *columns])
        self.stream = StreamSchema(schema, self.stream.timeline)
        self.joins.append(join)


class Scope:
    """The streams of one SELECT, inside those of the SELECT around it.

    ``streams`` are the names of all that there are; a scope inside another knows them from there.
    """

    def __init__(
        self,
        query: RowQuery,
        zone: Zone,
        outer: Scope | None = None,
        streams: Iterable[str] = (),
    ) -> None:
        self.query = query
        self.zone = zone
        self.outer = outer
        self.streams: Iterable[str] = streams if outer is None else outer.streams
        self.leaves: list[Leaf] = []
        self.names = Names()
        self.homes: dict[str, Leaf] = {}
        # What each stream and table of FROM is called, and its columns as the plan names them.
        self.shown: list[tuple[str, dict[str, str], frozenset[str]]] = []

    def add(self, source: RowSource, name: str, stream: StreamSchema) -> None:
        """Adds the next stream of FROM."""
        taken = {leaf.prefix.lower() for scope in self._around() for leaf in scope.leaves}
        prefix, number = source.label, 2
        while prefix.lower() in taken:
            prefix, number = f"{source.label}#{number}", number + 1
        leaf = Leaf(source, stream, name, prefix)
        if source.kind in ("right", "full"):
            for other in self.leaves:
                other.nullable = True
        leaf.nullable = source.kind in ("left", "full")
        columns = {leaf.named(own): own for own in stream.schema.names}
        merged = frozenset(name.lower() for name in source.using)
        self.leaves.append(leaf)
        self.add_columns(leaf, source.label, columns, merged)

    def add_columns(
        self, leaf: Leaf, label: str, columns: dict[str, str], merged: frozenset[str]
    ) -> None:
        """Adds columns of a leaf: their names in the plan, and by themselves."""
        self.names.add(Origin(label, columns, merged))
        self.homes |= dict.fromkeys(columns, leaf)
        self.shown.append((label, columns, merged))

    def _around(self) -> Iterator[Scope]:
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    def resolve(self, node: exp.Expr) -> exp.Expr:
        """A copy in which every column is named as the plan names it."""
        root = exp.Paren(this=node.copy())
        for part in list(root.find_all(exp.Column)):
            part.replace(self._resolved(part))
        inner: exp.Expr = root.this
        return inner.pop()

    def _resolved(self, part: exp.Column) -> exp.Expr:
        scope = next((each for each in self._around() if each.has(part)), self)
        try:
            name = scope.names.find(part)
        except ExpressionError as error:
            raise self.error(part, error.message, error.hint) from error
        assert name is not None
        return column(name, position(part))

    def has(self, part: exp.Column) -> bool:
        """Whether this SELECT itself, not one around it, has a column."""
        label = part.table.lower()
        if label:
            return any(each.lower() == label for each, _, _ in self.shown)
        return any(origin.find(part.name) for origin in self.names.origins)

    def need(self, nodes: Iterable[exp.Expr]) -> None:
        """Notes that the columns of resolved expressions are needed above the leaves."""
        for part in (part for node in nodes for part in node.find_all(exp.Column)):
            leaf = next(each.homes[part.name] for each in self._around() if part.name in each.homes)
            leaf.used.setdefault(part.name[len(leaf.prefix) + 1 :], part)

    def reads(self, node: exp.Expr) -> list[Leaf]:
        """The leaves of this SELECT that a resolved expression reads."""
        names = {part.name for part in node.find_all(exp.Column)}
        return [leaf for leaf in self.leaves if any(self.homes.get(name) is leaf for name in names)]

    def is_own(self, node: exp.Expr) -> bool:
        """Whether a resolved expression reads columns of this SELECT alone."""
        return all(part.name in self.homes for part in node.find_all(exp.Column))

    def stars(self, node: exp.Expr) -> Iterator[tuple[str, exp.Expr]]:
        """The columns that a * stands for, each with its own name; merged ones come once."""
        label = node.text("table").lower() if isinstance(node, exp.Column) else ""
        found = [each for each in self.shown if not label or each[0].lower() == label]
        for _, columns, merged in found:
            for name, own in columns.items():
                if label or own.lower() not in merged:
                    yield own, column(name, position(node))
        if not found:
            raise self.error(node, f"there is no stream called {label}", "name one of FROM")

    def rebased(self, node: exp.Expr, leaf: Leaf) -> exp.Expr:
        """A copy of a resolved expression over the stream's own column names."""
        root = exp.Paren(this=node.copy())
        for part in list(root.find_all(exp.Column)):
            part.replace(column(part.name[len(leaf.prefix) + 1 :], position(part)))
        inner: exp.Expr = root.this
        return inner.pop()

    def value(self, node: exp.Expr, leaf: Leaf) -> ExpressionNode:
        """A resolved expression over one leaf, typed."""
        return self.bound(self.rebased(node, leaf), leaf.stream.schema).root

    def key(self, leaf: Leaf, root: ExpressionNode) -> str:
        """The leaf's column that holds a typed expression over it."""
        if isinstance(root, ColumnNode):
            own = leaf.stream.schema.field(root.name)
            if bind(column(root.name), leaf.stream.schema).type == root.type:
                leaf.used.setdefault(own.name)
                return leaf.named(own.name)
        value = subexpression(root)
        if value.key not in leaf.computed:
            name = leaf.named(f"${len(leaf.computed) + 1}")
            leaf.computed[value.key] = Column(name, value)
        return leaf.computed[value.key].name

    def windowed(self, leaf: Leaf) -> Windowed:
        """The leaf of the plan, with the columns that were asked for until now."""
        return self.leaf_of(leaf, (*self.passed(leaf), *leaf.computed.values()))

    def passed(self, leaf: Leaf) -> list[Column]:
        """The columns of a leaf that were asked for until now, as they come."""
        schema = leaf.stream.schema
        found = []
        for own in (own for own in schema.names if own in leaf.used):
            kind = schema.field(own).type
            if pa.types.is_nested(kind):
                what = "list" if pa.types.is_list(kind) else "struct"
                raise self.error(
                    leaf.used[own],
                    f"column {shown(own)} of {shown(leaf.source.label)} is a {kind}, and rows of "
                    "several streams cannot hold it",
                    f"leave it out, or make a column of what you need of the {what} before "
                    "it is streamed",
                )
            found.append(Column(leaf.named(own), self.bound(column(own), schema)))
        return found

    def leaf_of(self, leaf: Leaf, columns: tuple[Column, ...]) -> Windowed:
        """The leaf of the plan with some columns."""
        where = conjunction(leaf.where)
        condition = None if where is None else self.condition(where, leaf.stream.schema)
        relation = None
        if leaf.joins:
            relation = Relation(tuple(leaf.joins), leaf.stream.schema, self.zone)
        return Windowed(leaf.name, self.ticks(leaf.source), condition, columns, relation)

    def ticks(self, source: RowSource) -> int:
        """How long rows of a stream live: ``[NOW]`` is one tick."""
        return 1 if source.range is None else source.range

    def bound(self, node: exp.Expr, schema: pa.Schema) -> Bound:
        """An expression bound to a schema; problems point into the query's text."""
        return self.located(node, lambda: bind(node, schema, zone=self.zone))

    def condition(self, node: exp.Expr, schema: pa.Schema) -> Bound:
        """The same for what must be true."""
        bound = self.bound(node, schema)
        if bound.type != pa.bool_():
            kind = "NULL" if pa.types.is_null(bound.type) else name_of(bound.type)
            message = f"a condition must be a boolean, {bound.key} has the type {kind}"
            raise self.error(node, message, "compare it with something, for example x > 0")
        return bound

    def located(self, node: exp.Expr, make: Callable[[], Bound]) -> Bound:
        """What a call makes, or its error at the place of a node."""
        try:
            return make()
        except ExpressionError as error:
            place = getattr(error, "node", None) or node
            raise self.error(place, error.message, error.hint) from error

    def error(self, node: exp.Expr | None, message: str, hint: str | None) -> QueryError:
        """An error that points at a node of the query."""
        return QueryError([self.query.problem(node, message, hint)])


def conjunction(nodes: Iterable[exp.Expr]) -> exp.Expr | None:
    """Conditions that must all hold, as one; None if there are none."""
    found = [node.copy() for node in nodes]
    return exp.and_(*found, copy=False) if found else None
