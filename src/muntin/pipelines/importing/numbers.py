"""Whole numbers in Flink: a quotient and an average of them is a whole number too."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from muntin.queries.aggregate_calls import as_call

_WHOLE_NAMES = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_KEEPING = ("sum", "min", "max", "first_value", "last_value", "abs")
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.IntDiv)
_WRAPPERS = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)
_WHOLE_TYPES = {exp.DataType.Type[name] for name in _WHOLE_NAMES}


def keep_whole(node: exp.Expr, types: Mapping[str, str]) -> None:
    """Rewrite quotients and averages of whole numbers so that they stay whole.

    ``types`` are those of the columns, by their names in lower case.

    >>> from muntin.queries import canonical_text, parse_expression
    >>> node = exp.Paren(this=parse_expression("avg(vol) / 2"))
    >>> keep_whole(node, {"vol": "BIGINT"})
    >>> canonical_text(node)
    '((sum(vol) DIV count(vol)) DIV 2)'
    """
    nodes = list(node.walk(bfs=False))
    # From the leaves up, so that an operand is known to be whole before its quotient is met.
    for part in reversed(nodes):
        # A call and its FILTER are one: the outer of the two is replaced.
        inner = isinstance(part.parent, _WRAPPERS) and part.arg_key == "this"
        call = None if inner else as_call(part)
        averaged = call.args if call is not None and call.name in ("avg", "mean") else ()
        if len(averaged) == 1 and _is_whole(averaged[0], types):
            part.replace(_whole_average(part))
        sides = [part.this, part.expression] if isinstance(part, exp.Div) else []
        if sides and all(_is_whole(side, types) for side in sides):
            part.replace(exp.IntDiv(this=sides[0], expression=sides[1]))


def _whole_average(call: exp.Expr) -> exp.Expr:
    total, number = call.copy(), call.copy()
    for copied, name in ((total, "sum"), (number, "count")):
        function = copied if isinstance(copied, exp.Anonymous) else copied.find(exp.Anonymous)
        assert function is not None
        function.set("this", name)
    return exp.Paren(this=exp.IntDiv(this=total, expression=number))


def _is_whole(node: exp.Expr, types: Mapping[str, str]) -> bool:
    node = node.unnest()
    if isinstance(node, exp.Literal):
        return not node.is_string and node.name.isdigit()
    if isinstance(node, exp.Column):
        return types.get(node.name.lower()) in _WHOLE_NAMES
    if isinstance(node, exp.Cast):
        return node.args["to"].this in _WHOLE_TYPES
    if isinstance(node, _ARITHMETIC):
        return _is_whole(node.this, types) and _is_whole(node.expression, types)
    if isinstance(node, (exp.Neg, exp.Abs)):
        return _is_whole(node.this, types)
    call = as_call(node)
    if call is None:
        return False
    if call.name in ("count", "count_if"):
        return True
    return call.name in _KEEPING and len(call.args) == 1 and _is_whole(call.args[0], types)
