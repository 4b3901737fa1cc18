"""Aggregate calls inside expressions: finding them, and putting something in their place."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlglot import exp

from muntin.aggregates import names
from muntin.aggregates.registry import constants_of, reserve
from muntin.aggregates.types import is_real
from muntin.expressions.binding.binder import known_names
from muntin.expressions.tree import structure
from muntin.queries.sql.dialect import is_reserved
from muntin.queries.sql.grammar import AGGREGATE_NAMES, Grammar
from muntin.queries.sql.normalize import canonical_text, take

# Texts of calls by their structure: queries of a set have few different ones.
_MOST_TEXTS = 1 << 12
_texts: dict[Hashable, str] = {}
AGGREGATES_ELSEWHERE = frozenset(name.lower() for name in AGGREGATE_NAMES)


def is_aggregate(name: str) -> bool:
    """Whether an aggregate of this name or alias is registered, in any letter case.

    >>> is_aggregate("SUM"), is_aggregate("upper")
    (True, False)
    """
    return name.lower() in names()


def _reads_otherwise(name: str) -> bool:
    """Whether a call of this name is no aggregate's, or could not be told from another function."""
    word = name.upper()
    return (
        word in Grammar.FUNCTIONS
        or word in Grammar.FUNCTION_PARSERS
        or is_reserved(name)
        or name in known_names()
    )


reserve(_reads_otherwise)


@dataclass(frozen=True, eq=False, repr=False)
class AggregateCall:
    """One aggregate call as it stands in an expression.

    Calls are equal when they mean the same by their text: same name, arguments, filter and
    treatment of NULL, whatever the spelling. So a dictionary keyed by calls computes each once.

    Attributes:
        node: The outermost node of the call, with its FILTER and IGNORE NULLS if it has them.
        name: The function's name in lower case, as written (``mean`` stays ``mean``).
        args: The arguments; none for ``count(*)``.
        filter: The condition of FILTER (WHERE ...).
        ignore_nulls: Whether rows whose argument is NULL are skipped; None where nothing is said.
        constants: What follows the arguments and is the same for all rows, as in
            ``percentile(x, 0.5)``.
        distinct: Whether each value counts once.
        descending: Whether WITHIN GROUP orders by the greatest value first.
    """

    node: exp.Expr
    name: str
    args: tuple[exp.Expr, ...]
    filter: exp.Expr | None
    ignore_nulls: bool | None
    constants: tuple[exp.Expr, ...] = ()
    distinct: bool = False
    descending: bool = False

    @cached_property
    def key(self) -> str:
        """The call's canonical text, such as ``sum(price * vol)``."""
        asked = structure(self.node)
        known = _texts.get(asked)
        if known is None:
            if len(_texts) >= _MOST_TEXTS:
                _texts.clear()
            known = _texts[asked] = canonical_text(self.node)
        return known

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AggregateCall) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"AggregateCall({self.key})"


def aggregate_calls(node: exp.Expr) -> Iterator[AggregateCall]:
    """The outermost aggregate calls of an expression, from left to right.

    ``node`` comes from this package's parser, which reads every aggregate as a call by name.
    An aggregate inside another's arguments or filter is not looked at.

    >>> from muntin.queries import parse_expression
    >>> node = parse_expression("sum(price * vol) / count(*) FILTER (WHERE vol > 0)")
    >>> [(call.name, len(call.args), call.filter) for call in aggregate_calls(node)][0]
    ('sum', 1, None)
    >>> list(aggregate_calls(node))
    [AggregateCall(sum(price * vol)), AggregateCall(count(*) FILTER (WHERE vol > 0))]
    """
    stack = [node]
    while stack:
        part = stack.pop()
        call = as_call(part)
        if call is not None:
            yield call
        else:
            stack.extend(part.iter_expressions(reverse=True))


# Aggregates whose argument stands in WITHIN GROUP (ORDER BY ...).
_ORDERED = frozenset({"mode", "percentile_cont", "percentile_disc"})


def as_call(node: exp.Expr) -> AggregateCall | None:
    """The call that a node is, or None if it is none."""
    function, condition, ignore_nulls = node, None, None
    if isinstance(function, (exp.IgnoreNulls, exp.RespectNulls)):
        ignore_nulls = isinstance(function, exp.IgnoreNulls)
        function = function.this
    if isinstance(function, exp.Filter):
        condition = function.expression.this
        function = function.this
    order = _order(function)
    if order is not None:
        function = function.this
    if not isinstance(function, exp.Anonymous) or not is_aggregate(function.name):
        return None
    args = [arg for arg in function.expressions if not isinstance(arg, exp.Star)]
    distinct = len(args) == 1 and isinstance(args[0], exp.Distinct)
    if distinct:
        args = args[0].expressions
    descending = order is not None and bool(order.args.get("desc"))
    if order is not None:
        args = [order.this, *args]
    name = function.name.lower()
    count = len(args) - constants_of(name, len(args))
    parts = tuple(args[:count]), condition, ignore_nulls, tuple(args[count:])
    return AggregateCall(node, name, *parts, distinct, descending)


def _order(node: exp.Expr) -> exp.Ordered | None:
    """What WITHIN GROUP orders by, of an aggregate that takes it."""
    if not isinstance(node, exp.WithinGroup) or node.this.name.lower() not in _ORDERED:
        return None
    order = node.expression
    listed = order.expressions if isinstance(order, exp.Order) else []
    return listed[0] if len(listed) == 1 and isinstance(listed[0], exp.Ordered) else None


Constant = bool | int | float | str
# Types of numbers with a suffix, which Spark's own examples have, as in 0.5D and 1000L.
_OF_SUFFIX: dict[Any, type[int | float]] = {
    exp.DataType.Type.DOUBLE: float,
    exp.DataType.Type.BIGINT: int,
}


def constant_of(node: exp.Expr) -> Constant | tuple[Constant, ...] | None:
    """The value of a number, a text, a truth or an array of such; None if a node is none of these.

    >>> from muntin.queries import parse_expression
    >>> constant_of(parse_expression("array(0.5, 1)")), constant_of(parse_expression("a"))
    ((0.5, 1), None)
    >>> constant_of(parse_expression("-0.5D")), constant_of(parse_expression("true"))
    (-0.5, True)
    """
    if isinstance(node, exp.Neg):
        value = constant_of(node.this)
        return -value if is_real(value) else None
    if isinstance(node, exp.Cast):
        value, kind = constant_of(node.this), _OF_SUFFIX.get(node.to.this)
        if kind is None or not is_real(value) or abs(value) >= 1 << 63 or value != kind(value):
            return None
        return kind(value)
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Literal):
        if node.is_string:
            return str(node.this)
        return int(node.this) if node.this.isdigit() else float(node.this)
    if isinstance(node, exp.Array):
        values = [constant_of(each) for each in node.expressions]
        if not any(value is None or isinstance(value, tuple) for value in values):
            return tuple(values)  # type: ignore[arg-type]
    return None


def replace_calls(node: exp.Expr, mapping: Mapping[AggregateCall, exp.Expr]) -> exp.Expr:
    """A copy of an expression with each aggregate call replaced by what it maps to.

    Every call of the expression must be in the mapping. What is left refers to group columns and
    to whatever the mapping put in, so that it can be evaluated over one row per group.

    >>> from muntin.queries import parse_expression
    >>> node = parse_expression("sum(price) / count(*)")
    >>> mapping = {call: exp.column(f"a{i}") for i, call in enumerate(aggregate_calls(node))}
    >>> canonical_text(replace_calls(node, mapping))
    'a0 / a1'
    """
    root = exp.Paren(this=node.copy())
    for call in list(aggregate_calls(root)):
        # What is wrong with the new node is shown where the call stands.
        call.node.replace(mapping[call].copy().update_positions(call.node))
    return take(root)
