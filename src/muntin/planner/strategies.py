"""Which queries share a set of partials: one rule for each strategy.

Slices, fragments and shards are those of Krishnamurthy, Wu, Franklin, "On-the-Fly Sharing for
Streamed Aggregation".
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

from muntin.expressions import Bound
from muntin.plan.nodes import Accumulator, Axis
from muntin.plan.relations import Relation
from muntin.plan.selection import Mask, Selection, Signatures
from muntin.planner.bound import BoundCall, BoundQuery
from muntin.predicates import conjunction


@dataclass(frozen=True)
class Tree:
    """Queries that share one set of partials, cut by the slicing of an axis.

    ``members`` gives for each condition, by its key, its place in the selection; ``number`` is
    that of the partials it goes on with, None where that is to be found out. ``finer`` is the
    place of the tree whose partials are rolled up into this one's, ``twin`` that of the tree
    whose partials are this one's too.
    """

    slicing: Axis
    relation: Relation
    grouping: tuple[Bound, ...]
    selection: Selection
    queries: tuple[BoundQuery, ...]
    members: dict[str, int]
    number: int | None = None
    finer: int | None = None
    twin: int | None = None

    def member(self, query: BoundQuery, call: BoundCall | None = None) -> int:
        """The place of a query's predicate, or of what lets rows through to one of its calls."""
        if isinstance(self.selection, Mask):
            return 0
        return self.members[_key(condition(query, call))]

    def accumulators(self) -> dict[Accumulator, int]:
        """The distinct accumulators that the queries need, numbered, the count of rows first."""
        numbers: dict[Accumulator, int] = {}
        # Queries that show the same have their calls in common.
        different: dict[int, BoundQuery] = {}
        for query in self.queries:
            different.setdefault(id(query.calls), query)
        for query in different.values():
            for each in query.accumulators():
                numbers.setdefault(self.kept(each), len(numbers))
        return numbers

    def kept(self, accumulator: Accumulator) -> Accumulator:
        """The accumulator that is kept: where members tell filtered rows apart, the plain one."""
        if isinstance(self.selection, Mask):
            return accumulator
        return Accumulator(accumulator.part, accumulator.args, None, accumulator.is_spread)


def condition(query: BoundQuery, call: BoundCall | None = None) -> Bound | None:
    """What a row must satisfy to count for a query, or for one of its calls."""
    return conjunction(query.predicate, None if call is None else call.filter)


def conditions(query: BoundQuery) -> list[Bound | None]:
    """A query's own condition and those of its calls with a FILTER."""
    filtered = [call for call in query.calls if call.filter is not None]
    return [condition(query), *(condition(query, call) for call in filtered)]


def commutes(query: BoundQuery) -> bool:
    """Whether partials of a query may be combined in any order.

    The others keep partials of their own: cells would tear neighbouring rows apart.
    """
    return all(call.aggregate.commutative for call in query.calls)


def unshared(queries: Sequence[BoundQuery]) -> list[Tree]:
    """Each query alone, with its own slices."""
    return [masked([query]) for query in queries]


def slices(queries: Sequence[BoundQuery]) -> list[Tree]:
    """One set of slices for all; partials for each predicate and grouping."""
    alike = group_by(
        queries, lambda each: (each.axis, each.relation, each.grouping, each.predicate)
    )
    return [masked(members) for members in alike]


def fragments(queries: Sequence[BoundQuery]) -> list[Tree]:
    """Queries with the same window share it, and the fragments of their predicates."""
    return _signed(queries)


def shards(queries: Sequence[BoundQuery]) -> list[Tree]:
    """One set of slices for all, and in each slice the fragments of all predicates."""
    return _signed(queries)


def _signed(queries: Sequence[BoundQuery]) -> list[Tree]:
    trees: list[Tree] = []
    for alike in group_by(queries, lambda each: (each.axis, rows_of(each))):
        if not commutes(alike[0]):
            trees.extend(masked(same) for same in by_predicate(alike))
            continue
        found = {_key(each): each for query in alike for each in conditions(query)}
        members = {text: place for place, text in enumerate(found)}
        selection = Signatures(tuple(found.values()))
        first = alike[0]
        trees.append(
            Tree(first.axis, first.relation, first.grouping, selection, tuple(alike), members)
        )
    return trees


def masked(queries: Sequence[BoundQuery]) -> Tree:
    """Partials of their own for queries with one predicate and grouping."""
    first = queries[0]
    selection = Mask(first.predicate)
    return Tree(first.axis, first.relation, first.grouping, selection, tuple(queries), {})


def rows_of(query: BoundQuery) -> Hashable:
    """What queries must have in common to share cells or fragments."""
    return query.relation, query.grouping, commutes(query)


def by_predicate(queries: Iterable[BoundQuery]) -> list[list[BoundQuery]]:
    """Queries with equal predicates together."""
    return group_by(queries, lambda each: each.predicate)


def group_by(
    queries: Iterable[BoundQuery], key: Callable[[BoundQuery], Hashable]
) -> list[list[BoundQuery]]:
    """Queries with equal keys together, in order of appearance."""
    found: dict[Hashable, list[BoundQuery]] = {}
    for query in queries:
        found.setdefault(key(query), []).append(query)
    return list(found.values())


def _key(bound: Bound | None) -> str:
    return "" if bound is None else bound.key
