"""Aggregates over joined streams, bound: by sides that are multiplied, or by pairs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from muntin.aggregates.kept import can_keep
from muntin.errors import QueryError
from muntin.expressions.tree import structure
from muntin.expressions.zones import UTC, Zone
from muntin.plan.joined import JoinCall, JoinFinal, JoinGroup, JoinSide, Way
from muntin.plan.operators import RowFinal, StreamSchema, leaves
from muntin.plan.timeline import Timeline
from muntin.planner.bound import BoundQuery
from muntin.planner.rows.bind import RowBinding, bind_rows
from muntin.planner.rows.joins import Joining
from muntin.planner.rows.scope import Leaf, Scope, conjunction
from muntin.planner.rows.sides import Call, PairsNeeded, Sides
from muntin.planner.steps.bind import bind_query
from muntin.queries import Output, Query, RowQuery, Selection, replace_calls
from muntin.queries.analysis.joins import conjuncts
from muntin.queries.query import column
from muntin.queries.rows import sources
from muntin.windows import Window

ORDER_HINT = "use an aggregate that does not depend on the order of rows, or one stream"


def bind_aggregates(
    query: RowQuery,
    streams: Mapping[str, StreamSchema],
    zone: Zone = UTC,
    tables: Mapping[str, pa.Schema] | None = None,
) -> tuple[JoinFinal, tuple[RowFinal, ...]]:
    """Bind a query with aggregates over the rows of a join.

    Sides are multiplied where everything that is asked can be read off one side at a time;
    otherwise a row query that makes the pairs comes with it.

    >>> from muntin.queries import parse
    >>> schema = pa.schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.float64()})
    >>> stream = StreamSchema(schema, Timeline("ts", pa.int64()))
    >>> sql = "SELECT sum(a.v) FROM s [RANGE 5 SLIDE 1] a JOIN t [RANGE 3] b ON a.k = b.k"
    >>> final, rows = bind_aggregates(parse(sql)[0].query, {"s": stream, "t": stream})
    >>> final.way, [side.query.window.range for side in final.sides], rows
    ('sides', [5, 3], ())
    """
    try:
        return _Aggregates(query, streams, zone, tables or {}).final()
    except QueryError as error:
        raise RowBinding(query, streams, zone, tables or {}).all_problems(error) from error


class _Aggregates:
    def __init__(
        self,
        query: RowQuery,
        streams: Mapping[str, StreamSchema],
        zone: Zone,
        tables: Mapping[str, pa.Schema],
    ) -> None:
        assert query.aggregation is not None
        assert query.slide is not None
        assert isinstance(query.body, Selection)
        self.query = query
        self.streams = streams
        self.tables = tables
        self.zone = zone
        self.slide = query.slide
        self.selection = query.body
        self.computed = query.aggregation
        rows = RowBinding(query, streams, zone, tables)
        self.found = rows.found()
        self.scope = Scope(query, zone, streams=rows.streams)
        self.joining = Joining(self.selection, self.scope, rows.stream, tables)
        self.range = max(self.scope.ticks(source) for source in sources(query.body))
        self.rows = pa.schema(
            [
                pa.field(leaf.named(each.name), each.type)
                for leaf in self.scope.leaves
                for each in leaf.stream.schema
            ]
        )

    def final(self) -> tuple[JoinFinal, tuple[RowFinal, ...]]:
        bound, calls = self._bound()
        self._check_order(calls)
        groups = [self.scope.resolve(each.node) for each in self.computed.group_by]
        try:
            sides = Sides(self.joining, self.scope, calls, groups)
        except PairsNeeded as reason:
            return self._pairs(bound, calls, groups, str(reason))
        return self._multiplied(bound, calls, sides)

    def _bound(self) -> tuple[BoundQuery, list[Call]]:
        """What is computed, bound to the rows of the join."""
        computed = self.computed
        calls = {call: self.scope.resolve(call.node) for call in computed.calls}
        named = Query(
            name=self.query.name,
            window=self.window(self.range),
            select=tuple(
                Output(each.name, replace_calls(each.node, calls)) for each in computed.select
            ),
            group_by=tuple(
                Output(each.name, self.scope.resolve(each.node)) for each in computed.group_by
            ),
            having=None if computed.having is None else replace_calls(computed.having, calls),
            emit_empty=computed.emit_empty,
            guarantees=self.query.guarantees,
            text=self.query.text,
        )
        bound = bind_query(named, self.rows, self.found[0][1].timeline, {}, self.zone)
        pairs = zip(calls.items(), bound.calls[: len(calls)], strict=True)
        found = {each.name: Call(written, node, each) for (written, node), each in pairs}
        # Columns that tell of an aggregate are read off what it is read off.
        beside = [
            replace(found[each.name.partition(".")[0]], bound=each)
            for each in bound.calls[len(calls) :]
        ]
        return bound, [*found.values(), *beside]

    def window(self, length: int) -> Window:
        """The windows of one stream."""
        return Window(length, self.slide, self.query.phase, unit=self.query.unit)

    def _check_order(self, calls: Sequence[Call]) -> None:
        for call in calls:
            if not call.bound.aggregate.commutative:
                message = f"{call.written.name} of the rows of a join, which have no order"
                raise QueryError([self.query.problem(call.written.node, message, ORDER_HINT)])

    def _multiplied(
        self, bound: BoundQuery, calls: Sequence[Call], sides: Sides
    ) -> tuple[JoinFinal, tuple[RowFinal, ...]]:
        leaves = enumerate(self.scope.leaves)
        answering = tuple(self._side(number, leaf, sides) for number, leaf in leaves)
        final = self._final(
            bound,
            "sides",
            sides.why,
            sides=answering,
            groups=tuple(
                JoinGroup(each.name, value, *place)
                for each, value, place in zip(
                    self.computed.group_by, bound.grouping, sides.groups, strict=True
                )
            ),
            calls=tuple(
                JoinCall(
                    call.bound.name,
                    call.bound.aggregate,
                    call.bound.args,
                    call.bound.filter,
                    place.side,
                    place.column,
                    factors=place.factors,
                )
                for call, place in zip(calls, sides.calls, strict=True)
            ),
        )
        return final, ()

    def _side(self, number: int, leaf: Leaf, sides: Sides) -> JoinSide:
        query = replace(
            sides.query(number),
            name=f"{self.query.name}.{leaf.source.label}",
            window=self.window(self.scope.ticks(leaf.source)),
            source=leaf.name or leaf.source.stream,
            text=self.query.text,
        )
        timeline = leaf.stream.timeline
        bound = bind_query(query, leaf.stream.schema, timeline, {}, self.zone)
        bounds = [pa.field(name, timeline.type) for name in query.bounds]
        schema = pa.schema([*bounds, *(pa.field(o.name, o.value.type) for o in bound.outputs)])
        keys, optional = sides.keys(number), sides.optional[number]
        spread = sides.spread(number)
        return JoinSide(leaf.source.label, leaf.name, query, schema, keys, optional, spread)

    def _pairs(
        self, bound: BoundQuery, calls: Sequence[Call], groups: Sequence[exp.Expr], why: str
    ) -> tuple[JoinFinal, tuple[RowFinal, ...]]:
        made = [self._timed(call) for call in calls]
        asked = [*groups, *(call.node for call in calls)]
        used = {part.name for node in asked for part in node.find_all(exp.Column)}
        used |= {each.column for call in made for each in call.times}
        items = tuple(
            Output(name, _column(label, own))
            for label, columns, _ in self.scope.shown
            for name, own in columns.items()
            if name in used
        )
        one = (Output("1", exp.Literal.number(1)),)
        rows = replace(
            self.query,
            name=f"{self.query.name}.rows",
            body=replace(self.selection, items=items or one),
            aggregation=None,
        )
        rows, final_rows = self._rows(rows, calls)
        final = self._final(
            bound,
            "pairs",
            why,
            sides=(),
            groups=tuple(
                JoinGroup(each.name, value)
                for each, value in zip(self.computed.group_by, bound.grouping, strict=True)
            ),
            calls=tuple(made),
            pairs=rows.name,
            lived=rows.slide is None,
        )
        return final, (final_rows,)

    def _rows(self, rows: RowQuery, calls: Sequence[Call]) -> tuple[RowQuery, RowFinal]:
        """The query whose rows are aggregated: each once if its end is known when it is born."""
        mergeable = all(can_keep(part) for each in calls for part in each.bound.aggregate.parts)
        once = replace(rows, slide=None, phase=0)
        final = bind_rows(once, self.streams, self.zone, self.tables)
        if mergeable and final.output == "append" and _all_end(final):
            return once, final
        return rows, bind_rows(rows, self.streams, self.zone, self.tables)

    def _timed(self, call: Call) -> JoinCall:
        bound = call.bound
        times: tuple[Timeline, ...] = ()
        if any(part.timed for part in bound.aggregate.parts):
            # FILTER has no part in it: it says which rows there are, not in which order.
            args = [self.scope.resolve(each) for each in call.written.args]
            read = list({id(leaf): leaf for arg in args for leaf in self.scope.reads(arg)}.values())
            # Where an argument is of several streams, the time at which the last of them came.
            times = tuple(
                Timeline(leaf.named(leaf.stream.timeline.column), leaf.stream.timeline.type)
                for leaf in (read if len(read) == 1 else self.scope.leaves)
            )
        return JoinCall(bound.name, bound.aggregate, bound.args, bound.filter, times=times)

    def _final(
        self,
        bound: BoundQuery,
        way: Way,
        why: str,
        *,
        sides: tuple[JoinSide, ...],
        groups: tuple[JoinGroup, ...],
        calls: tuple[JoinCall, ...],
        pairs: str = "",
        lived: bool = False,
    ) -> JoinFinal:
        return JoinFinal(
            name=self.query.name,
            way=way,
            why=why,
            streams=tuple(dict.fromkeys(name for name, _ in self.found)),
            timeline=self.found[0][1].timeline,
            range=self.range,
            slide=self.slide,
            phase=self.query.phase,
            bounds=self.computed.bounds,
            emit_empty=self.computed.emit_empty,
            sides=sides,
            groups=groups,
            calls=calls,
            outputs=bound.outputs,
            having=bound.having,
            rows=self.rows,
            pairs=pairs,
            lived=lived,
            replicates=self.query.skew == "replicate",
        )


class Shapes:
    """Binds queries with aggregates over joins, and what several of them write only once.

    Queries that differ in name and WHERE only have one shape. Where each of their conditions is
    one of a single side, it is all that is bound anew.
    """

    def __init__(
        self,
        streams: Mapping[str, StreamSchema],
        zone: Zone = UTC,
        tables: Mapping[str, pa.Schema] | None = None,
    ) -> None:
        self._given = streams, zone, tables or {}
        self._known: dict[Hashable, tuple[JoinFinal, Scope] | None] = {}

    def bind(self, query: RowQuery) -> tuple[JoinFinal, tuple[RowFinal, ...]]:
        """As :func:`bind_aggregates`."""
        found = self._again(query)
        return bind_aggregates(query, *self._given) if found is None else (found, ())

    def _again(self, query: RowQuery) -> JoinFinal | None:
        """The query by a shape that is known; None where it has none."""
        selection = query.body
        assert isinstance(selection, Selection)
        inner = all(source.kind == "inner" for source in selection.sources)
        if not inner or selection.exists or selection.tables or len(selection.sources) == 1:
            return None
        key = _shape(query, selection)
        if key not in self._known:
            self._known[key] = self._template(query, selection)
        known = self._known[key]
        if known is None:
            return None
        final, scope = known
        own = _by_side(selection, scope)
        if own is None:
            return None
        sides = tuple(
            replace(side, query=_asked(side.query, query, side.label, conditions))
            for side, conditions in zip(final.sides, own, strict=True)
        )
        return replace(final, name=query.name, sides=sides)

    def _template(self, query: RowQuery, selection: Selection) -> tuple[JoinFinal, Scope] | None:
        """The query without its WHERE, if that is one of sides."""
        try:
            found = _Aggregates(replace(query, body=replace(selection, where=None)), *self._given)
            final, _ = found.final()
        except QueryError:
            # What joins the streams may stand in WHERE; other problems are told with it.
            return None
        return (final, found.scope) if final.way == "sides" else None


def _by_side(selection: Selection, scope: Scope) -> list[list[exp.Expr]] | None:
    """The conditions of WHERE by the side that decides each; None where one reads several."""
    found: list[list[exp.Expr]] = [[] for _ in scope.leaves]
    for part in () if selection.where is None else conjuncts(selection.where):
        try:
            resolved = scope.resolve(part)
        except QueryError:
            return None
        read = scope.reads(resolved)
        if len(read) != 1:
            return None
        place = next(number for number, leaf in enumerate(scope.leaves) if leaf is read[0])
        found[place].append(scope.rebased(resolved, read[0]))
    return found


def _asked(side: Query, query: RowQuery, label: str, conditions: Sequence[exp.Expr]) -> Query:
    """What a side is asked for another query of the same shape."""
    given = conditions if side.where is None else [*conditions, side.where]
    name = f"{query.name}.{label}"
    return replace(side, name=name, where=conjunction(given), text=query.text)


def _shape(query: RowQuery, selection: Selection) -> Hashable:
    """All of a query but its name and its WHERE."""
    computed = query.aggregation
    assert computed is not None
    outputs = (*computed.group_by, *computed.select)
    sources = tuple(
        (
            source.stream,
            source.label,
            source.range,
            source.using,
            source.time,
            None if source.on is None else structure(source.on),
        )
        for source in selection.sources
    )
    shown = tuple((output.name, structure(output.node)) for output in outputs)
    having = None if computed.having is None else structure(computed.having)
    ends = query.slide, query.phase, query.unit, computed.bounds, computed.emit_empty
    promised = query.approximate, query.guarantees
    return sources, len(computed.group_by), shown, having, ends, promised, query.skew


def _all_end(final: RowFinal) -> bool:
    return all(leaf.range is not None for leaf in leaves(final.root))


def _column(label: str, own: str) -> exp.Expr:
    """A column of a stream, or of a table, as the query names it."""
    node = column(own)
    node.set("table", column(label).this)
    return node
