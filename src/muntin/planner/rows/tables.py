"""Tables beside windowed streams: rows of one stream are joined with them as they come."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from sqlglot import exp

from muntin.errors import ExpressionError, did_you_mean
from muntin.expressions import BindingError, Bound, bind, subexpression
from muntin.expressions.binding.coercion import in_zone, unify
from muntin.expressions.types import name_of
from muntin.plan.relations import TableJoin
from muntin.planner.rows.scope import Leaf, Scope
from muntin.queries.names import Names, Origin
from muntin.queries.query import Join, column

ONE_HINT = (
    "compare its columns with those of one stream: a row is joined with a table when it arrives"
)
_HOUR = "'1 hour'"
PADDED_HINT = "write LEFT JOIN, and compare it with a plain column of that stream"


def attach_table(join: Join, scope: Scope, tables: Mapping[str, pa.Schema]) -> None:
    """Join the rows of one stream of a SELECT with a table.

    The table belongs to the stream whose columns ON compares it with. So it is joined before
    streams are, which is the same but for rows that an outer join pads: there a table needs LEFT.
    """
    name = _table(join, scope, tables)
    resolved = [scope.resolve(left) for left, _ in join.on]
    place = column(join.table, join.start)
    leaves = {id(leaf): leaf for node in resolved for leaf in scope.reads(node)}
    if len(leaves) != 1 or not all(map(scope.is_own, resolved)):
        message = f"table {join.alias} is not joined with one stream"
        raise scope.error(place, message, ONE_HINT)
    (leaf,) = leaves.values()
    plain = all(isinstance(node.unnest(), exp.Column) for node in resolved)
    if leaf.nullable and (join.kind != "left" or not plain):
        message = f"table {join.alias} is joined with {leaf.source.label}, which an outer join pads"
        raise scope.error(place, message, PADDED_HINT)
    keys = tuple(
        _key(join, leaf, scope, node, right, tables[name])
        for node, (_, right) in zip(resolved, join.on, strict=True)
    )
    times = sum(each.table == name for each in leaf.joins) + 1
    prefix = name if times == 1 else f"{name}#{times}"
    fields = [
        pa.field(f"{prefix}.{each.name}", each.type, each.nullable or join.kind == "left")
        for each in tables[name]
    ]
    leaf.attach(TableJoin(name, join.kind, keys, prefix), fields)
    columns = {leaf.named(f"{prefix}.{own}"): own for own in tables[name].names}
    scope.add_columns(leaf, join.alias, columns, _merged(join))


def _table(join: Join, scope: Scope, tables: Mapping[str, pa.Schema]) -> str:
    found = [name for name in tables if name.lower() == join.table.lower()]
    if found:
        return found[0]
    place = column(join.table, join.start)
    # A SELECT without a known stream has other problems, which are told as well.
    plain = any(leaf.stream.timeline.plain for leaf in scope.leaves)
    window = f"{join.table} [RANGE {3600 if plain else _HOUR}]"
    if join.table.lower() in (name.lower() for name in scope.streams):
        alias = "" if join.alias == join.table else f" {join.alias}"
        message = f"{join.table} is a stream, and has no window"
        raise scope.error(place, message, f"write {window}{alias}: only tables go without")
    hint = did_you_mean(join.table, tables) or (
        f"if it is a stream, write {window}; pass a table by name, "
        'for example tables={"customers": table}'
    )
    raise scope.error(place, f"no table {join.table}", hint)


def _key(
    join: Join, leaf: Leaf, scope: Scope, left: exp.Expr, right: exp.Expr, table: pa.Schema
) -> tuple[Bound, str]:
    """An expression over the rows of the leaf, and the column of the table it must equal."""
    try:
        own = Names(Origin(join.alias, {name: name for name in table.names})).find(right)
    except ExpressionError as error:
        raise scope.error(right, error.message, error.hint) from error
    assert own is not None
    value, other = scope.value(left, leaf), bind(column(own), table).root
    try:
        return subexpression(in_zone(unify([value, other])[0], scope.zone)), own
    except BindingError as error:
        hint = f"CAST this side: CAST(... AS {name_of(other.type)})"
        message = f"{join.alias}.{own} cannot be compared: {error.message}"
        raise scope.error(left, message, hint) from error


def _merged(join: Join) -> frozenset[str]:
    """The columns of USING, which are the stream's as well."""
    return frozenset(
        right.name.lower()
        for left, right in join.on
        if isinstance(left, exp.Column)
        and not left.table
        and left.name.lower() == right.name.lower()
    )
