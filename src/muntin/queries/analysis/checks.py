"""What a query may not hold, why, and what to write instead."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from sqlglot import exp

from muntin.aggregates import names
from muntin.errors import did_you_mean
from muntin.expressions.binding.binder import function_error
from muntin.queries.report import Report
from muntin.queries.source import shown
from muntin.queries.sql.aggregate_calls import (
    AGGREGATES_ELSEWHERE,
    AggregateCall,
    as_call,
    is_aggregate,
)
from muntin.queries.sql.depth import MAX_DEPTH, too_deep
from muntin.queries.sql.grammar import SOURCE_HINT

_READ = {"expressions", "from_", "joins", "where", "group", "having", "emit_empty"}
_CLAUSES = {
    "with_": ("WITH is not supported", SOURCE_HINT),
    "distinct": (
        "SELECT DISTINCT is not supported",
        "list the columns in GROUP BY: each group gives one row per window",
    ),
    "laterals": ("LATERAL VIEW is not supported", SOURCE_HINT),
    "order": (
        "ORDER BY is not supported",
        "leave it out: results are a stream; sort them where they are read",
    ),
    "limit": ("LIMIT is not supported", "use HAVING to keep fewer rows"),
    "offset": (
        "OFFSET is not supported here",
        "leave it out; to move a window write [RANGE ... SLIDE ... OFFSET ...]",
    ),
    "qualify": ("QUALIFY is not supported", "use HAVING"),
}
_OF_ROWS = {
    "limit": "leave it out: rows come as they are found; use WHERE to keep fewer",
    "qualify": "use WHERE",
}
_TABLE = {"this", "db", "catalog", "alias", "window"}
_GROUP = {"expressions"}
_ROW_HINTS = {
    "WHERE": "use HAVING for conditions on aggregates",
    "GROUP BY": "group by columns",
    "ON": "join on columns",
}
_ORDER_HINT = (
    "lists are in order of time by themselves; "
    "write percentile_cont(0.5) WITHIN GROUP (ORDER BY x), or use first, last, min_by, max_by"
)
_NODES: tuple[tuple[tuple[type[exp.Expr], ...], str, str], ...] = (
    (
        (exp.Query, exp.Exists, exp.SubqueryPredicate),
        "subqueries are not supported",
        "write the condition with columns and constants",
    ),
    (
        (exp.Window,),
        "OVER is not supported",
        "leave out OVER: aggregates range over the query's own window",
    ),
    (
        (exp.Distinct,),
        "DISTINCT is not supported here",
        "write it before the one argument of an aggregate, as in count(DISTINCT x)",
    ),
    (
        (exp.WithinGroup, exp.Order, exp.Ordered),
        "this order is not supported",
        _ORDER_HINT,
    ),
    ((exp.Lambda,), "lambda functions are not supported", "write an expression over columns"),
    (
        (exp.Placeholder, exp.Parameter, exp.SessionParameter),
        "parameters are not supported",
        "write the value itself",
    ),
    (
        (exp.Dot, exp.Slice),
        "this part of a nested value is not supported",
        "name a field, as in l.a, or an element, as in arr[0]",
    ),
    (
        (exp.Cube, exp.Rollup, exp.GroupingSets),
        "GROUPING SETS, CUBE and ROLLUP are not supported",
        "write one query for each grouping",
    ),
    (
        (exp.Alias, exp.Aliases, exp.PropertyEQ, exp.Kwarg),
        "a name inside an expression is not supported",
        "give names to whole columns of SELECT, with AS",
    ),
    (
        (exp.Tuple,),
        "lists in parentheses are not supported here",
        "write the expressions one by one, without parentheses",
    ),
)
_REFUSED = tuple(kind for kinds, _, _ in _NODES for kind in kinds)


def check_select(node: exp.Expr, report: Report) -> exp.Select | None:
    """The SELECT of a query whose clauses are all supported; problems are reported."""
    while isinstance(node, exp.Subquery) and node.is_wrapper:
        node = node.this
    if isinstance(node, exp.SetOperation):
        kind = type(node).__name__.upper()
        report.add(node.expression, f"{kind} is not supported", "write one query for each SELECT")
        return None
    if not isinstance(node, exp.Select):
        report.add(node, "only SELECT can be run as a query", SOURCE_HINT)
        return None
    return node if check_clauses(node, _READ, report) else None


def check_clauses(
    node: exp.Expr, read: Collection[str], report: Report, *, shows_rows: bool = False
) -> bool:
    """Reports clauses other than those that are read; False where the tree is too deep.

    One that ``shows_rows`` has no groups, so HAVING is not what would help.
    """
    for key, value in node.args.items():
        if value and key not in read:
            name = key.strip("_").replace("_", " ").upper()
            message, hint = _CLAUSES.get(key, (f"{name} is not supported", SOURCE_HINT))
            hint = _OF_ROWS.get(key, hint) if shows_rows else hint
            report.add(value if isinstance(value, exp.Expr) else None, message, hint)
    if any(stopped := [too_deep(part) for part in node.iter_expressions()]):
        deep = next(part for part in stopped if part is not None)
        report.add(
            deep,
            f"an expression has more than {MAX_DEPTH} levels",
            "split it into columns computed beforehand",
        )
        return False
    return True


def check_table(select: exp.Select, report: Report) -> exp.Table | None:
    """The stream a query reads from; problems are reported."""
    source = select.args.get("from_")
    table = source.this if source is not None else None
    if table is None:
        report.add(None, "FROM is missing", "write FROM stream [RANGE ... SLIDE ...]")
        return None
    if isinstance(table, exp.Table) and isinstance(table.this, exp.Func):
        report.add(
            table,
            f"unknown table function {shown(table.this.name)}",
            "write FROM stream [RANGE ...], or HOP or TUMBLE",
        )
        return None
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        report.add(table, "FROM takes the name of a stream", SOURCE_HINT)
        return None
    alias = table.args.get("alias")
    others = [key for key, value in table.args.items() if value and key not in _TABLE]
    if others or (alias is not None and alias.args.get("columns")):
        name = others[0].upper() if others else "a list of column names"
        report.add(table, f"{name} after the stream is not supported", "name the stream alone")
        return None
    return table


def check_group(group: exp.Expr, report: Report) -> None:
    """Reports kinds of grouping other than a list of expressions."""
    for key, value in group.args.items():
        if value is not None and value != [] and key not in _GROUP:
            report.add(
                group,
                "GROUP BY takes a list of expressions only",
                "write GROUP BY a, b: one query for each grouping",
            )
            return


def check_expression(node: exp.Expr, report: Report) -> bool:
    """Reports every part of an expression that no query may hold; True if there is none."""
    before = len(report.problems)
    for part in node.walk(bfs=False, prune=lambda part: _refuse_node(part, report)):
        _check_wrapper(part, report)
    return len(report.problems) == before


def _refuse_node(node: exp.Expr, report: Report) -> bool:
    if isinstance(node, _REFUSED) and not _is_of_call(node):
        message, hint = next(said for kinds, *said in _NODES if isinstance(node, kinds))
        report.add(node, message, hint)
        return True
    if isinstance(node, exp.In) and node.args.get("query"):
        report.add(node, _NODES[0][1], "list the values: x IN (1, 2, 3)")
        return True
    if isinstance(node, exp.Array) and _is_constant(node):
        return True
    if isinstance(node, exp.Star):
        return _refuse_star(node, report)
    if isinstance(node, exp.Anonymous) and is_aggregate(node.name):
        return False
    return _refuse_elsewhere(node, report) or _refuse_function(node, report)


def _is_of_call(node: exp.Expr) -> bool:
    """Whether DISTINCT or WITHIN GROUP stands where an aggregate takes it."""
    if isinstance(node, exp.Distinct):
        call = node.parent
        alone = len(node.expressions) == 1 and node.args.get("on") is None
        whole = isinstance(call, exp.Anonymous) and len(call.expressions) == 1
        return alone and whole and call is not None and as_call(call) is not None
    if isinstance(node, (exp.Order, exp.Ordered, exp.WithinGroup)):
        within = node if isinstance(node, exp.WithinGroup) else node.find_ancestor(exp.WithinGroup)
        return within is not None and as_call(within) is not None
    return False


def _is_constant(node: exp.Expr) -> bool:
    """Whether an array is a constant of an aggregate, which is looked at when it is bound."""
    function = node.parent
    within = None if function is None else function.parent
    whole = within if isinstance(within, exp.WithinGroup) else function
    call = None if whole is None else as_call(whole)
    return call is not None and any(node is each for each in call.constants)


def _refuse_star(star: exp.Expr, report: Report) -> bool:
    call = star.parent
    inside = isinstance(call, exp.Func)
    if inside and call is not None and call.name.lower() == "count" and len(call.expressions) == 1:
        return False
    report.add(
        call if inside else star,
        "* is allowed only in count(*)" if inside else "SELECT * is not supported",
        "name the columns; select the groups and the aggregates you need",
    )
    return True


def _refuse_function(node: exp.Expr, report: Report) -> bool:
    # Aggregates, which may have been meant, are looked up for the message only.
    error = function_error(node) and function_error(node, names())
    if error is not None:
        report.add(node, error.message, error.hint or "")
    return error is not None


def _refuse_elsewhere(call: exp.Expr, report: Report) -> bool:
    name = call.name.lower() if isinstance(call, exp.Anonymous) else ""
    if name not in AGGREGATES_ELSEWHERE:
        return False
    hint = did_you_mean(name, names()) or "muntin.aggregates.names() lists all of them"
    report.add(call, f"there is no aggregate {shown(name)}", hint)
    return True


def _check_wrapper(node: exp.Expr, report: Report) -> None:
    if isinstance(node, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
        inside = isinstance(node.parent, (exp.IgnoreNulls, exp.RespectNulls))
        if not inside and as_call(node) is None and not isinstance(node.this, exp.Window):
            clause = "FILTER" if isinstance(node, exp.Filter) else "IGNORE NULLS"
            report.add(node, f"{clause} follows aggregates only", "leave it out, or use WHERE")
    elif isinstance(node.parent, exp.WithinGroup):
        return
    elif isinstance(node, exp.Anonymous) and is_aggregate(node.name) and not node.expressions:
        report.add(node, f"{shown(node.name)}() has no argument", "write count(*), or an argument")


def check_row_expression(node: exp.Expr, clause: str, report: Report) -> None:
    """Reports aggregates where each row is looked at alone."""
    hint = _ROW_HINTS[clause]
    for part in _calls_within([node]):
        report.add(part.node, f"an aggregate in {clause}", hint)


def check_call(call: AggregateCall, report: Report) -> None:
    """Reports aggregates inside an aggregate's arguments and filter."""
    inside = [*call.args, *([call.filter] if call.filter is not None else [])]
    for part in _calls_within(inside):
        report.add(
            part.node,
            f"an aggregate inside {call.name}()",
            "aggregate once: nest the arithmetic, as in sum(x) / count(*)",
        )


def _calls_within(nodes: Iterable[exp.Expr]) -> Iterator[AggregateCall]:
    for node in nodes:
        for part in node.walk(bfs=False):
            call = as_call(part) if isinstance(part, exp.Anonymous) else None
            if call is not None:
                yield call
