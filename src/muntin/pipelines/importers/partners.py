"""Conditions on partners: [NOT] EXISTS and IN (SELECT ...), as the SEMI and ANTI JOIN they mean."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from muntin.pipelines.importers.bounds import BOUND_HINT
from muntin.pipelines.importers.statements import ForeignTable
from muntin.pipelines.importers.windows import Refusal
from muntin.queries.analysis.joins import conjuncts
from muntin.queries.analysis.selections import existence, unwrapped
from muntin.queries.sql.aggregate_calls import aggregate_calls

# How a join was written, where it was not as a join.
_WRITTEN = "written"
_INNER_CLAUSES = {"expressions", "from_", "where", "distinct"}
NOT_IN_HINT = "write NOT EXISTS, with the comparison in its WHERE"
ALONE_HINT = (
    "have one EXISTS or IN in WHERE, over one declared table and combined with AND,"
    " or write the query anew; see docs/joins.md"
)
SUBQUERY_HINT = "write the condition with columns and constants"
_TABLE_HINTS = {
    "SEMI": "JOIN a static table that has each key once",
    "ANTI": "LEFT JOIN a static table, and keep rows for which its key IS NULL",
}


def join_partners(select: exp.Expr, tables: Mapping[str, ForeignTable]) -> None:
    """Make a join of the one condition on partners that a SELECT over one table has.

    Columns are qualified: names of the subquery come first inside it, and are unknown outside.
    What has another shape is left for `refuse_subqueries`.
    """
    select = unwrapped(select)
    if not isinstance(select, exp.Select):
        return
    where = select.args.get("where")
    if where is not None and not select.args.get("joins"):
        parts = list(conjuncts(where.this))
        found = [(part, *one) for part in parts if (one := existence(part)) is not None]
        if len(found) == 1:
            part, node, query, negated = found[0]
            rest = [each for each in parts if each is not part]
            _join(select, rest, node, unwrapped(query), negated, tables)
    _qualify_joined(select, tables)


def _join(
    select: exp.Select,
    rest: list[exp.Expr],
    node: exp.Expr,
    inner: exp.Expr,
    negated: bool,
    tables: Mapping[str, ForeignTable],
) -> None:
    """Put a subquery's table behind FROM, and its conditions into ON."""
    table = _only_table(inner)
    source = select.args.get("from_")
    if table is None or source is None or any(each.find(exp.Query) for each in rest):
        return
    is_in = isinstance(node, exp.In)
    if is_in and (negated or len(inner.expressions) != 1 or isinstance(node.this, exp.Tuple)):
        # NOT IN is unknown where the subquery has a NULL, which no join knows of.
        return
    own = _names(tables, table.name)
    labels = (source.this.alias_or_name, table.alias_or_name)
    if not own or not all(labels) or labels[0].lower() == labels[1].lower():
        return
    terms = [] if inner.args.get("where") is None else [inner.args["where"].this]
    if is_in:
        _qualify(node.this, labels[0])
        terms.insert(0, exp.EQ(this=node.this, expression=inner.expressions[0].unalias()))
    if not terms:
        return
    on = exp.and_(*terms, copy=True)
    for column in list(on.find_all(exp.Column)):
        if not column.table:
            label = labels[1] if column.name.lower() in own else labels[0]
            column.set("table", exp.to_identifier(label))
    select.set("where", exp.Where(this=exp.and_(*rest, copy=True)) if rest else None)
    join = exp.Join(this=table.copy(), side="ANTI" if negated else "SEMI", on=on)
    word = "IN (SELECT ...)" if is_in else "EXISTS"
    join.meta[_WRITTEN] = f"NOT {word}" if negated else word
    select.set("joins", [join])


def _only_table(inner: exp.Expr) -> exp.Table | None:
    """The table of a subquery that only filters."""
    source = inner.args.get("from_") if isinstance(inner, exp.Select) else None
    table = None if source is None else source.this
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        return None
    others = [key for key, value in inner.args.items() if value and key not in _INNER_CLAUSES]
    where = inner.args.get("where")
    nested = where is not None and where.find(exp.Query, exp.Exists) is not None
    computed = any(next(aggregate_calls(item.unalias()), None) for item in inner.expressions)
    if others or nested or computed or table.args.get("window") is not None:
        return None
    return table


def _qualify_joined(select: exp.Expr, tables: Mapping[str, ForeignTable]) -> None:
    """Qualify the columns of a SELECT with a SEMI or ANTI JOIN: outside ON all are of FROM."""
    joins: list[exp.Expr] = list(select.args.get("joins") or ())
    source = select.args.get("from_")
    if len(joins) != 1 or joins[0].args.get("side") not in ("SEMI", "ANTI") or source is None:
        return
    join, label = joins[0], source.this.alias_or_name
    own = _names(tables, join.this.name)
    outer = _names(tables, source.this.name)
    on = join.args.get("on")
    for column in [] if on is None else list(on.find_all(exp.Column)):
        name = column.name.lower()
        if not column.table and (name in own) != (name in outer):
            partner = join.this.alias_or_name
            column.set("table", exp.to_identifier(partner if name in own else label))
    for item in list(select.expressions):
        if isinstance(item, exp.Star) and not any(item.args.values()):
            item.replace(exp.Column(this=exp.Star(), table=exp.to_identifier(label)))
    for root in (*select.expressions, select.args.get("where")):
        if root is not None:
            _qualify(root, label)


def _qualify(root: exp.Expr, label: str) -> None:
    for column in list(root.find_all(exp.Column)):
        if not column.table:
            column.set("table", exp.to_identifier(label))


def _names(tables: Mapping[str, ForeignTable], name: str) -> set[str]:
    """The columns that a table is declared with, in lower case."""
    table = tables.get(name.lower())
    columns = (table.columns if table is not None else None) or ()
    return {column.name.lower() for column in columns}


def refuse_subqueries(select: exp.Select) -> None:
    """Refuse what is left of subqueries.

    Raises:
        Refusal: If there is one, with why it was not made a join.
    """
    clauses = [select.args.get(key) for key in ("where", "having", "group")]
    joined = [join.args.get("on") for join in select.args.get("joins") or ()]
    for root in (*select.expressions, *clauses, *joined):
        for node in root.walk() if root is not None else ():
            if isinstance(node, exp.Exists):
                raise Refusal(node, "this EXISTS has no counterpart", ALONE_HINT)
            if isinstance(node, exp.In) and node.args.get("query") is not None:
                if isinstance(node.parent, exp.Not):
                    message = "NOT IN (SELECT ...) is unknown for all rows if one value is NULL"
                    raise Refusal(node, message, NOT_IN_HINT)
                raise Refusal(node, "this IN (SELECT ...) has no counterpart", ALONE_HINT)
            if isinstance(node, exp.Query):
                raise Refusal(node, "subqueries are not supported", SUBQUERY_HINT)


def unbounded_partner(join: exp.Expr) -> Refusal | None:
    """Why a SEMI or ANTI JOIN that compares no times is refused; None for other joins."""
    side = join.args.get("side")
    if side not in _TABLE_HINTS:
        return None
    written = join.meta_get(_WRITTEN) or f"{side} JOIN"
    message = f"{written} compares no times of its tables"
    return Refusal(join.this, message, f"{BOUND_HINT}; or {_TABLE_HINTS[side]}")
