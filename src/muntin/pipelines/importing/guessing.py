"""Columns that nothing declares, guessed from how queries use them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from muntin.queries import Query
from muntin.queries.aggregate_calls import as_call

_NUMBERS = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv, exp.Neg, exp.Abs, exp.Round)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In)
_SUMS = ("sum", "avg", "mean", "product", "geo_mean", "value_range")
_MOMENTS = ("var", "std")
# What says most about a column comes first.
_RANKS = ("TIMESTAMP", "DOUBLE", "BOOLEAN", "STRING")


def guess_columns(
    name: str, queries: Iterable[Query], time: str | None = None
) -> list[tuple[str, str]]:
    """Names and types of the columns that queries read from a stream or a table.

    A column in arithmetic or next to a number is a DOUBLE, the time column a TIMESTAMP, what
    stands for a condition a BOOLEAN, and all others are STRINGs.

    >>> from muntin.queries import queries
    >>> text = "SELECT k, sum(v) AS s FROM t [RANGE '1 h' SLIDE '1 m'] WHERE w > 1.5 GROUP BY k"
    >>> guess_columns("t", queries(text), "ts")
    [('ts', 'TIMESTAMP'), ('k', 'STRING'), ('w', 'DOUBLE'), ('v', 'DOUBLE')]
    """
    found: dict[str, tuple[str, str]] = {} if time is None else {time.lower(): (time, "TIMESTAMP")}
    for query in queries:
        for column in _columns(name, query):
            key, kind = column.name.lower(), _kind(column)
            known = found.get(key)
            if known is None or _RANKS.index(kind) < _RANKS.index(known[1]):
                found[key] = (column.name, kind)
    return list(found.values())


def _columns(name: str, query: Query) -> Iterator[exp.Column]:
    """The columns of a query that belong to a stream or table; a bare one is the stream's."""
    labels = [join.alias.lower() for join in query.joins if join.table.lower() == name.lower()]
    own = query.source.lower() == name.lower()
    labels += [(query.alias or query.source).lower()] if own else []
    nodes = [*(group.node for group in query.group_by), query.where]
    nodes += [part for call in query.calls for part in (call.node, call.filter)]
    nodes += [side for join in query.joins for pair in join.on for side in pair]
    for node in nodes:
        for column in node.find_all(exp.Column) if node is not None else ():
            if column.table.lower() in labels or (own and not column.table):
                yield column


def _kind(column: exp.Column) -> str:
    child: exp.Expr = column
    parent = column.parent
    while isinstance(parent, exp.Paren):
        child, parent = parent, parent.parent
    if parent is None or isinstance(parent, (exp.And, exp.Or, exp.Not, exp.Where)):
        # A group column on its own has no parent either, and may be of any type.
        return "STRING" if parent is None else "BOOLEAN"
    if isinstance(parent, _COMPARISONS):
        others = [part for part in parent.iter_expressions() if part is not child]
        return "DOUBLE" if any(_is_number(part) for part in others) else "STRING"
    call = as_call(parent)
    if call is not None:
        return "DOUBLE" if call.name in _SUMS or call.name.startswith(_MOMENTS) else "STRING"
    return "DOUBLE" if isinstance(parent, _NUMBERS) else "STRING"


def _is_number(node: exp.Expr) -> bool:
    inner = node.unnest()
    if isinstance(inner, exp.Literal):
        return not inner.is_string
    return isinstance(inner, _NUMBERS)
