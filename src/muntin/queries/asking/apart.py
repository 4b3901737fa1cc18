"""Queries and keeps of one text, told apart: a file may hold both."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sqlglot.tokenizer_core import Token, TokenType

from muntin.errors import Problem, QueryError, did_you_mean
from muntin.queries.asking.builder import KeepsLike, keep_statements, keeps
from muntin.queries.asking.keeps import AnyKeep, CreateKeep, DropKeep
from muntin.queries.spec import QueriesLike, read_text
from muntin.queries.sql.dialect import strip_comments, tokenizer

_MENTIONED = re.compile(r"\bkeep\b", re.IGNORECASE)
_HEADS = (["CREATE", "KEEP"], ["DROP", "KEEP"], ["CREATE", "OR", "REPLACE", "KEEP"])


def queries_and_keeps(
    queries: QueriesLike, kept: KeepsLike | None = None
) -> tuple[QueriesLike, tuple[AnyKeep, ...] | None]:
    """What is left of queries without the keeps among them, and all keeps; None if nothing is kept.

    Both are read at their places in the text, so that problems point there.

    >>> text = "SELECT max(v) FROM s [RANGE 60 SLIDE 5]; CREATE KEEP k AS SELECT max(v) FROM s "
    >>> left, (keep,) = queries_and_keeps(text + "[RANGE 60 SLIDE 5]")
    >>> left.strip(), keep.name
    ('SELECT max(v) FROM s [RANGE 60 SLIDE 5];', 'k')
    """
    found = None if kept is None else list(keeps(kept))
    single = isinstance(queries, str | Path)
    parts: list[Any] = [queries] if single else _listed(queries)
    left: list[Any] = []
    statements: list[CreateKeep | DropKeep] = []
    for part in parts:
        text = read_text(part) if isinstance(part, str | Path) else ""
        asked, others = _split(text) if _MENTIONED.search(text) else (text, "")
        if not others.strip():
            left.append(part)
            continue
        statements += keep_statements(others)
        # What is left may be comments.
        if tokenizer().tokenize(asked):
            left.append(asked)
    if not statements:
        return queries, None if found is None else tuple(found)
    return left[0] if single and left else left, _applied(statements, found or [])


def _listed(queries: Any) -> list[Any]:
    return list(queries) if isinstance(queries, list | tuple) else [queries]


def _applied(statements: list[CreateKeep | DropKeep], given: list[AnyKeep]) -> tuple[AnyKeep, ...]:
    """The keeps after all statements, and those that were given beside them."""
    found = {each.name.lower(): each for each in given}
    for one in statements:
        name = one.name if isinstance(one, DropKeep) else one.keep.name
        known = name.lower() in found
        if isinstance(one, DropKeep):
            if not known:
                hint = did_you_mean(name, [each.name for each in found.values()])
                message = f"there is no keep named {name}"
                raise QueryError([Problem(message, hint or "no keep is defined before it")])
            del found[name.lower()]
            continue
        if known and not one.replace:
            hint = "use another name, or CREATE OR REPLACE KEEP"
            raise QueryError([Problem(f"there is already a keep named {name}", hint, name)])
        found[name.lower()] = one.keep
    return tuple(found.values())


def _split(text: str) -> tuple[str, str]:
    """The text with its keeps blanked out, and the text with all else blanked out."""
    try:
        tokens = strip_comments(tokenizer().tokenize(text))
    except Exception:
        return text, ""
    asked, others = text, text
    for chunk in _chunks(tokens):
        words = [token.text.upper() for token in chunk[:4]]
        is_keep = any(words[: len(head)] == head for head in _HEADS)
        low, high = chunk[0].start, chunk[-1].end + 1
        if is_keep:
            asked = _blanked(asked, low, high)
        else:
            others = _blanked(others, low, high)
    return asked, _without_comments(others, tokens)


def _chunks(tokens: list[Token]) -> list[list[Token]]:
    """Statements, each with the semicolon behind it."""
    found: list[list[Token]] = [[]]
    for token in tokens:
        found[-1].append(token)
        if token.token_type == TokenType.SEMICOLON:
            found.append([])
    return [chunk for chunk in found if chunk]


def _blanked(text: str, low: int, high: int) -> str:
    return text[:low] + re.sub(r"[^\n]", " ", text[low:high]) + text[high:]


def _without_comments(text: str, tokens: list[Token]) -> str:
    """What lies between words is left out as well: a comment is not a statement."""
    at = 0
    for token in tokens:
        text = _blanked(text, at, token.start)
        at = token.end + 1
    return _blanked(text, at, len(text))
