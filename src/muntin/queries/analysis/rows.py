"""From the syntax tree of a query over rows with lifetimes to the row query it means."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sqlglot import exp

from muntin.queries.analysis.extents import Extents, read_lasting
from muntin.queries.analysis.joins import conjuncts
from muntin.queries.analysis.selections import Selections, computes, existence, unwrapped
from muntin.queries.query import BOUNDS, is_column
from muntin.queries.report import Report
from muntin.queries.rows import STAR, Body, Compound, RowQuery, Selection, SetKind, selections
from muntin.queries.source import position
from muntin.queries.sql.aggregate_calls import aggregate_calls
from muntin.queries.sql.clauses import StreamedNode
from muntin.queries.sql.depth import balance
from muntin.queries.sql.normalize import normalize

ROWS_HINT = "write FROM orders [RANGE '10 minutes'] o JOIN payments [RANGE '1 hour'] p ON ..."
_SETS: dict[tuple[type[exp.Expr], bool], SetKind] = {
    (exp.Union, False): "union all",
    (exp.Union, True): "union",
    (exp.Except, False): "except all",
    (exp.Except, True): "except",
    (exp.Intersect, True): "intersect",
}
_SET_ARGUMENTS = ("this", "expression", "distinct")


def is_row_query(node: exp.Expr) -> bool:
    """Whether a query answers with rows that have lifetimes, not with aggregates of windows."""
    node = unwrapped(node)
    if isinstance(node, StreamedNode | exp.SetOperation):
        return True
    if not isinstance(node, exp.Select):
        return False
    source = node.args.get("from_")
    clause = None if source is None else source.this.args.get("window")
    joins = node.args.get("joins") or ()
    where = node.args.get("where")
    if clause is not None and (clause.args.get("now") or clause.args.get("internal")):
        return True
    if any(join.this.args.get("window") is not None for join in joins):
        return True
    if node.args.get("distinct") or any(isinstance(e, StreamedNode) for e in node.expressions):
        return clause is not None or _shows_rows(node)
    if where is not None and any(existence(part) for part in conjuncts(where.this)):
        return clause is not None or _shows_rows(node)
    return _shows_rows(node)


def _shows_rows(select: exp.Select) -> bool:
    """Whether a SELECT lists columns of its rows, and of tables that they are joined with."""
    if select.args.get("group") or select.args.get("having") or select.args.get("emit_empty"):
        return False
    items = [item.unalias() for item in select.expressions]
    computed = any(next(aggregate_calls(normalize(item.copy())), None) for item in items)
    return not computed and not all(is_column(item, *BOUNDS) for item in items)


def analyze_rows(
    node: exp.Expr, name: str, options: dict[str, Any], report: Report
) -> RowQuery | None:
    """The row query that a statement means, or None after all its problems are reported."""
    return _Analysis(name, report).query(node, options)


class _Analysis:
    """The state of one analysis: its problems, and the windows found so far."""

    def __init__(self, name: str, report: Report) -> None:
        self.name = name
        self.report = report
        self.extents = Extents(report)
        self.selections = Selections(self.extents, report)

    def query(self, node: exp.Expr, options: dict[str, Any]) -> RowQuery | None:
        node = unwrapped(node)
        streamed = node if isinstance(node, StreamedNode) else None
        if streamed is not None:
            node = unwrapped(streamed.this)
        if isinstance(node, exp.Select):
            streamed = self._streamed_list(node, streamed)
        node = balance(node)
        if isinstance(node, exp.Select) and computes(node) and not node.args.get("distinct"):
            body: Body | None = self.selections.read(node, computes=True)
        else:
            body = self._body(node)
        if body is None or self.report.problems:
            return None
        slide = self.extents.settle()
        query = RowQuery(
            name=self.name,
            body=body,
            slide=None if slide is None else slide[0],
            phase=0 if slide is None else slide[1],
            unit=self.extents.unit,
            internal=self.extents.internal,
            aggregation=self.selections.aggregation,
            text=self.report.text,
            **options,
        )
        if streamed is not None:
            query = self._show(query, streamed)
        self._check_together(query, streamed or node)
        return None if self.report.problems else query

    def _streamed_list(self, select: exp.Select, outer: StreamedNode | None) -> StreamedNode | None:
        """The Istream of SELECT Istream(a, b), whose list takes the place of SELECT's."""
        inner = select.expressions[0] if select.expressions else None
        if not isinstance(inner, StreamedNode):
            return outer
        if outer is not None:
            self.report.add(inner, "one Istream or its like inside another", "keep one of them")
        select.set("expressions", inner.this.expressions)
        return inner

    def _show(self, query: RowQuery, streamed: StreamedNode) -> RowQuery:
        kind = streamed.args["kind"]
        if kind == "wstream":
            lasts = read_lasting(streamed.args["window"], self.extents.unit, self.report)
            return replace(query, lasts=lasts, internal=True)
        if kind == "rstream":
            if query.slide is None:
                hint = "add SLIDE to its windows, or leave Rstream out: rows come with lifetimes"
                self.report.add(streamed, "Rstream needs SLIDE", hint)
            return query
        return replace(query, show=kind)

    def _body(self, node: exp.Expr) -> Body | None:
        node = unwrapped(node)
        if isinstance(node, exp.SetOperation):
            return self._compound(node)
        if isinstance(node, StreamedNode):
            hint = "write it around the whole query"
            self.report.add(node, f"{node.args['kind'].capitalize()} inside a query", hint)
            return None
        if not isinstance(node, exp.Select):
            self.report.add(node, "only SELECT can be run as a query", ROWS_HINT)
            return None
        return self.selections.read(node)

    def _compound(self, node: exp.SetOperation) -> Body | None:
        words = type(node).__name__.upper()
        kind = _SETS.get((type(node), bool(node.args.get("distinct"))))
        others = [key for key, value in node.args.items() if value and key not in _SET_ARGUMENTS]
        if kind is None:
            hint = "leave out ALL: it then gives values that both have, once each"
            self.report.add(node.expression, f"{words} ALL is not supported", hint)
            return None
        if others:
            message = f"{others[0].strip('_').replace('_', ' ').upper()} is not supported"
            self.report.add(node.expression, f"{message} with {words}", "leave it out")
            return None
        left, right = self._body(node.this), self._body(node.expression)
        if left is None or right is None:
            return None
        shown_columns = [_columns(side) for side in (left, right)]
        if None not in shown_columns and shown_columns[0] != shown_columns[1]:
            message = f"{words} of {shown_columns[0]} and {shown_columns[1]} columns"
            self.report.add(
                node.expression, message, "list the same number of columns on both sides"
            )
        return Compound(kind, left, right, position(node.expression))

    def _check_together(self, query: RowQuery, node: exp.Expr) -> None:
        """What a query may not ask for all at once."""
        if query.internal:
            self._check_internal(query, node)
        if query.aggregation is not None:
            self._check_aggregation(query, node)
        elif query.approximate:
            hint = "leave it out: it is for sums of products of several streams' columns"
            self.report.add(node, "approximate without an aggregate", hint)
        elif query.guarantees.given:
            (said, *_) = query.guarantees.given
            hint = "leave it out: it is said of aggregates over all values of a window"
            self.report.add(node, f"{said} without an aggregate", hint)
        shows_ends = query.slide is not None
        if query.restore and not shows_ends:
            hint = "add SLIDE: it shows what lived only between two window ends"
            self.report.add(node, "restore without SLIDE", hint)
        elif query.restore and query.show == "dstream":
            hint = "leave out one of them: what no window end has shown leaves at none"
            self.report.add(node, "restore with Dstream", hint)
        if query.output is not None and (shows_ends or query.show != "rows"):
            word = "SLIDE" if query.show == "rows" else query.show.capitalize()
            hint = f"leave out one of them: it says how lifetimes are shown, and {word} shows none"
            self.report.add(node, f"output = '{query.output}' with {word}", hint)

    def _check_aggregation(self, query: RowQuery, node: exp.Expr) -> None:
        assert isinstance(query.body, Selection)
        if query.slide is None:
            of = "joined streams" if len(query.body.sources) > 1 else "rows"
            plain = query.unit == "plain"
            window = "[RANGE 600 SLIDE 60]" if plain else "[RANGE '10 minutes' SLIDE '1 minute']"
            hint = f"say when to answer, as in {window}"
            self.report.add(node, f"an aggregate over {of} needs SLIDE", hint)
        refused = {
            "Istream, Dstream or Wstream": query.show != "rows" or query.lasts is not None,
            "INTERNAL": query.internal and query.lasts is None,
            "restore": query.restore,
            "output": query.output is not None,
            "EMIT UNMATCHED": any(source.whole for source in query.body.sources),
        }
        for what, found in refused.items():
            if found:
                hint = "leave it out: aggregates are of the rows alive at each window end"
                self.report.add(node, f"{what} with an aggregate", hint)

    def _check_internal(self, query: RowQuery, node: exp.Expr) -> None:
        word = "Wstream" if query.lasts is not None else "INTERNAL"
        parts = list(selections(query.body))
        outer = any(source.kind != "inner" for part in parts for source in part.sources)
        refused = {
            "SLIDE": query.slide is not None,
            "an outer join": outer,
            "DISTINCT": any(part.distinct for part in parts),
            "EXISTS": any(part.exists for part in parts),
            "UNION, EXCEPT or INTERSECT of values": any(
                kind != "union all" for kind in _set_kinds(query.body)
            ),
        }
        for what, found in refused.items():
            if found:
                hint = f"leave out one of them: results of {word} never end by their parts"
                self.report.add(node, f"{what} with {word}", hint)


def _columns(body: Body) -> int | None:
    """How many columns an answer has; None if that is not known."""
    if isinstance(body, Compound):
        return _columns(body.left) or _columns(body.right)
    return None if any(item.name == STAR for item in body.items) else len(body.items)


def _set_kinds(body: Body) -> Iterator[SetKind]:
    if isinstance(body, Compound):
        yield body.kind
        yield from _set_kinds(body.left)
        yield from _set_kinds(body.right)
