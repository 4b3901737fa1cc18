"""Whatever a user hands over as queries, as a tuple of queries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from muntin._garbage import uncollected
from muntin.aggregates.caps import DEFAULT_CAP, Guarantees
from muntin.errors import Problem, QueryError, UnknownQueryError
from muntin.queries.analysis.templates import Templates
from muntin.queries.builder import QueryBuilder
from muntin.queries.catalog import (
    AnyQuery,
    CreateQuery,
    CreateRows,
    DropQuery,
    MixedCatalog,
    Statement,
    aggregate_query,
)
from muntin.queries.query import Query
from muntin.queries.row_builder import RowBuilder
from muntin.queries.rows import RowQuery
from muntin.queries.sql.parser import given_names, parse

QueryLike: TypeAlias = str | Path | Query | RowQuery | QueryBuilder | RowBuilder
QueriesLike: TypeAlias = QueryLike | Iterable[QueryLike]

# Ten thousand queries take a few million bytes.
MAX_BYTES = 20_000_000


def queries(spec: QueriesLike) -> tuple[Query, ...]:
    """As :func:`all_queries`, where only queries with aggregates can be run.

    Raises:
        QueryError: As there; or for the first query over rows with lifetimes.

    >>> [query.name for query in queries(["SELECT count(*) FROM s [RANGE 5 SLIDE 5]"] * 2)]
    ['q1', 'q2']
    """
    return tuple(map(aggregate_query, all_queries(spec)))


def all_queries(spec: QueriesLike) -> tuple[AnyQuery, ...]:
    """The queries that SQL text, a path to a .sql file, query objects or a list of these mean.

    Statements take effect in order, so a DROP QUERY takes out what a CREATE QUERY before it put
    in. A SELECT on its own is named by its position among all statements, or by the next number
    that leaves a name free.

    Raises:
        QueryError: With all problems of one text; or when two names differ at most in case.

    >>> [query.name for query in all_queries(["SELECT a FROM s [RANGE 5]"] * 2)]
    ['q1', 'q2']
    """
    with uncollected():
        return _queries(_parts(spec))


def all_approximated(queries: Iterable[AnyQuery]) -> tuple[AnyQuery, ...]:
    """The queries with sums of products as products of sums, for those that aggregate joins."""
    return tuple(
        replace(each, approximate=True)
        if isinstance(each, RowQuery) and each.aggregation is not None
        else each
        for each in queries
    )


def all_promised(queries: Iterable[AnyQuery], told: Guarantees) -> tuple[AnyQuery, ...]:
    """The queries with caps and bounds, for those that aggregate joins and say nothing of them.

    Plans tell the others.
    """
    if not told.bounds and told.cap == DEFAULT_CAP:
        return tuple(queries)
    return tuple(
        replace(each, guarantees=each.guarantees.otherwise(told))
        if isinstance(each, RowQuery) and each.aggregation is not None
        else each
        for each in queries
    )


def _queries(parts: list[Any]) -> tuple[AnyQuery, ...]:
    taken = _given(parts)
    catalog, templates = MixedCatalog(), Templates()
    count = 0
    problems: list[Problem] = []
    for part in parts:
        try:
            statements = list(_statements(part, count + 1, taken, templates))
            count += len(statements)
            taken |= {one.query.name for one in statements if not isinstance(one, DropQuery)}
            catalog.apply(statements)
        except QueryError as error:
            problems += error.problems
        except UnknownQueryError as error:
            problems.append(Problem(error.message, hint=error.hint))
    if problems:
        raise QueryError(problems)
    return tuple(catalog)


def statements_of(spec: QueriesLike, taken: Collection[str]) -> list[Statement]:
    """The statements that SQL text, a path to a .sql file, or queries mean for a running set.

    A SELECT on its own gets a name that is not taken.

    >>> statements_of("DROP QUERY spikes", ())
    [DropQuery(name='spikes')]
    >>> statements_of("-- nothing", ())
    Traceback (most recent call last):
    muntin.errors.QueryError: there are no queries
    Hint: give at least one statement
    """
    found: list[Statement] = []
    for part in _parts(spec):
        names = {*taken, *(one.query.name for one in found if not isinstance(one, DropQuery))}
        if isinstance(part, str | Path):
            found += parse(read_text(part), 1, names)
        else:
            found += _statements(part, 1, names, Templates())
    if not found:
        raise QueryError([Problem("there are no queries", "give at least one statement")])
    return found


def _parts(spec: object) -> list[Any]:
    kinds = (str, Path, Query, RowQuery, QueryBuilder, RowBuilder, bytes, bytearray, Mapping)
    single = isinstance(spec, kinds)
    return list(spec) if isinstance(spec, Iterable) and not single else [spec]


def _given(parts: list[Any]) -> set[str]:
    """Names that the user gave, which no SELECT on its own may take."""
    if len(parts) == 1:
        return set()
    names = {
        part.name
        for part in parts
        if isinstance(part, Query | RowQuery | QueryBuilder | RowBuilder)
    }
    for part in parts:
        if isinstance(part, str | Path):
            with suppress(QueryError):
                names |= given_names(read_text(part))
    return names


def _statements(
    part: object, first: int, taken: set[str], templates: Templates
) -> Iterator[Statement]:
    if isinstance(part, QueryBuilder | RowBuilder):
        part = part.build()
    if isinstance(part, Query):
        yield CreateQuery(part)
    elif isinstance(part, RowQuery):
        yield CreateRows(part)
    elif isinstance(part, str | Path):
        yield from _from_text(read_text(part), first, taken, templates)
    else:
        hint = "pass SQL text, a path to a .sql file, or queries made by muntin.query"
        raise QueryError([Problem(f"{type(part).__name__} is not a query", hint=hint)])


def _from_text(text: str, first: int, taken: set[str], templates: Templates) -> list[Statement]:
    statements = parse(text, first, taken, templates)
    if not statements:
        raise QueryError([Problem("the text contains no query", hint="write SELECT ... FROM ...")])
    return statements


def read_text(part: str | Path) -> str:
    """SQL text: the text itself, or that of the file of which it is the path."""
    if isinstance(part, str) and not is_path(part):
        return part
    try:
        with Path(part).open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        # Some editors begin a file with a mark of its encoding; and lines may end as on Windows.
        text = content[:MAX_BYTES].decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError:
        raise QueryError([Problem(f"{part} is not UTF-8 text", hint="save it as UTF-8")]) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        hint = "check the path" + ", or pass SQL text" * isinstance(part, str)
        raise QueryError([Problem(f"cannot read {part}: {reason}", hint=hint)]) from None
    if len(content) > MAX_BYTES:
        message = f"{part} has more than {MAX_BYTES:,} bytes"
        raise QueryError([Problem(message, hint="split it into several files")])
    return text.replace("\r\n", "\n").replace("\r", "\n")


def is_path(text: str) -> bool:
    """Whether a text is the path of a SQL file rather than SQL.

    SQL has spaces; a path may have some too, but then the file had better be there.

    >>> is_path("trades.sql"), is_path("SELECT 1 -- as in trades.sql")
    (True, False)
    """
    if not text.endswith(".sql"):
        return False
    if not any(letter.isspace() for letter in text):
        return True
    try:
        return Path(text).is_file()
    except (OSError, ValueError):
        return False
