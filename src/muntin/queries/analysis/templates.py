"""Queries that differ from one before them in constants or WHERE: what that one means is known.

Sets of queries are often written by a program, which varies windows, thresholds and conditions.
Reading and analysing a SELECT takes ten times as long as finding its words, and gives the same
for all of them but for the constants and the condition.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from muntin.errors import WindowError
from muntin.queries.analysis.conditions import CONSTANTS, Conditions, Read, free_constants
from muntin.queries.query import Query
from muntin.queries.source import Moved, SourceText
from muntin.queries.sql.clauses import MAX_DIGITS, WindowClause
from muntin.queries.sql.grammar import EMIT_EMPTY
from muntin.queries.sql.spellings import EXTENTS, window_of
from muntin.windows import Window

# Longer constants are left to the reader, which knows what is too long.
_MAX_LENGTH = 100
# What may follow a condition.
_AFTER_WHERE = {TokenType.GROUP_BY, TokenType.HAVING, EMIT_EMPTY}
# Constants may differ between these.
_BOUNDS = {TokenType.FROM, TokenType.HAVING}
# Conditions that are read apart have places behind those of all texts.
_APART = 1 << 60


@dataclass(frozen=True)
class Template:
    """A query that has been read: where its words began, and the places of its constants.

    ``extents`` has the number of the word that is the window's range, slide and offset,
    ``constants`` those of the condition's constants, and ``stream`` that of the stream's name.
    Words of a condition that is read apart are not among them.
    """

    query: Query
    starts: tuple[int, ...]
    clause: WindowClause
    extents: Mapping[str, int]
    constants: frozenset[int]
    stream: int

    def query_of(self, name: str, tokens: Sequence[Token], text: SourceText) -> Query | None:
        """The query of other words; None where its own constants have to be looked at."""
        if _is_long(tokens):
            return None
        window = self._window(tokens)
        if window is None:
            return None
        own = tuple([token.start for token in tokens])
        where = self.query.where
        if where is not None:
            texts = {self.starts[place]: tokens[place].text for place in self.constants}
            where = _with_constants(where, texts)
        return self._as(name, window, where, text.at(Moved(self.starts, own)))

    def query_where(
        self,
        name: str,
        clauses: Clauses,
        text: SourceText,
        conditions: Conditions,
        read: Read,
    ) -> Query | None:
        """The query of other words and another condition; None where they have to be read."""
        others, words = clauses.others, clauses.where
        if _is_long(others) or _is_long(words):
            return None
        window = self._window(others)
        where = None if window is None else conditions.find(words, read, _APART)
        if window is None or where is None:
            return None
        starts = [word.start for word in words]
        theirs = (*self.starts, *[_APART + start for start in starts])
        own = (*[token.start for token in others], *starts)
        return self._as(name, window, where, text.at(Moved(theirs, own)))

    def _as(self, name: str, window: Window, where: exp.Expr | None, text: SourceText) -> Query:
        return self.query.alike(name, window, where, text)

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
        self._conditions = Conditions()

    def query(
        self, name: str, tokens: Sequence[Token], text: SourceText, read: Read
    ) -> tuple[Query, int] | None:
        """The query of a SELECT with these words, and where its stream is named, if known.

        ``read`` reads one expression of its WHERE.
        """
        key = _key(tokens)
        template = self._known.get(key)
        query = None if template is None else template.query_of(name, tokens, text)
        if template is not None and query is not None:
            return query, tokens[template.stream].start
        clauses = Clauses.of(tokens)
        template = None if clauses is None else self._known.get(clauses.key_of_others(key))
        if clauses is None or template is None:
            return None
        query = template.query_where(name, clauses, text, self._conditions, read)
        return None if query is None else (query, clauses.others[template.stream].start)

    def learn(
        self, tokens: Sequence[Token], query: Query, clause: WindowClause, stream: int | None
    ) -> None:
        """Remember a query that was read, if its constants can be told from the rest."""
        clauses = Clauses.of(tokens)
        if clauses is not None and not query.joins:
            # A condition over joined tables may say how they are joined.
            bare = replace(query, where=None)
            self._learn(clauses.others, bare, clause, stream)
        self._learn(tokens, query, clause, stream)

    def _learn(
        self, tokens: Sequence[Token], query: Query, clause: WindowClause, stream: int | None
    ) -> None:
        key = _key(tokens)
        if key not in self._known:
            self._known[key] = _template(tokens, query, clause, stream)


@dataclass(frozen=True)
class Clauses:
    """The words of a SELECT's condition, and its others with WHERE among them."""

    where: Sequence[Token]
    others: Sequence[Token]
    begin: int

    @classmethod
    def of(cls, tokens: Sequence[Token]) -> Clauses | None:
        """The clauses of a SELECT; None where it has no condition."""
        kinds = [token.token_type for token in tokens]
        # A FILTER has a WHERE in parentheses.
        if kinds.count(TokenType.WHERE) != 1:
            return None
        begin = kinds.index(TokenType.WHERE) + 1
        ends = (place for place, kind in enumerate(kinds) if kind in _AFTER_WHERE)
        end = next((place for place in ends if place >= begin), len(kinds))
        return cls(tokens[begin:end], [*tokens[:begin], *tokens[end:]], begin)

    def key_of_others(self, key: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
        """What tells the other words, given what tells all of them."""
        size, begin = len(key) // 2, self.begin
        end = begin + len(self.where)
        return (*key[:begin], *key[end : size + begin], *key[size + end :])


def _key(tokens: Sequence[Token]) -> tuple[Hashable, ...]:
    """All words but the constants of FROM, WHERE and GROUP BY."""
    kinds = [token.token_type for token in tokens]
    texts: list[str | None] = [token.text for token in tokens]
    is_open = False
    for place, kind in enumerate(kinds):
        if kind in CONSTANTS:
            # INTERVAL '5' MINUTE is one extent of several words.
            if is_open and kinds[place - 1] != TokenType.INTERVAL:
                texts[place] = None
        elif kind in _BOUNDS:
            is_open = kind == TokenType.FROM
    return (*kinds, *texts)


def _is_long(tokens: Sequence[Token]) -> bool:
    return max([len(token.text) for token in tokens], default=0) > _MAX_LENGTH


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
    constants = free_constants(query.where, tokens, places)
    texts = _key(tokens)[len(tokens) :]
    free = {place for place, text in enumerate(texts) if text is None}
    if not free <= {*extents.values(), *constants} or stream not in places:
        return None
    return Template(query, starts, clause, extents, constants, places[stream])


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
    """What a word means as a range, slide or offset; None where it is not such a word."""
    if token.token_type == TokenType.STRING:
        return token.text
    if token.text.isascii() and token.text.isdigit() and len(token.text) <= MAX_DIGITS:
        return int(token.text)
    return None
