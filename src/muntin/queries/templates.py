"""Queries that differ from one before them in constants only: what that one means is known.

Sets of queries are often written by a program, which varies windows and thresholds. Reading and
analysing a SELECT takes ten times as long as finding its words, and gives the same for all of
them but for the constants.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from muntin.errors import WindowError
from muntin.queries.clauses import MAX_DIGITS, WindowClause
from muntin.queries.query import Query
from muntin.queries.source import Moved, SourceText
from muntin.queries.spellings import EXTENTS, window_of
from muntin.queries.tree import parts
from muntin.windows import Window

_CONSTANTS = {TokenType.NUMBER, TokenType.STRING}
# What stands below these is the same tree whatever its constants are. Functions and casts are
# not among them: sqlglot reads some of their constants as units, formats and time zones.
_PLAIN = (
    *(exp.And, exp.Or, exp.Not, exp.Paren, exp.Neg),
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.In, exp.Between),
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod),
)
# Longer constants are left to the reader, which knows what is too long.
_MAX_LENGTH = 100


@dataclass(frozen=True)
class Template:
    """A query that has been read: where its words began, and the places of its constants.

    ``extents`` has the number of the word that is the window's range, slide and offset,
    ``constants`` those of the condition's constants, and ``stream`` that of the stream's name.
    """

    query: Query
    starts: tuple[int, ...]
    clause: WindowClause
    extents: Mapping[str, int]
    constants: frozenset[int]
    stream: int

    def query_of(self, name: str, tokens: Sequence[Token], text: SourceText) -> Query | None:
        """The query of other words; None where its own constants have to be looked at."""
        if any(len(token.text) > _MAX_LENGTH for token in tokens):
            return None
        window = self._window(tokens)
        if window is None:
            return None
        own = tuple(token.start for token in tokens)
        where = self.query.where
        if where is not None:
            texts = {self.starts[place]: tokens[place].text for place in self.constants}
            where = _with_constants(where, texts)
        moved = replace(text, moved=Moved(self.starts, own))
        return replace(self.query, name=name, window=window, where=where, text=moved)

    def _window(self, tokens: Sequence[Token]) -> Window | None:
        values: dict[str, int | str] = {}
        for key, place in self.extents.items():
            value = _value(tokens[place])
            if value is None:
                return None
            values[key] = value
        try:
            return window_of(self.clause, values)
        except WindowError:
            return None


class Templates:
    """The queries of one text by what they have in common; the first of each kind is read."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Template | None] = {}

    def find(self, tokens: Sequence[Token]) -> Template | None:
        """What is known of a SELECT with these words, if anything."""
        return self._known.get(_key(tokens))

    def learn(
        self, tokens: Sequence[Token], query: Query, clause: WindowClause, stream: int | None
    ) -> None:
        """Remember a query that was read, if its constants can be told from the rest."""
        key = _key(tokens)
        if key not in self._known:
            self._known[key] = _template(tokens, query, clause, stream)


def _key(tokens: Sequence[Token]) -> tuple[Hashable, ...]:
    """All words but the constants of FROM, WHERE and GROUP BY."""
    key: list[Hashable] = []
    is_open = False
    before: TokenType | None = None
    for token in tokens:
        kind = token.token_type
        if kind in (TokenType.FROM, TokenType.HAVING):
            is_open = kind == TokenType.FROM
        # INTERVAL '5' MINUTE is one extent of several words.
        free = is_open and kind in _CONSTANTS and before != TokenType.INTERVAL
        key.append(kind if free else (kind, token.text))
        before = kind
    return tuple(key)


def _template(
    tokens: Sequence[Token], query: Query, clause: WindowClause, stream: int | None
) -> Template | None:
    starts = tuple(token.start for token in tokens)
    places = {start: place for place, start in enumerate(starts)}
    extents: dict[str, int] = {}
    for key in EXTENTS:
        extent = clause.args.get(key)
        place = None if extent is None else places.get(extent.meta_get("start"))
        if extent is not None and place is not None and _value(tokens[place]) == extent.this:
            extents[key] = place
    constants = _constants(query.where, tokens, places)
    free = {place for place, part in enumerate(_key(tokens)) if part in _CONSTANTS}
    if not free <= {*extents.values(), *constants} or stream not in places:
        return None
    return Template(query, starts, clause, extents, constants, places[stream])


def _constants(
    where: exp.Expr | None, tokens: Sequence[Token], places: Mapping[int, int]
) -> frozenset[int]:
    """The words that are constants of a condition, and change nothing else of it."""
    found = set()
    for part in [] if where is None else parts(where):
        if isinstance(part, exp.Literal) and _is_plain(part):
            place = places.get(part.meta_get("start"))
            if place is not None and tokens[place].text == part.this:
                found.add(place)
    return frozenset(found)


def _is_plain(literal: exp.Literal) -> bool:
    above = literal.parent
    while above is not None:
        if not isinstance(above, _PLAIN):
            return False
        above = above.parent
    return True


def _with_constants(node: exp.Expr, texts: Mapping[int, str]) -> exp.Expr:
    """A copy of a condition, with the constants that are found by where they stood."""
    args: dict[str, Any] = {}
    for key, value in node.args.items():
        if isinstance(value, exp.Expr):
            args[key] = _with_constants(value, texts)
        elif type(value) is list:
            args[key] = [_with_constants(item, texts) for item in value]
        else:
            args[key] = value
    if isinstance(node, exp.Literal):
        start = node.meta_get("start")
        args["this"] = texts.get(start, node.this)
    copy = type(node)(**args)
    copy.meta.update(node.meta)
    return copy


def _value(token: Token) -> int | str | None:
    """What a word means as a range, slide or offset; None where it is no such word."""
    if token.token_type == TokenType.STRING:
        return token.text
    if token.text.isascii() and token.text.isdigit() and len(token.text) <= MAX_DIGITS:
        return int(token.text)
    return None
