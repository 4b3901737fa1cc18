"""SQL forms that are not plain function calls: CASE, CAST, IN, LIKE, IS, BETWEEN and the like."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from muntin.expressions import types as t
from muntin.expressions.binding import grammar, literals
from muntin.expressions.binding.coercion import in_zone
from muntin.expressions.registry import apply
from muntin.expressions.tree import BindingError, Call, Literal, Node

if TYPE_CHECKING:
    from muntin.expressions.binding.binder import Binder


def chain(node: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    """The operands of a chain of one operator in order, without recursion.

    >>> from sqlglot import parse_one
    >>> [str(term) for term in chain(parse_one("a AND (b AND c) AND d"), exp.And)]
    ['a', 'b', 'c', 'd']
    """
    pending, operands = [node], []
    while pending:
        current = pending.pop().unnest()
        if type(current) is kind:
            pending += [current.expression, current.this]
        else:
            operands.append(current)
    return operands


def converted(binder: Binder, node: exp.Expr, kind: pa.DataType) -> Node:
    """CAST(node AS kind); constants convert at once, so that TIMESTAMP '...' is a constant."""
    child = binder.bind(node)
    if not isinstance(child, Literal) or child.value is None or child.type == kind:
        return apply_cast(binder, "cast", child, kind)
    if child.type == t.STRING and t.is_decimal(kind):
        child = literals.unfit(child, kind)
    literal = literals.convert(child, kind, binder.zone) if _folds(child, kind) else None
    if literal is None:
        return apply_cast(binder, "cast", child, kind)
    text = literals.typed_text(literal.value, kind, child.text, binder.zone)
    return Literal(literal.value, kind, text)


def apply_cast(binder: Binder, name: str, child: Node, kind: pa.DataType) -> Node:
    """A visible CAST, refused for pairs of types that have none."""
    apply(name, [child, Call("type", (), kind)])
    return in_zone(Call(name, (child,), kind), binder.zone)


def extracted(binder: Binder, field: str, node: exp.Expr) -> Node:
    """EXTRACT(field FROM node) and date_part."""
    name = grammar.EXTRACTED.get(field.lower())
    if name is None:
        raise BindingError(
            f"EXTRACT of {field.lower()} is not supported",
            hint=f"one of {', '.join(grammar.EXTRACTED)}; for seconds use second(...)",
        )
    return binder.call(name, node)


def _folds(literal: Literal, kind: pa.DataType) -> bool:
    """Whether a constant converts at once: numbers, and strings that no column converts from."""
    numbers = t.is_number(literal.type) and t.is_number(kind)
    return numbers or (literal.type == t.STRING and (t.is_time(kind) or t.is_decimal(kind)))


def _cast(binder: Binder, node: Any) -> Node:
    kind = grammar.named_type(node.args["to"])
    if node.args.get("suffix"):
        return literals.suffixed(node.this.name, node.args["suffix"], kind)
    if node.args.get("format") or node.args.get("default"):
        raise BindingError("CAST with a format is not supported", hint="write CAST(x AS type)")
    if node.args.get("safe"):
        return apply_cast(binder, "try_cast", binder.bind(node.this), kind)
    return converted(binder, node.this, kind)


def _to_date(binder: Binder, node: Any) -> Node:
    if node.args.get("format"):
        raise BindingError("to_date with a format is not supported", hint="write to_date(x)")
    return converted(binder, node.this, t.DATE)


def _logical(name: str, kind: type[exp.Expr]) -> Callable[[Binder, Any], Node]:
    return lambda binder, node: binder.call(name, *chain(node, kind))


def _negative(binder: Binder, node: Any) -> Node:
    child = node.this.unnest()
    if isinstance(child, exp.Literal) and not child.is_string:
        return literals.number(f"-{child.name}")
    if child.args.get("suffix"):
        kind = grammar.named_type(child.args["to"])
        return literals.suffixed(f"-{child.this.name}", child.args["suffix"], kind)
    return binder.call("negative", child)


def _is(binder: Binder, node: Any) -> Node:
    if isinstance(node.expression, exp.Null):
        return binder.call("is null", node.this)
    if isinstance(node.expression, exp.Boolean):
        return binder.call("is true" if node.expression.this else "is false", node.this)
    raise BindingError("IS takes NULL, TRUE or FALSE", hint="use <=> to compare with NULL")


def _between(binder: Binder, node: Any) -> Node:
    if node.args.get("symmetric"):
        raise BindingError("BETWEEN SYMMETRIC is not supported", hint="use least and greatest")
    value = binder.bind(node.this)
    low, high = binder.bind(node.args["low"]), binder.bind(node.args["high"])
    return binder.call("and", binder.call(">=", value, low), binder.call("<=", value, high))


def _in(binder: Binder, node: Any) -> Node:
    if not node.expressions:
        raise BindingError("IN takes a list of values", hint="write x IN (1, 2, 3)")
    return binder.call("in", node.this, *node.expressions)


def _like(name: str) -> Callable[[Binder, Any], Node]:
    def handler(binder: Binder, node: Any) -> Node:
        escape: list[Node] = []
        if isinstance(node, exp.Escape):
            escape = [binder.bind(node.expression)]
            node = node.this
        if isinstance(node.expression, exp.Any | exp.All):
            raise BindingError("LIKE ANY and LIKE ALL are not supported", hint="combine with OR")
        like = binder.call(name, node.this, node.expression, *escape)
        return binder.call("not", like) if node.args.get("negate") else like

    return handler


def _escape(binder: Binder, node: Any) -> Node:
    return _like("ilike" if isinstance(node.this, exp.ILike) else "like")(binder, node)


def _case(binder: Binder, node: Any) -> Node:
    operand = binder.bind(node.this) if node.this is not None else None
    args: list[Node] = []
    for branch in node.args["ifs"]:
        condition = binder.bind(branch.this)
        if operand is not None:
            condition = binder.call("=", operand, condition)
        args += [condition, binder.bind(branch.args["true"])]
    default = node.args.get("default")
    return binder.call("case", *args, _or_null(binder, default))


def _if(binder: Binder, node: Any) -> Node:
    otherwise = _or_null(binder, node.args.get("false"))
    return binder.call("case", node.this, node.args["true"], otherwise)


def _nvl2(binder: Binder, node: Any) -> Node:
    present = binder.call("not", binder.call("is null", node.this))
    return binder.call("case", present, node.args["true"], node.args["false"])


def _nullif(binder: Binder, node: Any) -> Node:
    value = binder.bind(node.this)
    equal = binder.call("=", value, node.expression)
    return binder.call("case", equal, _null(binder, node), value)


def _or_null(binder: Binder, node: exp.Expr | None) -> Node:
    return _null(binder, node) if node is None else binder.bind(node)


def _null(binder: Binder, node: Any) -> Node:
    return Literal(None, t.NULL, "NULL")


def _trim(binder: Binder, node: Any) -> Node:
    names = {"LEADING": "ltrim", "TRAILING": "rtrim"}
    name = names.get(str(node.args.get("position") or "").upper(), "trim")
    extra = [node.expression] if node.args.get("expression") is not None else []
    return binder.call(name, node.this, *extra)


def _pad(binder: Binder, node: Any) -> Node:
    name = "lpad" if node.args.get("is_left") else "rpad"
    fill = node.args.get("fill_pattern")
    return binder.call(name, node.this, node.expression, *([fill] if fill is not None else []))


def _concat(binder: Binder, node: Any) -> Node:
    if "safe" not in node.args:
        raise BindingError(
            "two string constants stand side by side",
            hint="join them with ||, or write a quote inside a string as \\'",
        )
    return binder.call("concat", *node.expressions)


def _hex(binder: Binder, node: Any) -> Node:
    text = node.name.upper()
    return Literal(bytes.fromhex(text.zfill(len(text) + len(text) % 2)), t.BINARY, f"X'{text}'")


def _boolean(binder: Binder, node: Any) -> Node:
    return literals.boolean(bool(node.this))


def _interval(binder: Binder, node: Any) -> Node:
    raise BindingError("intervals are not values here", hint="compute with unix_micros(...)")


HANDLERS: dict[type[exp.Expr], Callable[[Binder, Any], Node]] = {
    exp.Boolean: _boolean,
    exp.Null: _null,
    exp.HexString: _hex,
    exp.Neg: _negative,
    exp.And: _logical("and", exp.And),
    exp.Or: _logical("or", exp.Or),
    exp.DPipe: _logical("concat", exp.DPipe),
    exp.Not: lambda binder, node: binder.call("not", node.this),
    exp.Is: _is,
    exp.NullSafeNEQ: lambda binder, node: binder.call(
        "not", binder.call("<=>", node.this, node.expression)
    ),
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like("like"),
    exp.ILike: _like("ilike"),
    exp.Escape: _escape,
    exp.Case: _case,
    exp.If: _if,
    exp.Nvl2: _nvl2,
    exp.Nullif: _nullif,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.TsOrDsToDate: _to_date,
    exp.Extract: lambda binder, node: extracted(binder, node.name, node.expression),
    exp.Trim: _trim,
    exp.Pad: _pad,
    exp.Concat: _concat,
    exp.Interval: _interval,
}
