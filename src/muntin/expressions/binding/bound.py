"""From SQL nodes to typed expressions over a schema."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from muntin.expressions.binding.binder import Binder
from muntin.expressions.binding.grammar import ExpressionDialect
from muntin.expressions.binding.render import render
from muntin.expressions.storage import column_type
from muntin.expressions.tree import BindingError, Call, Column, Node, walk
from muntin.expressions.types import TIMESTAMP
from muntin.expressions.zones import UTC, Zone

TOO_DEEP = "the expression is nested too deeply"


@dataclass(frozen=True, eq=False)
class Bound:
    """An expression bound to a schema: typed, comparable, picklable.

    `key` is its canonical text: two expressions that differ only in case, quoting, spacing or
    redundant parentheses have one key, are equal and hash alike, as long as they are bound in
    one zone. `type` is Spark's result type; a timestamp column selected as it is keeps the zone
    it is shown in, everything computed is shown in UTC.
    `columns` are the input columns it reads.

    >>> schema = pa.schema([("price", pa.float64()), ("vol", pa.int64())])
    >>> bound = bind_text("(PRICE) * `vol`", schema)
    >>> bound.key, bound.type, sorted(bound.columns), bound.can_fail
    ('price * vol', DataType(double), ['price', 'vol'], False)
    """

    key: str
    type: pa.DataType
    root: Node

    @cached_property
    def columns(self) -> frozenset[str]:
        """The input columns that the expression reads, in the schema's spelling."""
        return frozenset(node.name for node in walk(self.root) if isinstance(node, Column))

    @cached_property
    def can_fail(self) -> bool:
        """Whether some row could make it fail: overflow, division by zero, a bad cast."""
        from muntin.expressions.evaluation.compiler import Compiler  # noqa: PLC0415  (loads polars)

        return Compiler().compile(self.root).failed is not None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bound) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def bind(
    node: exp.Expr, schema: pa.Schema, binder: Binder | None = None, zone: Zone = UTC
) -> Bound:
    """Bind a SQL expression of sqlglot's Spark dialect to the columns of a schema.

    Names are looked up regardless of case, table qualifiers are ignored. Many expressions over
    one schema share a `binder` of it; else local times are those of `zone`.

    Raises:
        BindingError: A column or function is unknown, ambiguous or not allowed, or types do not
            fit; its `node` is the node at fault.
    """
    try:
        root = (binder or Binder(schema, zone)).bind(node)
    except RecursionError as error:
        raise BindingError(TOO_DEEP, hint="split it up", node=node) from error
    kind = root.type
    if isinstance(root, Column):
        kind = column_type(schema.field(root.name).type)
    return Bound(render(root), kind, root)


def bind_text(text: str, schema: pa.Schema, zone: Zone = UTC) -> Bound:
    """Bind an expression given as text, with local times in a zone.

    >>> bind_text("vol > 10 and vol<20", pa.schema([("vol", pa.int32())])).key
    'vol > 10 AND vol < 20'
    """
    try:
        node = sqlglot.parse_one(text, dialect=ExpressionDialect)
    except SqlglotError as error:
        raise BindingError(
            f"cannot parse {text!r}: {_description(error)}", hint="write one SQL expression"
        ) from error
    except RecursionError as error:
        raise BindingError(TOO_DEEP, hint="split it up") from error
    return bind(node, schema, zone=zone)


def whole_column(field: pa.Field) -> Bound:
    """A column handed over as it is, whatever its type.

    >>> whole_column(pa.field("a", pa.list_(pa.int64()))).type
    ListType(list<item: int64>)
    """
    root = Column(field.name, field.type)
    return Bound(render(root), field.type, root)


def subexpression(node: Node) -> Bound:
    """A part of a bound expression as an expression of its own.

    A conversion at its root that SQL implied is written out, and so is the zone that every
    computation uses: keys stay different where types are.

    >>> bound = bind_text("vol > 1.5", pa.schema([("vol", pa.int32())]))
    >>> subexpression(bound.root.args[0]).key
    'CAST(vol AS DECIMAL(11,1))'
    """
    if isinstance(node, Call) and node.function == "cast":
        node = replace(node, hidden=False)
    key = render(node)
    if isinstance(node, Column) and node.type == TIMESTAMP:
        # A column selected as it is keeps its own zone, under the plain key.
        key = f"CAST({key} AS TIMESTAMP)"
    return Bound(key, node.type, node)


def _description(error: SqlglotError) -> str:
    """What the parser says, without the terminal colours of its message."""
    if isinstance(error, ParseError) and error.errors:
        return str(error.errors[0].get("description"))
    return str(error)
