"""The queries of a running set, by name, with a version that grows with each change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from muntin.errors import Problem, QueryError, UnknownQueryError, did_you_mean
from muntin.queries.asking.keeps import CreateKeep, DropKeep
from muntin.queries.declarations import CreateSink, CreateSource, Reference
from muntin.queries.query import Query
from muntin.queries.rows import RowQuery

AnyQuery: TypeAlias = Query | RowQuery


class MixedCatalog:
    """Named queries of all kinds, in the order they joined.

    Letter case of names makes no difference. ``version`` starts at 0 and grows by one with each
    change that succeeds.
    """

    def __init__(self, queries: Iterable[AnyQuery] = ()) -> None:
        self._queries: dict[str, AnyQuery] = {}
        self._version = 0
        for query in queries:
            self.add(query)

    @property
    def version(self) -> int:
        """How many changes there have been."""
        return self._version

    def add(self, query: AnyQuery) -> None:
        """Adds a query under a name that is free."""
        self._check(query)
        queries = dict(self._queries)
        _add(queries, query)
        self._commit(queries)

    def replace(self, query: AnyQuery) -> None:
        """Adds a query, in place of the one of the same name if there is one."""
        self._check(query)
        self._commit({**self._queries, query.name.lower(): query})

    def remove(self, name: str) -> AnyQuery:
        """Takes a query out, and returns it."""
        queries = dict(self._queries)
        query = _remove(queries, name)
        self._commit(queries)
        return query

    def apply(self, statements: Iterable[Statement]) -> None:
        """Makes all the changes of some statements in one version, or none if one fails."""
        queries = dict(self._queries)
        changed = False
        for statement in statements:
            changed = True
            if not isinstance(statement, DropQuery):
                self._check(statement.query)
            if isinstance(statement, DropQuery):
                _remove(queries, statement.name)
            elif statement.replace:
                queries[statement.query.name.lower()] = statement.query
            else:
                _add(queries, statement.query)
        if changed:
            self._commit(queries)

    def get(self, name: str) -> AnyQuery:
        """The query of a name."""
        return _get(self._queries, name)

    def _check(self, query: AnyQuery) -> None:
        """Refuse a query of a kind that the set does not take."""

    def _commit(self, queries: dict[str, AnyQuery]) -> None:
        self._queries = queries
        self._version += 1

    def __iter__(self) -> Iterator[AnyQuery]:
        return iter(tuple(self._queries.values()))

    def __len__(self) -> int:
        return len(self._queries)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._queries

    def __repr__(self) -> str:
        names = ", ".join(query.name for query in self)
        return f"<{type(self).__name__} version {self._version}: {names}>"


class Catalog(MixedCatalog):
    """Named queries with aggregates, as a :class:`MixedCatalog` that takes no others.

    >>> from muntin.queries import query
    >>> catalog = Catalog()
    >>> catalog.add(query("volume").window(60, 20).agg(total="sum(vol)").build())
    >>> catalog.version, "VOLUME" in catalog, len(catalog)
    (1, True, 1)
    """

    def _check(self, query: AnyQuery) -> None:
        aggregate_query(query)

    def get(self, name: str) -> Query:
        """The query of a name."""
        return aggregate_query(super().get(name))

    def remove(self, name: str) -> Query:
        """Takes a query out, and returns it."""
        return aggregate_query(super().remove(name))

    def __iter__(self) -> Iterator[Query]:
        return map(aggregate_query, super().__iter__())


def aggregate_query(query: AnyQuery) -> Query:
    """The query, if it has aggregates; else says where queries over rows are run."""
    if isinstance(query, RowQuery):
        kind = "a query over rows with lifetimes"
        if query.aggregation is not None:
            kind = "an aggregate over a join or EXISTS"
        message = f"{kind} cannot be run here"
        hint = (
            "run it with muntin.aggregate, or with muntin.stream over streams by name: "
            'muntin.stream(queries, {"orders": columns, ...})'
        )
        raise QueryError([query.problem(None, message, hint)])
    return query


def _get(queries: dict[str, AnyQuery], name: str) -> AnyQuery:
    if name.lower() not in queries:
        known = [query.name for query in queries.values()]
        hint = did_you_mean(name, known) or "there are no queries"
        raise UnknownQueryError(f"there is no query named {name}", hint=hint)
    return queries[name.lower()]


def _add(queries: dict[str, AnyQuery], query: AnyQuery) -> None:
    taken = queries.get(query.name.lower())
    if taken is not None:
        raise QueryError(
            [
                Problem(
                    f"there is already a query named {taken.name}",
                    hint="use another name, or CREATE OR REPLACE QUERY",
                    query=query.name,
                )
            ]
        )
    queries[query.name.lower()] = query


def _remove(queries: dict[str, AnyQuery], name: str) -> AnyQuery:
    query = _get(queries, name)
    del queries[name.lower()]
    return query


@dataclass(frozen=True)
class CreateQuery:
    """CREATE [OR REPLACE] QUERY, a SELECT on its own, or INSERT INTO a sink.

    ``start`` is the offset of the statement, ``from_start`` that of the stream's name.
    """

    query: Query
    replace: bool = False
    sink: Reference | None = None
    start: int = field(default=0, compare=False, repr=False)
    from_start: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True)
class CreateRows:
    """As :class:`CreateQuery`, for a query over rows with lifetimes."""

    query: RowQuery
    replace: bool = False
    sink: Reference | None = None
    start: int = field(default=0, compare=False, repr=False)
    from_start: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True)
class DropQuery:
    """DROP QUERY."""

    name: str
    start: int = field(default=0, compare=False, repr=False)


Statement: TypeAlias = CreateQuery | CreateRows | DropQuery
FileStatement: TypeAlias = Statement | CreateSource | CreateSink | CreateKeep | DropKeep


@dataclass(frozen=True)
class ParsedFile:
    """The statements of a SQL file that could be read, and all that is wrong with the others.

    ``names`` holds what every CREATE names, be it readable or not: by QUERY, STREAM, TABLE and
    SINK, then by the name in lower case.
    """

    statements: tuple[FileStatement, ...]
    problems: tuple[Problem, ...]
    names: dict[str, dict[str, str]]
