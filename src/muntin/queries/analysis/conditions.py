"""Conditions put together from comparisons that have been read before.

A thousand queries that combine a few comparisons in a thousand ways need each comparison read
once: AND, OR and parentheses say by themselves how the tree is put together.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from muntin.queries.sql.depth import balance, parts
from muntin.queries.sql.normalize import normalize, take

CONSTANTS = {TokenType.NUMBER, TokenType.STRING}
# What stands below these is the same tree whatever its constants are. Functions and casts are
# not among them: sqlglot reads some of their constants as units, formats and time zones.
_PLAIN = (
    *(exp.And, exp.Or, exp.Not, exp.Paren, exp.Neg),
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.In, exp.Between),
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod),
)
# The words of comparisons that end where AND, OR or a parenthesis does. BETWEEN has an AND of
# its own, and CASE, casts and intervals have grammars of their own.
_WORDS = {
    *(TokenType.VAR, TokenType.NUMBER, TokenType.STRING, TokenType.IDENTIFIER),
    *(TokenType.NULL, TokenType.TRUE, TokenType.FALSE),
    *(TokenType.L_PAREN, TokenType.R_PAREN, TokenType.COMMA),
    *(TokenType.EQ, TokenType.NEQ, TokenType.GT, TokenType.GTE, TokenType.LT, TokenType.LTE),
    *(TokenType.PLUS, TokenType.DASH, TokenType.STAR, TokenType.SLASH, TokenType.MOD),
    *(TokenType.NOT, TokenType.IN, TokenType.IS, TokenType.AND, TokenType.OR),
}
# Longer conditions are left to the reader, which knows what is too long and too deep.
_MOST_WORDS = 150

# Reads one expression and checks it; None where something is wrong with it.
Read: TypeAlias = Callable[[list[Token]], exp.Expr | None]


@dataclass(frozen=True)
class _Comparison:
    """A comparison that has been read, and where the words it was read from began.

    ``free`` says whether its constants may be others.
    """

    node: exp.Expr
    starts: tuple[int, ...]
    free: bool


class Conditions:
    """Conditions by the comparisons they are made of; each is read once.

    Constants of a comparison may differ, unless they are a function's.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, _Comparison | None] = {}

    def find(self, words: Sequence[Token], read: Read, base: int) -> exp.Expr | None:
        """The condition of some words, as the grammar would read it; None where it has to.

        Places of its nodes are those of the words, plus ``base``.
        """
        kinds = [word.token_type for word in words]
        if not 0 < len(words) <= _MOST_WORDS or not _WORDS.issuperset(kinds):
            return None
        found = self._any_of(words, read, base)
        if found is None or TokenType.L_PAREN in kinds:
            return None if found is None else normalize(found)
        # Comparisons are normal: without parentheses, only long chains are to be flattened.
        chained = kinds.count(TokenType.AND) + kinds.count(TokenType.OR) > 1
        return take(balance(exp.Paren(this=found))) if chained else found

    def _any_of(self, words: Sequence[Token], read: Read, base: int) -> exp.Expr | None:
        """OR binds loosest: what it connects are conjunctions."""
        return self._chain(words, TokenType.OR, exp.Or, self._all_of, read, base)

    def _all_of(self, words: Sequence[Token], read: Read, base: int) -> exp.Expr | None:
        return self._chain(words, TokenType.AND, exp.And, self._term, read, base)

    def _chain(
        self,
        words: Sequence[Token],
        connective: TokenType,
        kind: type[exp.Connector],
        inner: Callable[[Sequence[Token], Read, int], exp.Expr | None],
        read: Read,
        base: int,
    ) -> exp.Expr | None:
        chain: exp.Expr | None = None
        for term in _split(words, connective):
            node = inner(term, read, base)
            if node is None:
                return None
            chain = node if chain is None else kind(this=chain, expression=node)
        return chain

    def _term(self, words: Sequence[Token], read: Read, base: int) -> exp.Expr | None:
        if not words:
            return None
        if words[0].token_type == TokenType.L_PAREN and _closing(words) == len(words) - 1:
            inner = self._any_of(words[1:-1], read, base)
            return None if inner is None else exp.Paren(this=inner)
        comparison = self._comparison(words, read)
        if comparison is None:
            return None
        own = dict(zip(comparison.starts, words, strict=True))
        return _copied(comparison.node, own, base, comparison.free)

    def _comparison(self, words: Sequence[Token], read: Read) -> _Comparison | None:
        key: Hashable = tuple(
            [
                word.token_type if word.token_type in CONSTANTS else (word.token_type, word.text)
                for word in words
            ]
        )
        found = self._known.get(key, ...)
        if found is ...:
            found = _read(words, read)
            self._known[key] = found if found is not None and found.free else None
        if found is not None:
            return found
        # Constants that mean something to a function are part of what it is.
        key = tuple((word.token_type, word.text) for word in words)
        if key not in self._known:
            self._known[key] = _read(words, read)
        return self._known[key]


def _read(words: Sequence[Token], read: Read) -> _Comparison | None:
    node = read(list(words))
    if node is None:
        return None
    places = {word.start: place for place, word in enumerate(words)}
    constants = {place for place, word in enumerate(words) if word.token_type in CONSTANTS}
    free = free_constants(node, words, places) == constants
    return _Comparison(normalize(node), tuple(places), free)


def free_constants(
    condition: exp.Expr | None, words: Sequence[Token], places: Mapping[int, int]
) -> frozenset[int]:
    """The words that are constants of a condition, and change nothing else of it."""
    found = set()
    for part in [] if condition is None else parts(condition):
        if isinstance(part, exp.Literal) and _is_plain(part):
            place = places.get(part.meta_get("start"))
            if place is not None and words[place].text == part.this:
                found.add(place)
    return frozenset(found)


def _is_plain(literal: exp.Literal) -> bool:
    above = literal.parent
    while above is not None:
        if not isinstance(above, _PLAIN):
            return False
        above = above.parent
    return True


def _split(words: Sequence[Token], connective: TokenType) -> list[Sequence[Token]]:
    """The words between connectives outside parentheses."""
    if all(word.token_type != connective for word in words):
        return [words]
    found = []
    level = begin = 0
    for place, word in enumerate(words):
        kind = word.token_type
        if kind == TokenType.L_PAREN:
            level += 1
        elif kind == TokenType.R_PAREN:
            level -= 1
        elif kind == connective and level == 0:
            found.append(words[begin:place])
            begin = place + 1
    return [*found, words[begin:]]


def _closing(words: Sequence[Token]) -> int:
    """Where the parenthesis closes that the words begin with; -1 if nowhere."""
    level = 0
    for place, word in enumerate(words):
        if word.token_type == TokenType.L_PAREN:
            level += 1
        elif word.token_type == TokenType.R_PAREN:
            level -= 1
            if level == 0:
                return place
    return -1


def _copied(node: exp.Expr, own: Mapping[int, Token], base: int, free: bool) -> exp.Expr:
    """A copy of a comparison with the places of other words, and their constants if ``free``.

    ``own`` has these words by where those of the node began.
    """
    args: dict[str, Any] = {}
    for key, value in node.args.items():
        if isinstance(value, exp.Expr):
            args[key] = _copied(value, own, base, free)
        elif type(value) is list:
            args[key] = [_copied(item, own, base, free) for item in value]
        else:
            args[key] = value
    word = own.get(node.meta_get("start"))
    if free and word is not None and isinstance(node, exp.Literal):
        args["this"] = word.text
    copy = type(node)(**args)
    if word is not None:
        copy.meta["start"] = base + word.start
    return copy
