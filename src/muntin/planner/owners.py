"""Who shares slices: queries with one owner are cut together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self

from muntin.plan.nodes import SharedPlan, Strategy, Weighed
from muntin.planner.steps.bind import BoundQuery


@dataclass(frozen=True)
class Sharing:
    """An owner for each query, and what was weighed, in a sentence for people and in numbers.

    ``stay`` are the owners without any move, where queries that run are to move. ``combined``
    says whether rows are aggregated once for all owners, whose slices are put together from that.
    """

    owners: tuple[str, ...]
    why: str = ""
    weighed: Weighed | None = None
    stay: tuple[str, ...] | None = None
    combined: bool = False


# Decides it for queries, some of which may run already, in the trees of a plan.
Sharer = Callable[[Sequence[BoundQuery], SharedPlan | None], Sharing]


class Reviewer(Protocol):
    """A sharer that looks at a running plan again and again."""

    def __call__(self, queries: Sequence[BoundQuery], previous: SharedPlan | None) -> Sharing:
        """Decide who shares."""

    def measured_by(self, rate: Callable[[], float | None]) -> Self:
        """The same with a measured rate of rows per tick, where it knows of no other."""

    def is_due(self, plan: SharedPlan) -> bool:
        """Whether a plan is to be weighed anew."""


def share_all(queries: Sequence[BoundQuery], previous: SharedPlan | None = None) -> Sharing:
    """One owner for all, but for queries that run already: they stay where they are."""
    return Sharing(tuple(join_all(kept_owners(queries, previous))))


def join_all(kept: Sequence[str | None]) -> list[str]:
    """Owners for queries of one axis: those that have none go to the first one there is."""
    main = next((owner for owner in kept if owner is not None), "")
    return [main if owner is None else owner for owner in kept]


def kept_owners(queries: Sequence[BoundQuery], previous: SharedPlan | None) -> list[str | None]:
    """The owner of each query that runs already."""
    if previous is None:
        return [None] * len(queries)
    known = {
        final.name: (final.query, previous.slicings[previous.partials[final.partials].slicing])
        for final in previous.finals
    }
    found: list[str | None] = []
    for query in queries:
        before, slicing = known.get(query.query.name, (None, None))
        found.append(slicing.owner if slicing is not None and before == query.query else None)
    return found


def shared(
    queries: Sequence[BoundQuery],
    strategy: Strategy,
    sharer: Sharer,
    previous: SharedPlan | None,
) -> Sharing:
    """Who shares slices.

    Two strategies say themselves who does: a query alone, or queries with the same window.
    """
    if strategy == "unshared":
        return Sharing(tuple(query.query.name for query in queries))
    if strategy == "fragments":
        return Sharing(tuple(repr(query.query.window) for query in queries))
    return sharer(queries, previous)


def owned(queries: Sequence[BoundQuery], owners: Sequence[str]) -> list[BoundQuery]:
    """The queries, each with the owner of its slices."""
    return [
        replace(query, axis=(*query.axis[:2], owner))
        for query, owner in zip(queries, owners, strict=True)
    ]
