"""A prepared question: read once, asked with other constants."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from sqlglot.tokenizer_core import Token, TokenType

from muntin.display import count
from muntin.errors import DataError
from muntin.queries import read_question
from muntin.queries.asking.words import Word, words_of
from muntin.synopses.answer import Answer
from muntin.windows import duration, duration_text

# Decimals have 38 digits.
_MOST = 10**38


class Prepared:
    """A question that was read before, asked by calling it with the values of its ``?``."""

    def __init__(self, sql: str, answer: Callable[[Sequence[Word]], Answer]) -> None:
        self.sql = sql
        self._words = words_of(sql)
        self._answer = answer
        kinds = [word.token_type for word in self._words]
        self._holes = [place for place, kind in enumerate(kinds) if kind == TokenType.PLACEHOLDER]
        if not self._holes:
            read_question(sql, self._words)

    def __call__(self, *values: Any) -> Answer:
        """The answer for some values, as many as there are ``?``."""
        if len(values) != len(self._holes):
            raise DataError(
                f"the question has {count(len(self._holes), 'constant')} to fill in, "
                f"not {len(values)}",
                hint="give a value for each ? in its text, in order",
            )
        given = dict(zip(self._holes, values, strict=True))
        words: list[Token] = []
        for place, word in enumerate(self._words):
            words += _words(word, given[place]) if place in given else [word]
        return self._answer(words)

    def __repr__(self) -> str:
        return f"<Prepared {self.sql}>"


def _words(hole: Token, value: Any) -> list[Token]:
    """A value as the words that it would be in the text: a minus is one of its own."""
    if isinstance(value, np.number | np.bool_):
        value = value.item()
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    # A zero may have a sign as well.
    if is_number and (value < 0 or (not value and str(value).startswith("-"))):
        minus = Token(TokenType.DASH, "-", hole.line, hole.col, hole.start, hole.end)
        return [minus, _word(hole, -value)]
    return [_word(hole, value)]


def _word(hole: Token, value: Any) -> Token:
    if isinstance(value, bool) or value is None:
        kind = TokenType.NULL if value is None else TokenType.TRUE if value else TokenType.FALSE
        text = kind.name
    elif _is_number(value):
        kind, text = TokenType.NUMBER, str(value)
    elif isinstance(value, dt.timedelta):
        kind, text = TokenType.STRING, duration_text(duration(value))
    elif isinstance(value, str | dt.date | dt.datetime):
        kind, text = TokenType.STRING, str(value)
    else:
        raise DataError(
            f"{value!r} cannot be a constant of a question",
            hint="give text, a finite number, a time, a duration, True, False or None",
        )
    return Token(kind, text, hole.line, hole.col, hole.start, hole.end)


def _is_number(value: Any) -> bool:
    """Whether a value is a number that SQL has."""
    if isinstance(value, int):
        return -_MOST < value < _MOST
    return isinstance(value, float | Decimal) and math.isfinite(value)
