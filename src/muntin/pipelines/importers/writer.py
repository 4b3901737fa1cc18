"""The text of a translated file: statements in the order of the source, with notes beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot.tokenizer_core import TokenType

from muntin.pipelines.importers.statements import Note
from muntin.queries import Query, RowQuery
from muntin.queries.source import printable
from muntin.queries.sql.dialect import tokenizer
from muntin.queries.sql.normalize import quote

_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END)
_BREAKS = (
    TokenType.FROM,
    TokenType.WHERE,
    TokenType.GROUP_BY,
    TokenType.HAVING,
    TokenType.JOIN,
)
_SIDES = (TokenType.LEFT, TokenType.RIGHT, TokenType.FULL)
MAX_WIDTH = 100


def declaration(
    kind: str, name: str, columns: Sequence[tuple[str, str]], options: Mapping[str, str]
) -> str:
    """CREATE STREAM, TABLE or SINK.

    >>> print(declaration("SINK", "results", [], {"format": "parquet", "path": "it's"}))
    CREATE SINK results
      WITH (format = 'parquet', path = 'it''s');
    """
    listed = ", ".join(f"{quote(column)} {kind_}" for column, kind_ in columns)
    pairs = [f"{_key(key)} = {_value(value)}" for key, value in options.items()]
    values = ", ".join(pairs)
    head = f"CREATE {kind} {quote(name)}" + (f" ({listed})" if columns else "")
    if len(head) > MAX_WIDTH:
        lines = ",\n  ".join(f"{quote(column)} {kind_}" for column, kind_ in columns)
        head = f"CREATE {kind} {quote(name)} (\n  {lines}\n)"
    if len(values) > MAX_WIDTH - len("  WITH ();"):
        listed = ",\n    ".join(pairs)
        values = f"\n    {listed}\n  "
    return f"{head}\n  WITH ({values});"


def _key(key: str) -> str:
    parts = key.split(".")
    plain = all(part.isascii() and part.replace("_", "a").isalnum() for part in parts)
    return key if plain else _value(key)


def _value(text: str) -> str:
    if text in ("TRUE", "FALSE"):
        return text
    escaped = text.replace("\\", "\\\\").replace("'", "''").replace("${", "$${")
    return f"'{escaped}'"


def query_text(query: Query | RowQuery, sink: str | None) -> str:
    """CREATE QUERY, or INSERT INTO a sink, with a line for each clause."""
    text = query.sql()
    head = f"CREATE QUERY {quote(query.name)} AS "
    assert text.startswith(head)
    first = f"INSERT INTO {quote(sink)}" if sink is not None else head.rstrip()
    lines = [first, *(f"  {line}" for line in _lines(text[len(head) :]))]
    return "\n".join(lines) + ";"


def _lines(select: str) -> list[str]:
    """A SELECT cut before each clause; nested ones stay on their line."""
    tokens = tokenizer().tokenize(select)
    depth, cuts = 0, [0]
    for number, token in enumerate(tokens):
        kind = token.token_type
        depth += (kind in _OPENING) - (kind in _CLOSING)
        if depth or kind not in _BREAKS:
            continue
        before = tokens[number - 1] if number else token
        left = kind == TokenType.JOIN and before.token_type in _SIDES
        cuts.append(before.start if left else token.start)
    ends = [*cuts[1:], len(select)]
    return [select[start:end].strip() for start, end in zip(cuts, ends, strict=True)]


def comments(lines: Sequence[str]) -> str:
    """Lines as comments; what would end one is taken out."""
    return "\n".join(f"-- {printable(line)}".rstrip() for line in lines)


def block(
    kept: Sequence[str], notes: Sequence[Note], texts: Sequence[str], original: str | None
) -> str:
    """One statement: its own comments, what was lost of it, and its text or what it was."""
    parts = [comments(kept)] if kept else []
    if notes:
        parts.append(comments([note.comment for note in notes]))
    parts += texts
    if original is not None:
        parts.append(comments(["not carried over:", *original.split("\n")]))
    return "\n".join(parts)
