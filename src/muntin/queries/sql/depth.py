"""Keeping hostile nesting from exhausting Python's stack."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

MAX_NESTING = 100
# Reading and checking takes a few dozen microseconds a word.
MAX_WORDS = 100_000
# Deeper trees than this are no query a person wrote; what follows the parser may recurse safely.
MAX_DEPTH = 200
# A level of parentheses takes about 25 frames of sqlglot's recursive descent.
_FRAMES = 30 * (MAX_NESTING + 20)

_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
# ARRAY<ARRAY<...: reading these takes sqlglot the cube of their depth, and they never close here.
_NESTED_TYPES = {TokenType.ARRAY, TokenType.MAP, TokenType.STRUCT}

_lock = threading.Lock()
_users = 0
_saved = 0


@contextmanager
def deep_stack() -> Iterator[None]:
    """Room on the stack for the deepest nesting that is accepted.

    Python's limit is one number for all threads: the first to enter raises it, and the last to
    leave puts it back.
    """
    global _users, _saved  # noqa: PLW0603 - the limit itself is global
    with _lock:
        if not _users:
            _saved = sys.getrecursionlimit()
            sys.setrecursionlimit(_saved + _FRAMES)
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                sys.setrecursionlimit(_saved)


def too_nested(tokens: Sequence[Token]) -> Token | None:
    """The first token nested deeper than ``MAX_NESTING``, if there is one."""
    if len(tokens) <= MAX_NESTING:
        return None
    level = 0
    for token, following in zip_longest(tokens, tokens[1:]):
        nests_type = following is not None and following.token_type == TokenType.LT
        if token.token_type in _OPENING or (nests_type and token.token_type in _NESTED_TYPES):
            level += 1
            if level > MAX_NESTING:
                return token
        elif token.token_type in _CLOSING:
            level = max(level - 1, 0)
    return None


def too_deep(node: exp.Expr) -> exp.Expr | None:
    """The first part of a tree that lies deeper than ``MAX_DEPTH``, if there is one."""
    if len(parts(node)) <= MAX_DEPTH:
        return None
    level, nodes = 0, [node]
    while nodes:
        if level > MAX_DEPTH:
            return nodes[0]
        nodes = [child for parent in nodes for child in parent.iter_expressions()]
        level += 1
    return None


def balance(node: exp.Expr) -> exp.Expr:
    """The tree with every chain of AND or of OR as flat as it can be.

    A parser reads 1,000 terms as 1,000 levels. AND and OR are associative, evaluated lazily from
    left to right, so a balanced tree of 10 levels means the same.
    """
    connectors = [part for part in parts(node) if isinstance(part, (exp.And, exp.Or))]
    # A chain of three terms takes two connectors.
    for connector in connectors if len(connectors) > 1 else ():
        kind = type(connector)
        if type(connector.parent) is kind:
            continue
        terms = _terms(connector, kind)
        if len(terms) > 2:
            half = len(terms) // 2
            connector.set("this", _tree(kind, terms[:half]))
            connector.set("expression", _tree(kind, terms[half:]))
    return node


def _terms(connector: exp.Expr, kind: type[exp.Connector]) -> list[exp.Expr]:
    terms: list[exp.Expr] = []
    stack = [connector]
    while stack:
        part = stack.pop()
        if type(part) is kind:
            stack += [part.args["expression"], part.args["this"]]
        else:
            terms.append(part)
    return terms


def _tree(kind: type[exp.Connector], terms: list[exp.Expr]) -> exp.Expr:
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return kind(this=_tree(kind, terms[:half]), expression=_tree(kind, terms[half:]))


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
