"""Aggregate calls inside expressions: finding them, and putting something in their place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from muntin.aggregates import names
from muntin.aggregates.registry import reserve
from muntin.expressions.binding.binder import known_names
from muntin.queries.sql.dialect import is_reserved
from muntin.queries.sql.grammar import AGGREGATE_NAMES, Grammar
from muntin.queries.sql.normalize import canonical_text, take

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
        ignore_nulls: Whether rows whose argument is NULL are skipped, for first and last.
    """

    node: exp.Expr
    name: str
    args: tuple[exp.Expr, ...]
    filter: exp.Expr | None
    ignore_nulls: bool

    @cached_property
    def key(self) -> str:
        """The call's canonical text, such as ``sum(price * vol)``."""
        return canonical_text(self.node)

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


def as_call(node: exp.Expr) -> AggregateCall | None:
    """The call that a node is, or None if it is none."""
    function, condition, ignore_nulls = node, None, False
    if isinstance(function, (exp.IgnoreNulls, exp.RespectNulls)):
        ignore_nulls = isinstance(function, exp.IgnoreNulls)
        function = function.this
    if isinstance(function, exp.Filter):
        condition = function.expression.this
        function = function.this
    if not isinstance(function, exp.Anonymous) or not is_aggregate(function.name):
        return None
    args = tuple(arg for arg in function.expressions if not isinstance(arg, exp.Star))
    return AggregateCall(node, function.name.lower(), args, condition, ignore_nulls)


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
        call.node.replace(mapping[call].copy())
    return take(root)
