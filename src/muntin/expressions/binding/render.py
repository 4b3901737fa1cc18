"""Canonical SQL text of a typed expression: equal text, equal meaning over one schema."""

from __future__ import annotations

import re
from functools import lru_cache

from muntin.expressions.tree import Call, Column, Literal, Node
from muntin.expressions.types import name_of

# How tightly an operator binds; a looser one inside a tighter one needs parentheses.
OR, AND, NOT, COMPARE, ADD, MULTIPLY, UNARY, ATOM = range(1, 9)

INFIX = {
    "or": OR,
    "and": AND,
    "=": COMPARE,
    "<>": COMPARE,
    "<": COMPARE,
    "<=": COMPARE,
    ">": COMPARE,
    ">=": COMPARE,
    "<=>": COMPARE,
    "rlike": COMPARE,
    "+": ADD,
    "-": ADD,
    "*": MULTIPLY,
    "/": MULTIPLY,
    "%": MULTIPLY,
    "div": MULTIPLY,
}
POSTFIX = {"is null": "IS NULL", "is true": "IS TRUE", "is false": "IS FALSE"}
PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def render(node: Node) -> str:
    """The expression as SQL, with as few parentheses as its structure allows.

    >>> from muntin.expressions.types import BIGINT
    >>> a, b = Column("a", BIGINT), Column("b c", BIGINT)
    >>> render(Call("*", (Call("+", (a, b), BIGINT), b), BIGINT))
    '(a + `b c`) * `b c`'
    """
    return _render(node)[0]


@lru_cache(maxsize=1 << 12)
def quoted_name(name: str) -> str:
    """A column name, in backquotes where SQL needs them."""
    return name if PLAIN_NAME.match(name) else "`" + name.replace("`", "``") + "`"


def _render(node: Node) -> tuple[str, int]:
    if isinstance(node, Column):
        return quoted_name(node.name), ATOM
    if isinstance(node, Literal):
        return node.text, UNARY if node.text.startswith("-") else ATOM
    if node.hidden and node.function == "cast":
        return _render(node.args[0])
    if node.function in INFIX:
        return _infix(node)
    return _special(node)


def _infix(node: Call) -> tuple[str, int]:
    strength = INFIX[node.function]
    # Only a left operand of the same strength goes without parentheses: a - b - c.
    loosest = strength + 1 if strength == COMPARE else strength
    first, *rest = node.args
    parts = [_inside(first, loosest), *(_inside(arg, strength + 1) for arg in rest)]
    return f" {node.function.upper()} ".join(parts), strength


def _special(node: Call) -> tuple[str, int]:
    name, args = node.function, node.args
    if name == "not":
        return _negation(args[0])
    if name == "negative":
        return "-" + _inside(args[0], ATOM), UNARY
    if name in POSTFIX:
        return f"{_inside(args[0], COMPARE + 1)} {POSTFIX[name]}", COMPARE
    if name in ("like", "ilike"):
        escape = f" ESCAPE {render(args[2])}" if len(args) > 2 else ""
        left = _inside(args[0], COMPARE + 1)
        return f"{left} {name.upper()} {render(args[1])}{escape}", COMPARE
    if name == "in":
        listed = ", ".join(render(arg) for arg in args[1:])
        return f"{_inside(args[0], COMPARE + 1)} IN ({listed})", COMPARE
    if name in ("cast", "try_cast"):
        return f"{name.upper()}({render(args[0])} AS {name_of(node.type)})", ATOM
    if name == "case":
        return _case(_flat(node)), ATOM
    if name == "field":
        return f"{_inside(args[0], ATOM)}.{quoted_name(render(args[1]))}", ATOM
    if name == "[]":
        return f"{_inside(args[0], ATOM)}[{render(args[1])}]", ATOM
    return f"{name}({', '.join(render(arg) for arg in _flat(node))})", ATOM


def _negation(child: Node) -> tuple[str, int]:
    if isinstance(child, Call) and child.function in POSTFIX:
        test = POSTFIX[child.function].replace("IS", "IS NOT")
        return f"{_inside(child.args[0], COMPARE + 1)} {test}", COMPARE
    return f"NOT {_inside(child, NOT)}", NOT


def _flat(node: Call) -> list[Node]:
    """The arguments as they were written, before binding grouped them."""
    args: list[Node] = []
    for arg in node.args:
        grouped = isinstance(arg, Call) and arg.hidden and arg.function == node.function
        args.extend(_flat(arg) if grouped and isinstance(arg, Call) else [arg])
    return args


def _case(args: list[Node]) -> str:
    """CASE WHEN c1 THEN v1 ... ELSE e END, from the flat list c1, v1, ..., e."""
    branches = [
        f"WHEN {render(args[i])} THEN {render(args[i + 1])}" for i in range(0, len(args) - 1, 2)
    ]
    return f"CASE {' '.join(branches)} ELSE {render(args[-1])} END"


def _inside(node: Node, loosest: int) -> str:
    text, strength = _render(node)
    return text if strength >= loosest else f"({text})"
