"""The strategy of cells: predicates by the expressions they mention, merged by cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from muntin.expressions import Bound
from muntin.plan.bind import BoundQuery
from muntin.plan.cell_costs import MOST_CELLS, cost_of_cells
from muntin.plan.cell_groups import Asked, Group, Kept, pair_twins, roll_up, size
from muntin.plan.sampling import Counts, Guess
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
        asked.append(Asked(query, members, _places(analysis, members)))
    by_grouping: dict[tuple[Bound, ...], list[Asked]] = {}
    for each in asked:
        by_grouping.setdefault(each.query.grouping, []).append(each)
    groups: list[Group] = []
    # Rows tell what is worth sharing; they need not be read where there is nothing to choose.
    is_choice = len({(each.query.grouping, each.places) for each in asked}) > 1
    for alike in by_grouping.values():
        counter = count(alike[0].query) if is_choice else Guess
        counts = counter(analysis.dimensions)
        groups.extend(_groups(alike, analysis, counts, kept))
    roll_up(groups, analysis)
    # What comes from others' entries comes after them.
    groups.sort(key=lambda group: (group.twin is not None, group.finer is not None))
    trees: list[Tree] = []
    found: dict[Group, int] = {}
    for group in groups:
        found[group] = before + len(trees)
        trees.extend(_trees(analysis, group, groups, found))
    return trees


def _places(analysis: Analysis, members: Sequence[int]) -> frozenset[int]:
    return frozenset().union(*(analysis.places(member) for member in members))


def _groups(
    asked: Sequence[Asked],
    analysis: Analysis,
    counts: Counts,
    kept: Mapping[str, Kept],
) -> list[Group]:
    """Queries that share cells: with those they were with, or as the costs say."""
    numbers = {each.bound.key: place for place, each in enumerate(analysis.dimensions)}
    groups: dict[int, Group] = {}
    for each in asked:
        if (before := kept.get(each.query.query.name)) is not None:
            places = frozenset(numbers[key] for key in before.dimensions if key in numbers)
            fresh = Group(places, [], counts, before)
            groups.setdefault(before.number, fresh).asked.append(each)
    pair_twins(list(groups.values()), analysis)
    shapes: dict[frozenset[int], list[Asked]] = {}
    for each in asked:
        if each.query.query.name not in kept:
            wide = [
                group
                for group in groups.values()
                if group.twin is None
                and each.places <= group.places
                and size(analysis, group.places) <= MOST_CELLS
            ]
            if wide:
                narrowest = min(wide, key=lambda group: (len(group.places), group.number))
                narrowest.asked.append(each)
            else:
                shapes.setdefault(each.places, []).append(each)
    found = list(groups.values())
    for merged in _merge(shapes, analysis, counts):
        places = frozenset().union(*merged)
        found.append(Group(places, [each for shape in merged for each in shapes[shape]], counts))
    return found


def _merge(
    shapes: Mapping[frozenset[int], list[Asked]], analysis: Analysis, counts: Counts
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
    analysis: Analysis, group: Group, groups: Sequence[Group], found: Mapping[Group, int]
) -> list[Tree]:
    # All that comes from the entries of one tree has its cells.
    cluster = [each for each in groups if each.root is group.root]
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
            None if group.twin is None else found[group.twin],
        )
    ]
