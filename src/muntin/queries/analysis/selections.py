"""The SELECTs of a row query: streams, conditions, partners that must be there, and columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlglot import exp

from muntin.queries.analysis.checks import (
    check_clauses,
    check_expression,
    check_row_expression,
    check_table,
)
from muntin.queries.analysis.extents import Extents
from muntin.queries.analysis.joins import conjuncts, read_table_joins, table_name
from muntin.queries.analysis.scope import Scope
from muntin.queries.analysis.select import SelectAnalysis
from muntin.queries.query import BOUNDS, Output, is_column
from muntin.queries.report import Report
from muntin.queries.rows import STAR, Aggregation, Existence, RowSource, Selection
from muntin.queries.source import position, shown
from muntin.queries.sql.aggregate_calls import aggregate_calls
from muntin.queries.sql.clauses import Extent
from muntin.queries.sql.normalize import default_name, normalize

MAX_STREAMS = 6
# Of all set operations and subqueries of one query; also how deep they can be nested.
MAX_SELECTS = 32
EXISTS_HINT = "make it a condition of its own in WHERE, combined with AND"
VALUE_HINT = (
    "compare rows with each other: NOT EXISTS (SELECT 1 FROM payments [RANGE '1 hour'] p "
    "WHERE p.amount >= o.total) says that o.total is above all amounts"
)
LATER_HINT = "write one SELECT with the aggregate for each of them, and combine their results"
_READ = ("expressions", "from_", "joins", "where", "distinct", "group", "having", "emit_empty")


def unwrapped(node: exp.Expr) -> exp.Expr:
    """A query without the parentheses around it."""
    while isinstance(node, exp.Subquery) and node.is_wrapper:
        node = node.this
    return node


def existence(node: exp.Expr) -> tuple[exp.Expr, exp.Expr, bool] | None:
    """The [NOT] EXISTS or [NOT] IN of a condition: its node, its SELECT, and if it is negated."""
    node, negated = node.unnest(), False
    while isinstance(node, exp.Not):
        node, negated = node.this.unnest(), not negated
    if isinstance(node, exp.Exists):
        return node, node.this, negated
    query = node.args.get("query") if isinstance(node, exp.In) else None
    return None if query is None else (node, query, negated)


class Selections:
    """The reader of a query's SELECTs; windows go to ``extents``, problems to ``report``.

    What the query itself computes of its rows is left in ``aggregation``.
    """

    def __init__(self, extents: Extents, report: Report) -> None:
        self.aggregation: Aggregation | None = None
        self.extents = extents
        self.report = report
        self._count = 0

    def read(
        self,
        select: exp.Expr,
        outer: Sequence[str] = (),
        exists: bool = False,
        computes: bool = False,
    ) -> Selection | None:
        """One SELECT; ``outer`` are the labels that it may name as well, those near it first.

        One that computes aggregates has no items.
        """
        assert isinstance(select, exp.Select)
        self._count += 1
        if self._count > MAX_SELECTS:
            hint = "write several queries"
            self.report.add(select, f"a query of more than {MAX_SELECTS} SELECTs", hint)
            return None
        table = check_table(select, self.report)
        is_read = check_clauses(select, _READ, self.report, shows_rows=not computes)
        if not is_read or table is None:
            return None
        if not computes:
            self._check_aggregates(select)
        joined: list[exp.Expr] = list(select.args.get("joins") or ())
        tables = [table, *(join.this for join in joined)]
        if not self._check_tables(tables):
            return None
        # Partners of SEMI and ANTI JOIN are named in ON alone.
        partners = [join for join in joined if join.args.get("side") in ("SEMI", "ANTI")]
        static = [join for join in joined if join.this.args.get("window") is None]
        joined = [join for join in joined if join not in partners and join not in static]
        tables = [table, *(join.this for join in joined)]
        labels = [each.alias_or_name for each in tables]
        known = [*labels, *(join.this.alias_or_name for join in static)]
        near = [*known, *_others(outer, known)]
        found, rest = self._split_where(select)
        hidden = {join.this.alias_or_name: join.args["side"] for join in partners}
        scope = Scope(near, self.report, hidden)
        scope.qualify_all(_roots(select, found, rest, [*joined, *static]))
        if computes:
            self.aggregation = SelectAnalysis(select, table, "", self.report).aggregation()
        sources = [
            self._source(each, label, join)
            for each, label, join in zip(tables, labels, [None, *joined], strict=True)
        ]
        existences = [self._partner(join, labels, near) for join in partners]
        existences += [self._subquery(*each, near) for each in found]
        return Selection(
            sources=tuple(source for source in sources if source is not None),
            items=() if computes else self._items(select, exists),
            where=self._condition(rest),
            exists=tuple(each for each in existences if each is not None),
            distinct=self._distinct(select),
            tables=read_table_joins(static, len(labels), scope, self.report),
        )

    def _check_aggregates(self, select: exp.Select) -> None:
        """Reports aggregates and groups of a SELECT that is a part of another, or distinct."""
        group = select.args.get("group") or select.args.get("having")
        calls = list(_calls(select))
        if select.args.get("emit_empty") is not None and not calls:
            hint = "leave it out: windows without rows give none"
            self.report.add(select.args["emit_empty"], "EMIT EMPTY without an aggregate", hint)
        if calls or group is not None:
            what = "an aggregate" if calls else "GROUP BY"
            place = calls[0] if calls and position(calls[0]) is not None else group
            if select.args.get("distinct"):
                hint = "leave out DISTINCT: each group gives one row per window"
                self.report.add(place, f"{what} with SELECT DISTINCT", hint)
                return
            message = f"{what} inside EXISTS, IN or a set operation is not supported"
            self.report.add(place, message, LATER_HINT)

    def _check_tables(self, tables: list[Any]) -> bool:
        before = len(self.report.problems)
        streams = [table for table in tables if table.args.get("window") is not None]
        if len(streams) > MAX_STREAMS:
            message = f"a join of more than {MAX_STREAMS} streams"
            self.report.add(streams[MAX_STREAMS], message, "join fewer in one query")
        lowered = [table.alias_or_name.lower() for table in tables]
        for number, table in enumerate(tables):
            name = shown(table.alias_or_name)
            if any("." in part.name or not part.name for part in table.parts):
                self.report.add(table, "a stream's name has no dots in it", "use another name")
            if lowered[number] in lowered[:number]:
                hint = f"give it another name: {shown(table.name)} AS {name}_{number + 1}"
                self.report.add(table, f"there are two streams called {name}", hint)
            if table.args.get("window") is None and number == 0:
                self.report.add(table, f"{name} has no window", _window_hint(tables))
        return len(self.report.problems) == before

    def _split_where(
        self, select: exp.Select
    ) -> tuple[list[tuple[exp.Expr, exp.Expr, bool]], exp.Expr | None]:
        """The subqueries of WHERE, and a node that holds the rest of its conditions."""
        where = select.args.get("where")
        if where is None:
            return [], None
        found, rest = [], []
        for part in conjuncts(where.this):
            present = existence(part)
            if present is None:
                rest.append(part)
            else:
                found.append(present)
        node = exp.Where(this=exp.and_(*rest, copy=True, wrap=False)) if rest else None
        inner = None if node is None else node.find(exp.Query, exp.Exists)
        if inner is not None:
            if _is_value(inner):
                self.report.add(inner, "a subquery as a value is not supported", VALUE_HINT)
            else:
                message = "EXISTS or IN (SELECT ...) inside a condition"
                self.report.add(inner, message, EXISTS_HINT)
            return found, None
        return found, node

    def _source(self, table: exp.Expr, label: str, join: exp.Expr | None) -> RowSource | None:
        length = self.extents.read(table.args["window"])
        if length is None:
            return None
        side: Any = "INNER" if join is None else join.args.get("side") or "INNER"
        using = () if join is None else join.args.get("using") or ()
        if using and side in ("RIGHT", "FULL"):
            hint = "write ON, which says which side's column is meant"
            self.report.add(using[0], f"USING with {side} JOIN", hint)
        time = table.args["window"].args.get("time")
        return RowSource(
            stream=table_name(table),
            label=label,
            range=length.range,
            kind=side.lower(),
            on=None if join is None else self._on(join.args.get("on")),
            using=tuple(name.name for name in using),
            using_starts=tuple(position(name) for name in using),
            whole=join is not None and bool(join.args.get("whole")),
            time=None if time is None else time.name,
            start=position(table),
        )

    def _on(self, node: exp.Expr | None) -> exp.Expr | None:
        if node is None:
            return None
        on = normalize(node.copy())
        inner = on.find(exp.Query, exp.Exists)
        if inner is not None:
            hint = VALUE_HINT if _is_value(inner) else EXISTS_HINT
            self.report.add(on, "a subquery in ON", hint)
        elif check_expression(on, self.report):
            check_row_expression(on, "ON", self.report)
        return on

    def _partner(self, join: exp.Expr, others: list[str], near: list[str]) -> Existence | None:
        """SEMI JOIN and ANTI JOIN, as the EXISTS and NOT EXISTS they mean."""
        side, label = join.args["side"], join.this.alias_or_name
        source = self._source(join.this, label, None)
        using = join.args.get("using") or ()
        if join.args.get("on") is not None:
            Scope([label, *near], self.report).qualify_all([join.args["on"]])
        on = self._on(join.args.get("on"))
        if using:
            pairs = [exp.column(n.name, others[0]).eq(exp.column(n.name, label)) for n in using]
            on = normalize(exp.and_(*pairs, copy=False, wrap=False))
        if on is None or source is None:
            return None
        # Inside EXISTS a plain name would be one of the inner stream, here one of either.
        plain = [each for each in on.find_all(exp.Column) if not each.table]
        if plain or (using and len(others) > 1):
            hint = f"write {shown(others[0])}.k = {shown(label)}.k"
            self.report.add(join.this, f"ON of {side} JOIN needs qualified columns", hint)
        one = Output("1", exp.Literal.number(1))
        return Existence(Selection((source,), (one,), where=on), negated=side == "ANTI")

    def _subquery(
        self, node: exp.Expr, query: exp.Expr, negated: bool, outer: list[str]
    ) -> Existence | None:
        inner = unwrapped(query)
        if not isinstance(inner, exp.Select):
            hint = "write one SELECT, or several conditions"
            self.report.add(inner, "EXISTS and IN take a single SELECT", hint)
            return None
        is_in = isinstance(node, exp.In)
        if inner.args.get("distinct"):
            # Whether a partner is there does not depend on how often it is.
            inner.set("distinct", None)
        selection = self.read(inner, outer, exists=not is_in)
        if selection is None:
            return None
        if not is_in:
            return Existence(selection, negated)
        value = normalize(node.this.copy())
        if len(selection.items) != 1 or selection.items[0].name == STAR:
            hint = "list one column, or write EXISTS"
            self.report.add(node, "IN takes a SELECT of one column", hint)
        elif isinstance(value, exp.Tuple):
            hint = "write EXISTS (SELECT ... WHERE p.a = o.a AND p.b = o.b)"
            self.report.add(node, "IN compares one value", hint)
        elif check_expression(value, self.report):
            check_row_expression(value, "WHERE", self.report)
        return Existence(selection, negated, value)

    def _items(self, select: exp.Select, exists: bool) -> tuple[Output, ...]:
        if exists:
            # What EXISTS selects makes no difference.
            return (Output("1", exp.Literal.number(1)),)
        outputs: list[Output] = []
        taken: set[str] = set()
        for node in select.expressions:
            output = self._item(node)
            if output is None:
                continue
            if output.name != STAR and output.name.lower() in taken:
                message = f"two result columns are named {shown(output.name)}"
                self.report.add(node, message, "give one of them another name with AS")
            taken.add(output.name.lower())
            outputs.append(output)
        if not outputs and not self.report.problems:
            self.report.add(select, "nothing is selected", "list columns, or *")
        return tuple(outputs)

    def _item(self, node: exp.Expr) -> Output | None:
        alias = node.args["alias"] if isinstance(node, exp.Alias) else None
        inner = normalize((node.this if alias is not None else node).copy())
        if is_column(inner, *BOUNDS) and alias is None and self.extents.sliding:
            # They lead the results by themselves.
            return None
        if isinstance(inner, exp.Star) or isinstance(inner.this, exp.Star):
            kept = [key for key in ("except_", "replace", "rename") if inner.args.get(key)]
            if kept or alias is not None:
                self.report.add(node, "* takes all columns as they are", "list the columns")
            return Output(STAR, inner)
        subquery = inner.find(exp.Query, exp.Exists)
        if subquery is not None:
            hint = VALUE_HINT if _is_value(subquery) else EXISTS_HINT
            self.report.add(inner, "a subquery in SELECT", hint)
            return None
        if not check_expression(inner, self.report):
            return None
        name = alias.name if alias is not None else default_name(inner)
        if not name or name == STAR:
            self.report.add(node, "a column without a name", "write AS and a name")
        return Output(name, inner)

    def _condition(self, holder: exp.Expr | None) -> exp.Expr | None:
        if holder is None:
            return None
        node = normalize(holder.this)
        if check_expression(node, self.report):
            check_row_expression(node, "WHERE", self.report)
        return node

    def _distinct(self, select: exp.Select) -> bool:
        distinct = select.args.get("distinct")
        if distinct is not None and distinct.args.get("on"):
            self.report.add(distinct, "DISTINCT ON is not supported", "write SELECT DISTINCT")
        return distinct is not None


def _is_value(subquery: exp.Expr) -> bool:
    """Whether a subquery stands for a value, and not in EXISTS or IN."""
    return not isinstance(subquery, exp.Exists) and not isinstance(subquery.parent, exp.In)


def _window_hint(tables: list[Any]) -> str:
    """The window that the first of some streams needs, in the unit of those that there are."""
    first, root = tables[0], tables[0].root()
    units = {isinstance(each.this, int) for each in root.find_all(Extent) if not each.args["rows"]}
    name, stream = shown(first.alias_or_name), shown(first.name)
    alias = "" if stream == name else f" {name}"
    length = "3600" if units == {True} else "'1 hour'"
    hint = f"write {stream} [RANGE {length}]{alias}"
    if not units:
        hint += ", or [RANGE 3600] where times are integers"
    if len(tables) > 1:
        return f"{hint}, and so for every stream; only tables go without, behind JOIN"
    return f"{hint}; a table can only be joined with a stream"


def _calls(select: exp.Select) -> Iterator[exp.Expr]:
    """The aggregate calls of what a SELECT lists."""
    for item in select.expressions:
        for call in aggregate_calls(normalize(item.unalias().copy())):
            yield call.node


def computes(select: exp.Select) -> bool:
    """Whether a SELECT computes aggregates, or groups."""
    grouped = select.args.get("group") or select.args.get("having")
    return bool(grouped) or next(_calls(select), None) is not None


def _others(outer: Sequence[str], labels: Sequence[str]) -> list[str]:
    """The labels around a SELECT that its own do not hide."""
    own = {label.lower() for label in labels}
    return [label for label in outer if label.lower() not in own]


def _roots(
    select: exp.Select,
    found: list[tuple[exp.Expr, exp.Expr, bool]],
    rest: exp.Expr | None,
    joined: list[exp.Expr],
) -> list[exp.Expr]:
    """The expressions of a SELECT itself, without those of its subqueries."""
    values = [node.this for node, _, _ in found if isinstance(node, exp.In)]
    conditions = [join.args.get("on") for join in joined]
    clauses = [select.args.get(key) for key in ("group", "having")]
    others = [node for node in (rest, *conditions, *clauses) if node is not None]
    return [*select.expressions, *values, *others]
