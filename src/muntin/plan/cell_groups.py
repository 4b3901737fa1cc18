"""Queries of one grouping that share cells, and from what else their partials come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from muntin.expressions import Bound
from muntin.plan.bind import BoundQuery
from muntin.plan.cell_costs import MOST_CELLS, rolls_up
from muntin.plan.sampling import Counts
from muntin.predicates import Analysis


@dataclass(frozen=True)
class Asked:
    """What one query asks: its conditions, as predicates, and all dimensions they depend on."""

    query: BoundQuery
    members: tuple[int, ...]
    places: frozenset[int]


@dataclass(frozen=True)
class Kept:
    """The tree of a query that was there before: its number, its dimensions by their keys.

    ``finer`` is the number of the tree that it is rolled up from, if it is. A ``guest`` has come
    over from another tree's slices, or has a twin that takes over.
    """

    number: int
    dimensions: frozenset[str]
    finer: int | None = None
    guest: bool = False


@dataclass(eq=False)
class Group:
    """Queries of one grouping whose predicates share the cells of some dimensions.

    ``counts`` is what rows of that grouping fall into; ``kept`` the tree that it goes on with;
    ``finer`` what is rolled up into this; ``twin`` what has the same entries.
    """

    places: frozenset[int]
    asked: list[Asked]
    counts: Counts
    kept: Kept | None = None
    finer: Group | None = None
    twin: Group | None = None

    @property
    def grouping(self) -> frozenset[Bound]:
        """What rows are grouped by."""
        return frozenset(self.asked[0].query.grouping)

    @property
    def number(self) -> int | None:
        """The number of the tree that it goes on with."""
        return None if self.kept is None else self.kept.number

    @property
    def root(self) -> Group:
        """The group that rows go into, whose entries these come from."""
        fed = self.twin or self
        return fed.finer or fed


def size(analysis: Analysis, places: frozenset[int]) -> int:
    """How many cells some dimensions span."""
    return prod(analysis.dimensions[place].size for place in places)


def pair_twins(groups: Sequence[Group], analysis: Analysis) -> None:
    """Find for guests of one grouping the group in whose cells their rows are told apart.

    Both then have the same entries, and each goes on with the slices that it has kept.
    """
    hosts: list[Group] = []
    for group in sorted(groups, key=_hospitality):
        assert group.kept is not None
        wide = [host for host in hosts if group.places <= host.places]
        if group.kept.guest and wide and size(analysis, wide[0].places) <= MOST_CELLS:
            group.twin = wide[0]
        else:
            hosts.append(group)


def _hospitality(group: Group) -> tuple[bool, int, int]:
    """Who comes first as a host: those at home, then those with most dimensions."""
    assert group.kept is not None
    return group.kept.guest, -len(group.places), group.kept.number


def roll_up(groups: Sequence[Group], analysis: Analysis) -> None:
    """Decide which groups are rolled up from those of a finer grouping.

    That pays where rows fall into few entries of the finer one. A tree that was there before
    stays as it was: what it has kept is in the cells of its own dimensions.
    """
    fed = [group for group in groups if group.twin is None]
    finest = [
        group for group in fed if group.grouping and size(analysis, group.places) <= MOST_CELLS
    ]
    for coarse in fed:
        wider = [
            fine
            for fine in finest
            if coarse.grouping < fine.grouping
            and fine.finer is None
            and coarse.places <= fine.places
            and _worth(coarse, fine, groups)
        ]
        if wider and not any(group.finer is coarse for group in groups):
            coarse.finer = min(wider, key=lambda fine: fine.counts.cells(fine.places))


def _worth(coarse: Group, fine: Group, groups: Sequence[Group]) -> bool:
    if coarse.kept is not None:
        alike = [fine, *(group for group in groups if group.twin is fine)]
        return coarse.kept.finer in {each.number for each in alike} - {None}
    return rolls_up(fine.counts, fine.places)
