"""Pieces of SQL text that builders put together: checked, named, connected."""

from __future__ import annotations

from sqlglot import exp

from muntin.errors import Problem, QueryError
from muntin.queries.source import check_text
from muntin.queries.sql.normalize import canonical_text, quote
from muntin.queries.sql.parser import parse_expression


def checked(texts: tuple[str, ...]) -> tuple[str, ...]:
    """The expressions in canonical text, so that none can reach beyond its place in the query."""
    found = [parse_expression(check_text(text, "an expression")) for text in texts]
    if any(node.find(exp.Query, exp.Exists) is not None for node in found):
        hint = "use exists, not_exists, is_in or not_in, with another query"
        raise QueryError([Problem("a subquery inside an expression", hint=hint)])
    return tuple(canonical_text(node) for node in found)


def named_texts(
    texts: tuple[str, ...], named: dict[str, str]
) -> tuple[tuple[str, str | None], ...]:
    """Expressions without a name, then those with one."""
    unnamed = tuple((text, None) for text in checked(texts))
    return unnamed + tuple(zip(checked(tuple(named.values())), named, strict=True))


def item_text(text: str, name: str | None) -> str:
    """An expression as SELECT lists it.

    >>> item_text("vol * 2", "twice")
    'vol * 2 AS twice'
    """
    return text if name is None else f"{text} AS {quote(name)}"


def all_of(conditions: tuple[str, ...]) -> str:
    """Conditions that must all hold, as one."""
    if len(conditions) == 1:
        return conditions[0]
    return " AND ".join(f"({condition})" for condition in conditions)
