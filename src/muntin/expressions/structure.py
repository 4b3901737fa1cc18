"""What a SQL node is made of, to tell expressions apart without binding or rendering them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from sqlglot import exp


def structure(node: exp.Expr) -> Hashable:
    """What a node is made of, whatever its place in a text: equal where two are the same.

    Told apart are all spellings that a parser tells apart; so equal structures mean the same.

    >>> from sqlglot import parse_one
    >>> structure(parse_one("a + 1")) == structure(parse_one(" a  +  1"))
    True
    """
    key: list[Any] = [type(node)]
    for name, value in node.args.items():
        key.append(name)
        if isinstance(value, exp.Expr):
            key.append(structure(value))
        elif type(value) is list:
            items = [structure(item) if isinstance(item, exp.Expr) else item for item in value]
            key.append(tuple(items))
        else:
            key.append(value)
    return tuple(key)
