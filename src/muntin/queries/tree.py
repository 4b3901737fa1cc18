"""Walks over syntax trees, for what looks at every node of every query."""

from __future__ import annotations

from sqlglot import exp


def parts(root: exp.Expr) -> list[exp.Expr]:
    """The node and all below it, level by level: the order of sqlglot's own walk.

    A list in place of nested iterators, which take most of the time where trees are small; it
    stays what it is while the tree is changed.

    >>> [type(node).__name__ for node in parts(exp.column("price").eq(1))]
    ['EQ', 'Column', 'Literal', 'Identifier']
    """
    found = [root]
    for node in found:
        for value in node.args.values():
            if isinstance(value, exp.Expr):
                found.append(value)
            elif type(value) is list:
                found.extend([item for item in value if isinstance(item, exp.Expr)])
    return found
