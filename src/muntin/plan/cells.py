"""The strategy of cells: predicates by the expressions they mention, merged by cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from muntin.expressions import Bound
from muntin.plan.bind import BoundQuery
from muntin.plan.cell_costs import MOST_CELLS, cost_of_cells, rolls_up
from muntin.plan.sampling import Counts
from muntin.plan.selection import Cells
from muntin.plan.strategies import (
    Tree,
    by_predicate,
    commutes,
    conditions,
    group_by,
    masked,
)
from muntin.predicates import Analysis, Ranked, analyze, merge_shapes

# Among so many shapes every pair is weighed; beyond, each stands alone.
_MOST_SHAPES = 64

# Given the dimensions, how many entries the rows fall into.
Counter = Callable[[Sequence[Ranked]], Counts]


@dataclass(frozen=True)
class _Asked:
    """What one query asks: its conditions, as predicates, and all dimensions they depend on."""

    query: BoundQuery
    members: tuple[int, ...]
    places: frozenset[int]


@dataclass(frozen=True)
class Kept:
    """The tree of a query that was there before: its number, its dimensions by their keys.

    ``finer`` is the number of the tree that it is rolled up from, if it is.
    """

    number: int
    dimensions: frozenset[str]
    finer: int | None = None


@dataclass(eq=False)
class _Group:
    """Queries of one grouping whose predicates share the cells of some dimensions.

    ``counts`` is what rows of that grouping fall into; ``finer`` what is rolled up into this.
    """

    places: frozenset[int]
    asked: list[_Asked]
    counts: Counts
    number: int | None = None
    kept_finer: int | None = None
    finer: _Group | None = None

    @property
    def grouping(self) -> frozenset[Bound]:
        return frozenset(self.asked[0].query.grouping)


def cells(
    queries: Sequence[BoundQuery],
    count: Callable[[BoundQuery], Counter],
    kept: Mapping[str, Kept],
) -> list[Tree]:
    """One set of slices for all, and cells for predicates over the same expressions.

    ``count`` gives for queries like one how entries are counted. ``kept`` holds, for queries
    that were there before, the tree they were in: they stay in it, because what it has kept can
    be read by its own dimensions only.
    """
    trees: list[Tree] = []
    for alike in group_by(queries, lambda each: (each.axis, each.relation, commutes(each))):
        if not commutes(alike[0]):
            for grouped in group_by(alike, lambda each: each.grouping):
                trees.extend(masked(same) for same in by_predicate(grouped))
            continue
        trees.extend(_share(alike, count, kept, len(trees)))
    return trees


def _share(
    queries: Sequence[BoundQuery],
    count: Callable[[BoundQuery], Counter],
    kept: Mapping[str, Kept],
    before: int,
) -> list[Tree]:
    each_asked = [conditions(query) for query in queries]
    analysis = analyze([bound for asked in each_asked for bound in asked])
    numbers = iter(analysis.index)
    asked = []
    for query, wanted in zip(queries, each_asked, strict=True):
        members = tuple(next(numbers) for _ in wanted)
        asked.append(_Asked(query, members, _places(analysis, members)))
    by_grouping: dict[tuple[Bound, ...], list[_Asked]] = {}
    for each in asked:
        by_grouping.setdefault(each.query.grouping, []).append(each)
    groups: list[_Group] = []
    for alike in by_grouping.values():
        counts = count(alike[0].query)(analysis.dimensions)
        groups.extend(_groups(alike, analysis, counts, kept))
    _roll_up(groups, analysis)
    # What is rolled up comes after what it is rolled up from.
    groups.sort(key=lambda group: group.finer is not None)
    trees: list[Tree] = []
    found: dict[_Group, int] = {}
    for group in groups:
        found[group] = before + len(trees)
        trees.extend(_trees(analysis, group, groups, found))
    return trees


def _roll_up(groups: Sequence[_Group], analysis: Analysis) -> None:
    """Decide which groups are rolled up from those of a finer grouping.

    That pays where rows fall into few entries of the finer one. A tree that was there before
    stays as it was: what it has kept is in the cells of its own dimensions.
    """
    finest = [
        group for group in groups if group.grouping and _size(analysis, group.places) <= MOST_CELLS
    ]
    for coarse in groups:
        wider = [
            fine
            for fine in finest
            if coarse.grouping < fine.grouping
            and fine.finer is None
            and coarse.places <= fine.places
            and _worth(coarse, fine)
        ]
        if wider and not any(group.finer is coarse for group in groups):
            coarse.finer = min(wider, key=lambda fine: fine.counts.cells(fine.places))


def _worth(coarse: _Group, fine: _Group) -> bool:
    if coarse.number is not None:
        return coarse.kept_finer is not None and coarse.kept_finer == fine.number
    return rolls_up(fine.counts, fine.places)


def _places(analysis: Analysis, members: Sequence[int]) -> frozenset[int]:
    return frozenset().union(*(analysis.places(member) for member in members))


def _groups(
    asked: Sequence[_Asked],
    analysis: Analysis,
    counts: Counts,
    kept: Mapping[str, Kept],
) -> list[_Group]:
    """Queries that share cells: with those they were with, or as the costs say."""
    numbers = {each.bound.key: place for place, each in enumerate(analysis.dimensions)}
    groups: dict[int, _Group] = {}
    for each in asked:
        if (before := kept.get(each.query.query.name)) is not None:
            places = frozenset(numbers[key] for key in before.dimensions if key in numbers)
            fresh = _Group(places, [], counts, before.number, before.finer)
            groups.setdefault(before.number, fresh).asked.append(each)
    shapes: dict[frozenset[int], list[_Asked]] = {}
    for each in asked:
        if each.query.query.name not in kept:
            wide = [
                group
                for group in groups.values()
                if each.places <= group.places and _size(analysis, group.places) <= MOST_CELLS
            ]
            if wide:
                narrowest = min(wide, key=lambda group: (len(group.places), group.number))
                narrowest.asked.append(each)
            else:
                shapes.setdefault(each.places, []).append(each)
    found = list(groups.values())
    for merged in _merge(shapes, analysis, counts):
        places = frozenset().union(*merged)
        found.append(_Group(places, [each for shape in merged for each in shapes[shape]], counts))
    return found


def _size(analysis: Analysis, places: frozenset[int]) -> int:
    return prod(analysis.dimensions[place].size for place in places)


def _merge(
    shapes: Mapping[frozenset[int], list[_Asked]], analysis: Analysis, counts: Counts
) -> list[list[frozenset[int]]]:
    if len(shapes) == 1 or len(shapes) > _MOST_SHAPES:
        return [[shape] for shape in shapes]
    listed = sorted(shapes, key=lambda shape: (len(shape), sorted(shape)))
    members = [{m for each in shapes[shape] for m in each.members} for shape in listed]

    def cost(group: tuple[int, ...], places: frozenset[int]) -> float:
        dimensions = [analysis.dimensions[place] for place in places]
        predicates = set().union(*(members[shape] for shape in group))
        return cost_of_cells(counts, places, dimensions, len(predicates))

    return [[listed[place] for place in each.shapes] for each in merge_shapes(listed, cost)]


def _trees(
    analysis: Analysis, group: _Group, groups: Sequence[_Group], found: Mapping[_Group, int]
) -> list[Tree]:
    root = group.finer or group
    # All that is rolled up from one tree has its cells.
    cluster = [each for each in groups if (each.finer or each) is root]
    members = sorted({m for each in cluster for asked in each.asked for m in asked.members})
    shape = analysis.shape(members)
    queries = tuple(each.query for each in group.asked)
    if not shape.has_keys:
        return [masked(same) for same in by_predicate(queries)]
    here = {member: place for place, member in enumerate(members)}
    numbers = {
        "" if bound is None else bound.key: here[member]
        for each in group.asked
        for bound, member in zip(conditions(each.query), each.members, strict=True)
    }
    first = queries[0]
    return [
        Tree(
            first.axis,
            first.relation,
            first.grouping,
            Cells(shape),
            queries,
            numbers,
            group.number,
            None if group.finer is None else found[group.finer],
        )
    ]
