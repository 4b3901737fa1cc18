"""Columns beside an aggregate's own that say how good its answer is.

``_low`` and ``_high`` enclose an approximate answer, ``_complete`` says that a list of frequent
values lacks none, ``_exact`` that a window had so few values that its answer is exact. They stand
behind the column that they tell of, which must be an aggregate and nothing else; but ``_exact`` is
told of expressions as well, for all that they are computed from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import reduce

import pyarrow as pa
from sqlglot import exp

from muntin.aggregates import ResolvedAggregate, resolve
from muntin.aggregates.algebra import HISTOGRAM
from muntin.aggregates.caps import Guarantees
from muntin.errors import QueryError
from muntin.planner.bound import BoundCall
from muntin.queries import AggregateCall, Output, Query
from muntin.queries.sql.aggregate_calls import aggregate_calls, as_call

# What tells of an answer: always, or where bounds are asked for.
_ALWAYS = {"approx_top_k": ("complete",), "approx_frequent": ("complete",)}
_BOUNDED = {"approx_percentile": ("low", "high"), "approx_count_distinct": ("low", "high")}
_TRUTHS = ("complete", "exact")


def with_cap(
    query: Query, call: AggregateCall, aggregate: ResolvedAggregate, told: Guarantees
) -> ResolvedAggregate:
    """The aggregate with the cap of its windows' values, and what stands for it beyond that."""
    part = aggregate.parts[0]
    if not part.valued or part.kind.startswith(HISTOGRAM):
        return aggregate
    capped = replace(aggregate, cap=told.cap)
    if told.cap.on != "approximate":
        return capped
    fallback = _approximate(aggregate)
    if fallback is None:
        message = f"{call.name} has no approximate form, which on_cap = 'approximate' asks for"
        hint = "use on_cap = 'null' or 'fail', or approx_top_k or approx_frequent themselves"
        raise QueryError([query.problem(call.node, message, hint)])
    return replace(capped, parts=(*aggregate.parts, *fallback.parts), fallback=fallback)


def _approximate(aggregate: ResolvedAggregate) -> ResolvedAggregate | None:
    """The approximate form of an aggregate; None if it has none."""
    types, constants = aggregate.types, aggregate.constants
    if aggregate.name == "count_distinct":
        return resolve("approx_count_distinct", types)
    if aggregate.name == "median":
        return resolve("approx_percentile", types, [0.5])
    is_number = pa.types.is_floating(aggregate.type) or pa.types.is_list(aggregate.type)
    if aggregate.name in ("percentile", "percentile_disc") and is_number and not constants[1]:
        return resolve("approx_percentile", types, constants[:1])
    return None


class Companions:
    """The columns of a query, with those that tell of others."""

    def __init__(
        self, query: Query, calls: Mapping[AggregateCall, BoundCall], told: Guarantees
    ) -> None:
        self._query, self._bound, self._told = query, calls, told
        self._made: dict[tuple[str, str], BoundCall] = {}
        self._outputs = tuple(each for output in query.select for each in self._beside(output))
        self._check_names()

    @property
    def calls(self) -> Iterable[BoundCall]:
        """What is lowered for them."""
        return self._made.values()

    def outputs(self) -> tuple[Output, ...]:
        """All columns, in order."""
        return self._outputs

    def _beside(self, output: Output) -> Iterable[Output]:
        yield output
        call = as_call(output.node)
        if call is not None:
            bound = self._bound[call]
            for facet in self._facets(bound.aggregate):
                yield Output(f"{output.name}_{facet}", self._column(bound, facet))
            return
        within = [self._bound[each] for each in dict.fromkeys(aggregate_calls(output.node))]
        unsure = [bound for bound in within if bound.aggregate.fallback is not None]
        if unsure:
            told = [self._column(bound, "exact") for bound in unsure]
            yield Output(f"{output.name}_exact", reduce(_both, told))

    def _facets(self, aggregate: ResolvedAggregate) -> tuple[str, ...]:
        if aggregate.fallback is not None:
            return ("exact",)
        bounded = _BOUNDED.get(aggregate.name, ()) if self._told.bounds else ()
        return _ALWAYS.get(aggregate.name, bounded)

    def _column(self, bound: BoundCall, facet: str) -> exp.Expr:
        """A lowered column that tells of another."""
        name = f"{bound.name}.{facet}"
        kind = pa.bool_() if facet in _TRUTHS else bound.aggregate.type
        aggregate = replace(bound.aggregate, facet=facet, type=kind)
        self._made.setdefault((bound.name, facet), replace(bound, name=name, aggregate=aggregate))
        return exp.Column(this=exp.to_identifier(name, quoted=True))

    def _check_names(self) -> None:
        names = [output.name for output in (*self._query.group_by, *self._outputs)]
        for output in self._query.select:
            for facet in ("low", "high", "complete", "exact"):
                name = f"{output.name}_{facet}"
                if [each.lower() for each in names].count(name.lower()) > 1:
                    message = f"{name} is the name of a column, and tells of {output.name}"
                    hint = "give one of them another name with AS"
                    raise QueryError([self._query.problem(output.node, message, hint)])


def _both(one: exp.Expr, other: exp.Expr) -> exp.Expr:
    return exp.And(this=one, expression=other)
