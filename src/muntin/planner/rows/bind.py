"""A row query bound to the streams it reads: a tree of operators, and how it is shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

import pyarrow as pa
from sqlglot import exp

from muntin.errors import Problem, QueryError, did_you_mean
from muntin.expressions import BindingError, bind, subexpression
from muntin.expressions.binding.coercion import in_zone, unify
from muntin.expressions.zones import UTC, Zone
from muntin.plan.joined import JoinFinal
from muntin.plan.operators import (
    Column,
    Difference,
    Distinct,
    Exists,
    Join,
    Node,
    RowFinal,
    RowPlan,
    Select,
    StreamSchema,
    Union,
    Windowed,
    has_distinct,
    has_whole,
    inputs,
    leaves,
)
from muntin.planner.rows.joins import Joining
from muntin.planner.rows.problems import UnknownNames, all_problems
from muntin.planner.rows.rewritings import StreamRate, rewritten, weighed
from muntin.planner.rows.scope import Scope
from muntin.planner.rows.times import at, check_times
from muntin.queries import Compound, RowQuery, RowSource, Selection
from muntin.queries.query import column
from muntin.queries.rows import STAR, Body, sources
from muntin.queries.sql.normalize import canonical_text

_DIFFERENCES: dict[str, Literal["all", "except", "intersect"]] = {
    "except all": "all",
    "except": "except",
    "intersect": "intersect",
}
SKEW_HINT = "leave it out: each result must belong to a row of a single stream"


def row_plan(
    queries: Iterable[RowQuery],
    streams: Mapping[str, StreamSchema],
    zone: Zone = UTC,
    tables: Mapping[str, pa.Schema] | None = None,
    rates: Mapping[str, StreamRate] | None = None,
    previous: RowPlan | None = None,
) -> RowPlan:
    """The plan of some row queries over streams by name, and tables that they are joined with.

    A single stream whose name is empty is what any name in FROM means. Queries are rewritten by
    what is known of the streams; those of the plan before stay as they are there.

    Raises:
        QueryError: With the problems of all queries.
    """
    from muntin.planner.rows.aggregates import Shapes  # noqa: PLC0415 - it imports this module

    problems: list[Problem] = []
    finals: list[RowFinal] = []
    joined: list[JoinFinal] = []
    shapes = Shapes(streams, zone, tables)
    for query in queries:
        try:
            if query.aggregation is None:
                finals.append(bind_rows(query, streams, zone, tables))
            else:
                final, rows = shapes.bind(query)
                joined.append(final)
                finals += rows
        except QueryError as error:
            problems += error.problems
    if problems:
        raise QueryError(problems)
    plan = RowPlan(dict(streams), tuple(finals), tuple(joined))
    return weighed(plan, rates or {}, previous)


def bind_rows(
    query: RowQuery,
    streams: Mapping[str, StreamSchema],
    zone: Zone = UTC,
    tables: Mapping[str, pa.Schema] | None = None,
) -> RowFinal:
    """Bind a row query, or raise a :class:`QueryError` that points into its text.

    Conditions that one stream decides go to its leaf, which has only the columns that somebody
    needs. Streams and columns are found regardless of letter case.

    >>> import pyarrow as pa
    >>> from muntin.plan.timeline import Timeline
    >>> from muntin.queries import parse
    >>> schema = pa.schema({"ts": pa.int64(), "id": pa.int64(), "v": pa.float64()})
    >>> stream = StreamSchema(schema, Timeline("ts", pa.int64()))
    >>> (statement,) = parse("SELECT a.v FROM s [RANGE 5] a JOIN t [RANGE 3] b ON a.id = b.id "
    ...                      "WHERE b.v > 0")
    >>> final = bind_rows(statement.query, {"s": stream, "t": stream})
    >>> final.output, final.root.label, final.schema.names
    ('append', 'WK', ['valid_from', 'valid_to', 'v'])
    """
    return RowBinding(query, streams, zone, tables or {}).final()


class RowBinding:
    """One query on its way into a plan."""

    def __init__(
        self,
        query: RowQuery,
        streams: Mapping[str, StreamSchema],
        zone: Zone,
        tables: Mapping[str, pa.Schema],
    ) -> None:
        self.query = query
        self.tables = tables
        self.zone = zone
        self.relations = {name: each for name, each in streams.items() if each.retroactive}
        self.streams = {name: each for name, each in streams.items() if not each.retroactive}
        self._lowered = {name.lower(): name for name in self.streams}

    def final(self) -> RowFinal:
        """The query with its operators, and how it is shown."""
        try:
            return self._final()
        except QueryError as error:
            raise self.all_problems(error) from error

    def all_problems(self, first: QueryError) -> QueryError:
        """An error that also tells of all names that mean nothing."""
        streams = self.streams, self.relations
        names = UnknownNames(self.query, self.zone, self.stream, self.tables, *streams)
        return all_problems(first, names)

    def _final(self) -> RowFinal:
        query = self.query
        read = list(sources(query.body))
        found = self.found()
        written = self.body(query.body)
        if query.show != "rows":
            self._comparing(written)
        root, told = rewritten(written)
        final = RowFinal(
            name=query.name,
            root=root,
            timeline=found[0][1].timeline,
            show=query.show,
            output=self._output(root, written),
            slide=query.slide,
            phase=query.phase,
            range=max(1 if source.range is None else source.range for source in read),
            restore=query.restore,
            internal=query.internal,
            lasts=query.lasts,
            sql=query.sql(),
            replicates=query.skew == "replicate",
            rewritings=told,
            written=None if root == written else written,
        )
        if final.replicates and not may_replicate(final):
            message = "skew = 'replicate' works only with JOIN of streams, EXISTS or IN"
            raise QueryError([query.problem(None, message, SKEW_HINT)])
        self._check_columns(final)
        self._check_relations(final)
        self._check_unmatched(final)
        return final

    def found(self) -> list[tuple[str, StreamSchema]]:
        """The streams that the query reads, whose times meet."""
        read = list(sources(self.query.body))
        self._check_alone(read)
        found = [self.stream(source) for source in read]
        check_times(self.query, read, [stream for _, stream in found], self.zone)
        return found

    def _output(self, root: Node, written: Node) -> Literal["append", "final", "changes"]:
        """How results are shown: appended where ends are known when rows are born."""
        if self.query.output == "changes":
            return "changes"
        known = root.label != "STR"
        # Pieces of one value are put together where that was asked for, and where the query as it
        # was written shows them whole: a rewriting must not cut them.
        asked = self.query.output == "final" and isinstance(root, Distinct)
        whole = written.label == "STR" and has_distinct(root)
        return "append" if known and not asked and not whole else "final"

    def stream(self, source: RowSource) -> tuple[str, StreamSchema]:
        """The stream of a name, in any case."""
        known = "" if list(self.streams) == [""] else source.stream.lower()
        name = self._lowered.get(known)
        if name is not None:
            return name, self.streams[name]
        hint = did_you_mean(source.stream, self.streams) or "pass it by name"
        raise at(self.query, source, f"there is no stream {source.stream}", hint)

    def _check_alone(self, read: list[RowSource]) -> None:
        """Without a name the one stream may have any, but not two."""
        others = [each for each in read if each.stream.lower() != read[0].stream.lower()]
        if list(self.streams) == [""] and others:
            message = f"there is one stream, but the query reads {', '.join(self.query.streams)}"
            hint = "pass several by name, as in {'orders': ..., 'payments': ...}"
            raise at(self.query, others[0], message, hint)

    def _check_relations(self, final: RowFinal) -> None:
        """Rows that a relation takes away again are shown as changes."""
        updated = [leaf.stream for leaf in leaves(final.root) if leaf.retroactive]
        if updated and final.shown != "changes":
            message = (
                f"rows end when the relation {updated[0]} is updated, "
                "so they must be shown as changes"
            )
            hint = "write CREATE QUERY ... WITH (output = 'changes') AS ..., without SLIDE"
            raise QueryError([self.query.problem(None, message, hint)])

    def _check_unmatched(self, final: RowFinal) -> None:
        """Rows of EMIT UNMATCHED come once they have ended, so nothing can be made of them."""
        if not has_whole(final.root):
            return
        late = "SLIDE, Istream, Dstream or changes" if final.shown in ("windows", "changes") else ""
        if late or _is_read(final.root):
            message = "EMIT UNMATCHED gives a row once it has ended, too late for "
            source = next(each for each in sources(self.query.body) if each.whole)
            hint = "leave out EMIT UNMATCHED, or what stands above its join"
            raise at(self.query, source, message + (late or "an operator above it"), hint)

    def _check_columns(self, final: RowFinal) -> None:
        """No column is named as those that lead the results, which tell times."""
        names = final.schema.names
        lead = names[: len(names) - len(final.root.schema)]
        for name in final.root.schema.names:
            if name.lower() in lead:
                listed = " and ".join([", ".join(lead[:-1]), lead[-1]] if lead[1:] else lead)
                message = f"results begin with {listed}, and a column is named {name}, too"
                hint = f"give it another name with AS, as in {name}_2"
                node = self._item(self.query.body, name)
                raise QueryError([self.query.problem(node, message, hint)])

    def _comparing(self, node: Node) -> Node:
        """The same operator, whose values are compared: NULL alone has no type to compare."""
        for field in node.schema:
            if pa.types.is_null(field.type):
                message = f"the column {field.name} is NULL without a type, and values are compared"
                place = self._item(self.query.body, field.name)
                hint = f"give it one, as in CAST(NULL AS STRING) AS {field.name}"
                if place is None or isinstance(place, exp.Column):
                    own = field.name if place is None else canonical_text(place)
                    hint = f"write CAST({own} AS STRING) AS {field.name}, or give it a type where "
                    hint += "rows come from"
                raise QueryError([self.query.problem(place, message, hint)])
        return node

    def _item(self, body: Body, name: str) -> exp.Expr | None:
        """What is shown under a name, where SELECT names it."""
        if isinstance(body, Compound):
            return self._item(body.left, name)
        found = (item.node for item in body.items if item.name.lower() == name.lower())
        return next(found, None)

    def body(self, body: Body) -> Node:
        """The operator whose rows an answer shows."""
        if isinstance(body, Selection):
            return self._selection(body)
        return self._compound(body)

    def _selection(self, selection: Selection) -> Node:
        scope = Scope(self.query, self.zone, streams=self.streams)
        joining = Joining(selection, scope, self.stream, self.tables, self.relations)
        items = list(self._items(selection, scope))
        leaf = joining.leaf()
        if leaf is not None:
            # One stream without EXISTS: its leaf shows the results by itself.
            schema = leaf.stream.schema
            columns = tuple(
                Column(name, scope.bound(scope.rebased(node, leaf), schema)) for name, node in items
            )
            node: Node = scope.leaf_of(leaf, columns)
        else:
            below, rest = joining.build(node for _, node in items)
            columns = tuple(Column(name, scope.bound(e, below.schema)) for name, e in items)
            where = None if rest is None else scope.condition(rest, below.schema)
            node = Select(below, where, columns)
        return self._comparing(Distinct(node)) if selection.distinct else node

    def _items(self, selection: Selection, scope: Scope) -> Iterator[tuple[str, exp.Expr]]:
        seen: dict[str, str] = {}
        for item in selection.items:
            if item.name == STAR:
                found = list(scope.stars(item.node))
            else:
                found = [(item.name, scope.resolve(item.node))]
            for name, node in found:
                if name.lower() in seen:
                    other = f"write it as in {_written(node)} AS {name}_2"
                    raise scope.error(item.node, f"two result columns are named {name}", other)
                seen[name.lower()] = name
                yield name, node

    def _compound(self, body: Compound) -> Node:
        left, right = self._unified(body, self.body(body.left), self.body(body.right))
        if body.kind in ("union all", "union"):
            parts = [
                part
                for side in (left, right)
                for part in (side.inputs if isinstance(side, Union) else (side,))
            ]
            union = Union(tuple(parts))
            return union if body.kind == "union all" else self._comparing(Distinct(union))
        return self._comparing(Difference(left, right, _DIFFERENCES[body.kind]))

    def _unified(self, body: Compound, left: Node, right: Node) -> tuple[Node, Node]:
        """Both sides with the names of the left, in types that they have in common."""
        word = body.kind.upper()
        if len(left.schema) != len(right.schema):
            message = f"{word} of {len(left.schema)} and {len(right.schema)} columns"
            hint = "list the same number of columns on both sides"
            place = column(word, body.start)
            raise QueryError([self.query.problem(place, message, hint)])
        if left.schema.types == right.schema.types and left.schema.names == right.schema.names:
            return left, right
        columns: tuple[list[Column], list[Column]] = ([], [])
        for one, other in zip(left.schema, right.schema, strict=True):
            bound = [bind(column(f.name), s.schema) for f, s in ((one, left), (other, right))]
            if one.type != other.type:
                try:
                    roots = unify([each.root for each in bound])
                except BindingError as error:
                    message = f"{word} of the columns {one.name} and {other.name}: {error.message}"
                    hint = "CAST one of them to the other's type"
                    item = self._item(body.right, other.name)
                    second = column(other.name, body.start) if item is None else item
                    raise QueryError([self.query.problem(second, message, hint)]) from error
                bound = [subexpression(in_zone(root, self.zone)) for root in roots]
            for side, value in zip(columns, bound, strict=True):
                side.append(Column(one.name, value))
        changed = [
            node
            if tuple(each.name for each in side) == tuple(node.schema.names)
            and [each.value.type for each in side] == node.schema.types
            else Select(node, None, tuple(side))
            for node, side in zip((left, right), columns, strict=True)
        ]
        return changed[0], changed[1]


def _is_read(node: Node) -> bool:
    """Whether an operator below reads rows of EMIT UNMATCHED, beside selections and unions."""
    passes = isinstance(node, Select | Union)
    return any((not passes and has_whole(each)) or _is_read(each) for each in inputs(node))


def may_replicate(final: RowFinal) -> bool:
    """Whether results can be told apart by the rows of one stream, wherever these are."""
    node = final.root
    while isinstance(node, Select):
        node = node.input
    if final.show != "rows":
        return False
    if isinstance(node, Join):
        return all(isinstance(each, Windowed) for each in node.inputs)
    plain = isinstance(node, Exists) and not (node.null_aware and node.negated)
    return (
        plain
        and isinstance(node, Exists)
        and isinstance(node.left, Windowed)
        and isinstance(node.right, Windowed)
    )


def _written(node: exp.Expr) -> str:
    """A resolved column as a user writes it."""
    return node.name if isinstance(node, exp.Column) else "the expression"
