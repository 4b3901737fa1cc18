"""The queries of a running set, by name, with a version that grows with each change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from muntin.errors import Problem, QueryError, UnknownQueryError, did_you_mean
from muntin.queries.parser import DropQuery, Statement
from muntin.queries.query import Query


class Catalog:
    """Named queries in the order they joined; letter case of names makes no difference.

    ``version`` starts at 0 and grows by one with each change that succeeds.

    >>> from muntin.queries import query
    >>> catalog = Catalog()
    >>> catalog.add(query("volume").window(60, 20).agg(total="sum(vol)").build())
    >>> catalog.version, "VOLUME" in catalog, len(catalog)
    (1, True, 1)
    """

    def __init__(self, queries: Iterable[Query] = ()) -> None:
        self._queries: dict[str, Query] = {}
        self._version = 0
        for query in queries:
            self.add(query)

    @property
    def version(self) -> int:
        """How many changes there have been."""
        return self._version

    def add(self, query: Query) -> None:
        """Adds a query under a name that is free."""
        self._commit(_added(self._queries, query))

    def replace(self, query: Query) -> None:
        """Adds a query, in place of the one of the same name if there is one."""
        self._commit(_replaced(self._queries, query))

    def remove(self, name: str) -> Query:
        """Takes a query out, and returns it."""
        query = self.get(name)
        self._commit(_removed(self._queries, name))
        return query

    def apply(self, statements: Iterable[Statement]) -> None:
        """Makes all the changes of some statements in one version, or none if one fails."""
        queries = self._queries
        for statement in statements:
            if isinstance(statement, DropQuery):
                queries = _removed(queries, statement.name)
            elif statement.replace:
                queries = _replaced(queries, statement.query)
            else:
                queries = _added(queries, statement.query)
        if queries is not self._queries:
            self._commit(queries)

    def get(self, name: str) -> Query:
        """The query of a name."""
        return _get(self._queries, name)

    def _commit(self, queries: dict[str, Query]) -> None:
        self._queries = queries
        self._version += 1

    def __iter__(self) -> Iterator[Query]:
        return iter(tuple(self._queries.values()))

    def __len__(self) -> int:
        return len(self._queries)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._queries

    def __repr__(self) -> str:
        names = ", ".join(query.name for query in self)
        return f"<Catalog version {self._version}: {names}>"


def _get(queries: dict[str, Query], name: str) -> Query:
    if name.lower() not in queries:
        known = [query.name for query in queries.values()]
        hint = did_you_mean(name, known) or "there are no queries"
        raise UnknownQueryError(f"there is no query named {name}", hint=hint)
    return queries[name.lower()]


def _added(queries: dict[str, Query], query: Query) -> dict[str, Query]:
    taken = queries.get(query.name.lower())
    if taken is not None:
        raise QueryError(
            [
                Problem(
                    f"there is a query named {taken.name} already",
                    hint="use another name, or CREATE OR REPLACE QUERY",
                    query=query.name,
                )
            ]
        )
    return {**queries, query.name.lower(): query}


def _replaced(queries: dict[str, Query], query: Query) -> dict[str, Query]:
    return {**queries, query.name.lower(): query}


def _removed(queries: dict[str, Query], name: str) -> dict[str, Query]:
    _get(queries, name)
    return {key: query for key, query in queries.items() if key != name.lower()}
