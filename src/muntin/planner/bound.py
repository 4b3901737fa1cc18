"""Queries bound to a schema, as data: columns found, types known, aggregates split into parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from muntin.aggregates import Part, ResolvedAggregate
from muntin.aggregates.algebra import VALUED
from muntin.errors import QueryError
from muntin.expressions import Bound
from muntin.plan.nodes import Accumulator, Axis, OutputColumn
from muntin.plan.relations import Relation
from muntin.queries import AggregateCall, Query

COUNT_ROWS = Accumulator(Part("count", ()), ())


@dataclass(frozen=True)
class BoundCall:
    """An aggregate call with its arguments bound; ``name`` is its column once lowered.

    Where it ``is_spread``, the values that it is read off lie in all buckets.
    """

    name: str
    aggregate: ResolvedAggregate
    args: tuple[Bound, ...]
    filter: Bound | None
    is_spread: bool = False

    def accumulators(self) -> tuple[Accumulator, ...]:
        """What the call is read off, one accumulator per part."""
        return self._accumulators

    @cached_property
    def _accumulators(self) -> tuple[Accumulator, ...]:
        # What stands for it beyond its cap has no values that could be spread.
        return tuple(
            Accumulator(
                part,
                tuple(self.args[i] for i in part.args),
                self.filter,
                self.is_spread and part.kind in VALUED,
            )
            for part in self.aggregate.parts
        )


@contextmanager
def calls_as_written(calls: Mapping[AggregateCall, BoundCall]) -> Iterator[None]:
    """Problems speak of aggregates, not of the columns that stand for them in expressions."""
    try:
        yield
    except QueryError as error:
        problems = error.problems
        for call, bound in calls.items():
            name, text = f"`{bound.name}`", call.key
            problems = tuple(
                replace(
                    each,
                    message=each.message.replace(name, text),
                    hint=each.hint and each.hint.replace(name, text),
                )
                for each in problems
            )
        raise QueryError(problems) from error


@dataclass(frozen=True)
class BoundQuery:
    """A query of which every name and type is known; its windows cut an axis."""

    query: Query
    axis: Axis
    grouping: tuple[Bound, ...]
    predicate: Bound | None
    calls: tuple[BoundCall, ...]
    outputs: tuple[OutputColumn, ...]
    having: Bound | None
    lowered_schema: pa.Schema
    relation: Relation

    def accumulators(self) -> tuple[Accumulator, ...]:
        """Every accumulator the query needs, the count of rows first."""
        needed = [accumulator for call in self.calls for accumulator in call.accumulators()]
        return (COUNT_ROWS, *needed)

    def asked_by(self, query: Query, axis: Axis, predicate: Bound | None) -> BoundQuery:
        """What another query shows, if it shows the same."""
        return BoundQuery(
            query,
            axis,
            self.grouping,
            predicate,
            self.calls,
            self.outputs,
            self.having,
            self.lowered_schema,
            self.relation,
        )
