"""Why a text was refused: the place, the reason in our words, and what to write instead."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from itertools import pairwise

from sqlglot.tokenizer_core import Token, TokenType

from muntin.errors import Problem
from muntin.queries.secrets import masked
from muntin.queries.source import SourceText, shown
from muntin.queries.sql.dialect import is_reserved
from muntin.queries.sql.grammar import STATEMENT_HINT, RefusedError, reserved

ORDER_HINT = "clauses come in the order SELECT, FROM, WHERE, GROUP BY, HAVING, EMIT EMPTY"
_OPERATORS = {
    TokenType.EQ,
    TokenType.NEQ,
    TokenType.LT,
    TokenType.LTE,
    TokenType.GT,
    TokenType.GTE,
    TokenType.PLUS,
    TokenType.DASH,
    TokenType.STAR,
    TokenType.SLASH,
}
_BEFORE_NAME = _OPERATORS | {TokenType.L_PAREN, TokenType.COMMA, TokenType.SELECT, TokenType.WHERE}
_AFTER_NAME = _OPERATORS | {TokenType.R_PAREN, TokenType.COMMA}
# FORM is like FROM, and GARBAGE not like RANGE.
LIKENESS = 0.7
_STATEMENTS = ("CREATE", "DROP", "INSERT", "SELECT")
_WORDS = (
    "BETWEEN",
    "CREATE",
    "EMIT",
    "EMPTY",
    "FILTER",
    "FROM",
    "GROUP",
    "HAVING",
    "OFFSET",
    "QUERY",
    "RANGE",
    "REPLACE",
    "SELECT",
    "SLIDE",
    "WATTR",
    "WHERE",
)
# What sqlglot says, by how it starts; what to say instead, and the hint.
_REASONS = (
    ("Expecting )", "expected )", "close each parenthesis that is open"),
    ("Expecting (", "expected (", "open a parenthesis here"),
    ("Expected table name", "expected the name of a stream", "write FROM stream [RANGE ...]"),
    ("Expected type", "expected a type", "write a type such as DOUBLE"),
    ("Required", "an expression is incomplete", "complete it, or leave out the word before"),
    ("The number of provided", "too many arguments", "check the arguments of the function"),
    ("Found multiple", "a clause is given twice", ORDER_HINT),
)


def explain(
    error: RefusedError, tokens: Sequence[Token], statements: str = STATEMENT_HINT
) -> tuple[int, str, str]:
    """Where a text was refused, why, and what to write instead.

    ``statements`` says what a text may start with.
    """
    token = error.token or (tokens[-1] if tokens else Token.string(""))
    offset = token.end + 1 if error.after else token.start
    if error.hint is not None:
        return offset, error.reason, error.hint
    name = _reserved_name(token, tokens)
    if name is not None:
        return name.start, *reserved(name.text)
    for start, message, hint in _REASONS:
        if error.reason.startswith(start):
            place = "but the statement ends here" if error.after else f"at {shown(token.text)}"
            return offset, f"{message}, {place}", hint
    message = "the statement is incomplete" if error.after else f"unexpected {shown(token.text)}"
    return offset, message, _hint(token, tokens, error.after) or statements


def _reserved_name(token: Token, tokens: Sequence[Token]) -> Token | None:
    """A word of the language at or before a place, where only a name or value can stand."""
    at = next((i for i, candidate in enumerate(tokens) if candidate is token), 0)
    for i in (at, at - 1):
        around = [*tokens[i - 1 : i], *tokens[i + 1 : i + 2]] if i > 0 else []
        word = tokens[i].text if len(around) == 2 and tokens[i].token_type != TokenType.VAR else ""
        if not word.isidentifier() or not is_reserved(word):
            continue
        if around[0].token_type in _BEFORE_NAME and around[1].token_type in _AFTER_NAME:
            return tokens[i]
    return None


def _hint(token: Token, tokens: Sequence[Token], after: bool) -> str | None:
    """A misspelled keyword near the place, or else the order of clauses; None at the beginning."""
    near = [token]
    for previous, current in pairwise(tokens):
        if current is token:
            near.append(previous)
    first = tokens[0] is token and not after
    for candidate in near:
        word = candidate.text.upper()
        if word in ("GROUP", "ORDER"):
            return f"write {word} BY"
        known = _STATEMENTS if first else _WORDS
        close = difflib.get_close_matches(word, known, n=1, cutoff=LIKENESS)
        if close and word not in _WORDS and candidate.token_type == TokenType.VAR:
            return f"did you mean {close[0]}?"
    return None if first else ORDER_HINT


def explain_token_error(text: str, tokens: Sequence[Token]) -> Problem:
    """The place where a text could not even be cut into words."""
    offset = tokens[-1].end + 1 if tokens else 0
    while offset < len(text) - 1 and text[offset].isspace():
        offset += 1
    source = SourceText.slice(masked(text), offset, offset)
    quote = text[offset : offset + 1]
    if quote in ("'", '"', "`"):
        return source.problem(offset, f"the quote {quote} is not closed", f"add {quote} at its end")
    return source.problem(offset, "cannot be read from here on", "check quotes and comments")
