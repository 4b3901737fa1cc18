"""What queries read: the stream, joined with their tables; equal joins are bound once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from copy import copy

import pyarrow as pa

from muntin.expressions.tree import structure
from muntin.expressions.zones import UTC, Zone
from muntin.plan.relations import Relating, Relation
from muntin.queries import Join, Query


class Relations:
    """Relates queries to one stream and its tables; those with equal joins are joined once."""

    def __init__(
        self, stream: pa.Schema, tables: Mapping[str, pa.Schema], zone: Zone = UTC
    ) -> None:
        self._stream = stream
        self._zone = zone
        self._tables = tables
        self._known: dict[Hashable, Related] = {}

    def of(self, query: Query) -> Related:
        """What a query reads; as `relate`, raises a QueryError where that is not known."""
        key = None if not query.joins else (query.source, query.alias, _structures(query.joins))
        if key not in self._known:
            self._known[key] = Related(query, self._stream, self._tables, self._zone)
        return self._known[key]


class Related:
    """What queries with equal joins read, and how they name its columns."""

    def __init__(
        self, query: Query, stream: pa.Schema, tables: Mapping[str, pa.Schema], zone: Zone
    ) -> None:
        self._relating = Relating(query, stream, tables, zone) if query.joins else None
        self.relation = Relation((), stream, zone)
        if self._relating is not None:
            self.relation = self._relating.relation()

    def named(self, query: Query) -> Query:
        """The query with its columns named as the joined rows name them."""
        if self._relating is None:
            return query
        relating = copy(self._relating)
        relating.query, relating.problems = query, []
        return relating.named()


def _structures(joins: Sequence[Join]) -> Hashable:
    return tuple(
        (
            join.table,
            join.alias,
            join.kind,
            tuple((structure(left), structure(right)) for left, right in join.on),
        )
        for join in joins
    )
