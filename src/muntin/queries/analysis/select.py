"""From the syntax tree of a SELECT to the query it means."""

from __future__ import annotations

from sqlglot import exp

from muntin.queries.analysis.checks import (
    check_expression,
    check_group,
    check_row_expression,
    check_select,
    check_table,
)
from muntin.queries.analysis.groups import Item, Resolver, clashes, name_groups, read_groups
from muntin.queries.analysis.joins import read_joins, table_name
from muntin.queries.analysis.scope import Scope
from muntin.queries.query import BOUNDS, Output, Query, column, is_column
from muntin.queries.report import Report
from muntin.queries.rows import Aggregation
from muntin.queries.source import shown
from muntin.queries.sql.aggregate_calls import aggregate_calls
from muntin.queries.sql.clauses import WindowClause
from muntin.queries.sql.depth import balance
from muntin.queries.sql.normalize import default_name, normalize
from muntin.queries.sql.spellings import is_window_call, read_window_call, to_window

_WINDOW_HINT = (
    "write FROM stream [RANGE '12 minutes' SLIDE '5 minutes'], HOP or TUMBLE in FROM,"
    " or GROUP BY window(ts, '12 minutes', '5 minutes')"
)


def analyze(node: exp.Expr, name: str, report: Report) -> Query | None:
    """The query that a SELECT means, or None after all its problems are reported."""
    found = analyze_window(node, name, report)
    return None if found is None else found[0]


def analyze_window(
    node: exp.Expr, name: str, report: Report, window_hint: str = _WINDOW_HINT
) -> tuple[Query, WindowClause] | None:
    """As `analyze`, with the clause that the query's window was read from.

    ``window_hint`` is what to write where there is none.
    """
    select = check_select(balance(node), report)
    table = check_table(select, report) if select is not None else None
    if select is None or table is None:
        return None
    return SelectAnalysis(select, table, name, report, window_hint).query()


def checked_condition(node: exp.Expr, report: Report) -> exp.Expr | None:
    """A condition on its own as WHERE has it, or None where something is wrong with it."""
    node = normalize(node)
    _check_condition(node, report)
    return None if report.problems else node


def _check_condition(node: exp.Expr, report: Report) -> None:
    if check_expression(node, report):
        check_row_expression(node, "WHERE", report)


class SelectAnalysis:
    """The state of one analysis, from FROM to HAVING."""

    def __init__(
        self,
        select: exp.Select,
        table: exp.Table,
        name: str,
        report: Report,
        window_hint: str = _WINDOW_HINT,
    ) -> None:
        self.select = select
        self.window_hint = window_hint
        self.table = table
        self.name = name
        self.report = report
        self.joined: list[exp.Expr] = list(select.args.get("joins") or ())
        tables = [table, *(join.this for join in self.joined)]
        self.scope = Scope([table.alias_or_name for table in tables], report)

    def query(self) -> tuple[Query, WindowClause] | None:
        """All clauses in the order SQL evaluates them."""
        self._check_names()
        self.scope.qualify(self.select)
        group_nodes = self._group_nodes()
        clause = self._window_clause(group_nodes)
        window = to_window(clause, self.report) if clause is not None else None
        joins, where = read_joins(self.joined, self._where(), self.scope, self.report)
        computed = self._computed(group_nodes, clause)
        if self.report.problems or window is None or clause is None:
            return None
        time = clause.args.get("time")
        query = Query(
            name=self.name,
            window=window,
            select=computed.select,
            where=where,
            group_by=computed.group_by,
            having=computed.having,
            emit_empty=computed.emit_empty,
            source=table_name(self.table),
            alias=self.table.alias or None,
            time=time.name if time is not None else None,
            joins=joins,
            bounds=computed.bounds,
            text=self.report.text,
        )
        return query, clause

    def aggregation(self) -> Aggregation:
        """What is computed, of a SELECT whose streams, joins and WHERE are read elsewhere."""
        return self._computed(self._group_nodes(), None)

    def _computed(self, group_nodes: list[exp.Expr], clause: WindowClause | None) -> Aggregation:
        items = [self._item(node, clause) for node in self.select.expressions]
        bounds = self._bounds(items)
        rest = [node for node in group_nodes if not self._names_bound(node, clause, items)]
        groups, left = name_groups(read_groups(rest, items, self.report), items)
        resolver = Resolver(groups, self.report)
        select = [Output(item.name, resolver.resolve(item.node)) for item in left]
        having = self._having(resolver, groups, left, select)
        self._check_outputs(bounds, groups, left, select)
        empty = self._emit_empty(groups)
        return Aggregation(tuple(select), tuple(groups), having, empty, bounds)

    def _check_names(self) -> None:
        for table in [self.table, *(join.this for join in self.joined)]:
            what = "stream" if table is self.table else "table"
            for part in table.parts:
                if "." in part.name or not part.name:
                    self.report.add(part, f"a {what}'s name has no dots in it", "use another name")
        labels = [label.lower() for label in self.scope.labels]
        for number, join in enumerate(self.joined, 1):
            if labels[number] in labels[:number]:
                name = shown(self.scope.labels[number])
                hint = f"give it another name: {shown(join.this.name)} AS {name}_{number + 1}"
                self.report.add(join.this, f"there are two tables called {name}", hint)

    def _group_nodes(self) -> list[exp.Expr]:
        group = self.select.args.get("group")
        if group is None:
            return []
        check_group(group, self.report)
        return [normalize(node) for node in list(group.expressions)]

    def _window_clause(self, group_nodes: list[exp.Expr]) -> WindowClause | None:
        clauses = [self.table.args["window"]] if self.table.args.get("window") else []
        calls = [node for node in group_nodes if is_window_call(node)]
        self._check_time(calls)
        read = [read_window_call(call, self.report) for call in calls]
        if len(clauses) + len(calls) > 1:
            extra = calls[-1]
            self.report.add(extra, "more than one window", "keep one window in each query")
        if not clauses and not calls:
            self.report.add(self.table, "the query has no window", self.window_hint)
        return next((clause for clause in [*clauses, *read] if clause is not None), None)

    def _check_time(self, calls: list[exp.Expr]) -> None:
        for time in [call.expressions[0] for call in calls if call.expressions]:
            if (self.scope.number(time) or 0) > 0:
                hint = f"write a time column of {shown(self.scope.labels[0])}"
                self.report.add(time, "a window ranges over the stream's time", hint)

    def _where(self) -> exp.Expr | None:
        where = self.select.args.get("where")
        if where is None:
            return None
        node = normalize(where.this)
        _check_condition(node, self.report)
        return node

    def _is_bound(self, node: exp.Expr, clause: WindowClause | None) -> bool:
        """Whether a node names the window or its bounds, which every result has."""
        if is_column(node, *BOUNDS) or is_window_call(node):
            return True
        by_call = clause is not None and clause.args["spelling"] == "window()"
        return by_call and is_column(node, "window")

    def _names_bound(self, node: exp.Expr, clause: WindowClause | None, items: list[Item]) -> bool:
        """Also by the name that SELECT gives to a bound, unless it reads a column of that name."""
        if self._is_bound(node, clause):
            return True
        given = [item for item in items if item.aliased and is_column(item.node, *BOUNDS)]
        if not is_column(node, *(item.name.lower() for item in given)):
            return False
        name = node.name.lower()
        return not any(is_column(part, name) for item in items for part in item.node.walk())

    def _bounds(self, items: list[Item]) -> tuple[str, str]:
        """What SELECT calls the bounds of the window; without a name they keep their own."""
        start, end = (self._bound(bound, items) for bound in BOUNDS)
        return start, end

    def _bound(self, bound: str, items: list[Item]) -> str:
        named = [item for item in items if item.aliased and is_column(item.node, bound)]
        if len({item.name.lower() for item in named}) > 1:
            others = " and ".join(shown(item.name) for item in named)
            self.report.add(
                named[1].node, f"{bound} is named twice, {others}", "keep one: results have it once"
            )
        return named[0].name if named else bound

    def _item(self, node: exp.Expr, clause: WindowClause | None) -> Item:
        alias = node.args["alias"] if isinstance(node, exp.Alias) else None
        inner = normalize(node.this if alias is not None else node)
        settled = self._is_bound(inner, clause)
        if settled:
            self._check_bound(inner, alias)
        elif not check_expression(inner, self.report):
            # More questions about the parts of what is refused would only distract.
            settled = True
        name = alias.name if alias is not None else "" if settled else default_name(inner)
        if not name and not settled:
            self.report.add(node, "a column without a name", "write AS and a name")
        return Item(inner, name, alias is not None, settled)

    def _check_bound(self, node: exp.Expr, alias: exp.Expr | None) -> None:
        if alias is None or is_column(node, *BOUNDS) or alias.name.lower() == "window":
            return
        name = shown(alias.name)
        self.report.add(
            alias,
            f"window cannot be renamed to {name}",
            f"it is two columns: write window_start AS {name}_start, window_end AS {name}_end",
        )

    def _having(
        self, resolver: Resolver, groups: list[Output], items: list[Item], select: list[Output]
    ) -> exp.Expr | None:
        having = self.select.args.get("having")
        if having is None:
            return None
        node = normalize(having.this)
        if not check_expression(node, self.report):
            return None
        aliases = {
            item.name.lower(): output.node
            for item, output in zip(items, select, strict=True)
            if item.aliased
        }
        aliases |= {group.name.lower(): column(group.name) for group in groups}
        return normalize(resolver.resolve(node, aliases))

    def _check_outputs(
        self,
        bounds: tuple[str, str],
        groups: list[Output],
        items: list[Item],
        select: list[Output],
    ) -> None:
        outputs = [*groups, *select]
        nodes = [*(group.node for group in groups), *(item.node for item in items)]

        def clash(index: int, name: str) -> None:
            self.report.add(
                nodes[index],
                f"two result columns are named {shown(name)}",
                "give one of them another name with AS",
            )

        if bounds[0].lower() == bounds[1].lower():
            hint = "give one of them another name with AS"
            self.report.add(self.select, f"both bounds are named {shown(bounds[0])}", hint)
        clashes(bounds, [output.name for output in outputs], clash)
        computed = any(next(aggregate_calls(output.node), None) for output in select)
        if not groups and not computed and not self.report.problems:
            self.report.add(
                self.select,
                "the query has no aggregate and no GROUP BY",
                "select an aggregate such as count(*), or group by a column",
            )

    def _emit_empty(self, groups: list[Output]) -> bool:
        node = self.select.args.get("emit_empty")
        if node is not None and groups:
            self.report.add(
                node,
                "EMIT EMPTY with GROUP BY",
                "leave out one of them: which groups an empty window would have is not known",
            )
        return node is not None
