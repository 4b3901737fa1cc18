"""Plain words for what a parser found wrong."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sqlglot.tokenizer_core import Token, TokenType

from muntin.errors import Problem, did_you_mean
from muntin.queries.grammar import STATEMENT_HINT, RefusedError
from muntin.queries.source import SourceText, shown

ORDER_HINT = "clauses come in the order SELECT, FROM, WHERE, GROUP BY, HAVING, EMIT EMPTY"
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
    ("Found multiple", "a clause stands twice", ORDER_HINT),
)


def explain(error: RefusedError, tokens: Sequence[Token]) -> tuple[int, str, str]:
    """Where a text was refused, why, and what to write instead."""
    token = error.token or (tokens[-1] if tokens else Token.string(""))
    offset = token.end + 1 if error.after else token.start
    if error.hint is not None:
        return offset, error.reason, error.hint
    for start, message, hint in _REASONS:
        if error.reason.startswith(start):
            place = "but the statement ends here" if error.after else f"at {shown(token.text)}"
            return offset, f"{message}, {place}", hint
    message = "the statement is incomplete" if error.after else f"unexpected {shown(token.text)}"
    return offset, message, _hint(token, tokens, error.after)


def _hint(token: Token, tokens: Sequence[Token], after: bool) -> str:
    """A misspelled keyword near the place, or else the order of clauses."""
    near = [token]
    for previous, current in pairwise(tokens):
        if current is token:
            near.append(previous)
    for candidate in near:
        word = candidate.text.upper()
        if word in ("GROUP", "ORDER"):
            return f"write {word} BY"
        hint = did_you_mean(word, _WORDS) if word not in _WORDS else None
        if hint is not None and candidate.token_type == TokenType.VAR:
            return hint
    if tokens[0] is token and not after:
        return STATEMENT_HINT
    return ORDER_HINT


def explain_token_error(text: str, tokens: Sequence[Token]) -> Problem:
    """The place where a text could not even be cut into words."""
    offset = tokens[-1].end + 1 if tokens else 0
    while offset < len(text) - 1 and text[offset].isspace():
        offset += 1
    source = SourceText.slice(text, offset, offset)
    quote = text[offset : offset + 1]
    if quote in ("'", '"', "`"):
        return source.problem(offset, f"the quote {quote} is not closed", f"add {quote} at its end")
    return source.problem(offset, "cannot be read from here on", "check quotes and comments")
