"""Who shares slices: queries with one owner are cut together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from muntin.plan.nodes import SharedPlan, Weighed
from muntin.planner.bound import BoundQuery


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


# Decides it for queries, some of which may run already, in the trees of a plan; and for so many
# rows per tick, as far as that was measured.
Sharer = Callable[[Sequence[BoundQuery], SharedPlan | None, float | None], Sharing]


class Reviewer(Protocol):
    """A sharer that looks at a running plan again and again."""

    def __call__(
        self, queries: Sequence[BoundQuery], previous: SharedPlan | None, rate: float | None
    ) -> Sharing:
        """Decide who shares."""

    def is_due(self, plan: SharedPlan, rate: float | None) -> bool:
        """Whether a plan is to be weighed anew at a measured rate of rows per tick."""


def share_all(
    queries: Sequence[BoundQuery],
    previous: SharedPlan | None = None,
    rate: float | None = None,
) -> Sharing:
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
