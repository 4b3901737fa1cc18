"""The strategy of cells: predicates by the expressions they mention, merged by cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod

from muntin.plan.bind import BoundQuery
from muntin.plan.sampling import Counts
from muntin.plan.selection import Cells
from muntin.plan.strategies import (
    Tree,
    by_predicate,
    commutes,
    conditions,
    group_by,
    masked,
    rows_of,
)
from muntin.predicates import Analysis, Ranked, analyze, merge_shapes

# In units of one update of a cell by a row, as measured on the compiled kernels.
_ENTRY = 8.0  # to store, sort and merge an entry
_CHECK = 0.4  # to ask one predicate about one entry, and to add it where it holds
_STEP = 0.3  # to find where a range of ranks begins among the entries of a block
_DIGIT = 0.3  # to read one more rank into a row's key
# Among so many shapes every pair is weighed; beyond, each stands alone.
_MOST_SHAPES = 64
_MOST_CELLS = 1 << 62

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
    """The tree of a query that was there before: its number, its dimensions by their keys."""

    number: int
    dimensions: frozenset[str]


@dataclass(frozen=True)
class _Group:
    """Queries whose predicates share the cells of some dimensions."""

    places: frozenset[int]
    asked: list[_Asked]
    number: int | None = None


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
    for alike in group_by(queries, lambda each: (each.axis, rows_of(each))):
        if not commutes(alike[0]):
            trees.extend(masked(same[0].axis, same) for same in by_predicate(alike))
            continue
        trees.extend(_share(alike, count(alike[0]), kept))
    return trees


def _share(queries: Sequence[BoundQuery], count: Counter, kept: Mapping[str, Kept]) -> list[Tree]:
    each_asked = [conditions(query) for query in queries]
    analysis = analyze([bound for asked in each_asked for bound in asked])
    numbers = iter(analysis.index)
    asked = []
    for query, wanted in zip(queries, each_asked, strict=True):
        members = tuple(next(numbers) for _ in wanted)
        asked.append(_Asked(query, members, _places(analysis, members)))
    trees: list[Tree] = []
    for group in _groups(asked, analysis, count, kept):
        trees.extend(_trees(analysis, group))
    return trees


def _places(analysis: Analysis, members: Sequence[int]) -> frozenset[int]:
    return frozenset().union(*(analysis.places(member) for member in members))


def _groups(
    asked: Sequence[_Asked],
    analysis: Analysis,
    count: Counter,
    kept: Mapping[str, Kept],
) -> list[_Group]:
    """Queries that share cells: with those they were with, or as the costs say."""
    numbers = {each.bound.key: place for place, each in enumerate(analysis.dimensions)}
    groups: dict[int, _Group] = {}
    for each in asked:
        if (before := kept.get(each.query.query.name)) is not None:
            places = frozenset(numbers[key] for key in before.dimensions if key in numbers)
            groups.setdefault(before.number, _Group(places, [], before.number)).asked.append(each)
    shapes: dict[frozenset[int], list[_Asked]] = {}
    for each in asked:
        if each.query.query.name not in kept:
            wide = [
                group
                for group in groups.values()
                if each.places <= group.places and _size(analysis, group.places) <= _MOST_CELLS
            ]
            if wide:
                min(wide, key=lambda group: (len(group.places), group.number)).asked.append(each)
            else:
                shapes.setdefault(each.places, []).append(each)
    found = list(groups.values())
    for merged in _merge(shapes, analysis, count):
        places = frozenset().union(*merged)
        found.append(_Group(places, [each for shape in merged for each in shapes[shape]]))
    return found


def _size(analysis: Analysis, places: frozenset[int]) -> int:
    return prod(analysis.dimensions[place].size for place in places)


def _merge(
    shapes: Mapping[frozenset[int], list[_Asked]], analysis: Analysis, count: Counter
) -> list[list[frozenset[int]]]:
    if len(shapes) == 1 or len(shapes) > _MOST_SHAPES:
        return [[shape] for shape in shapes]
    listed = sorted(shapes, key=lambda shape: (len(shape), sorted(shape)))
    counts = count(analysis.dimensions)
    members = [{m for each in shapes[shape] for m in each.members} for shape in listed]

    def cost(group: tuple[int, ...], places: frozenset[int]) -> float:
        dimensions = [analysis.dimensions[place] for place in places]
        predicates = set().union(*(members[shape] for shape in group))
        return _cost(counts, places, dimensions, len(predicates))

    return [[listed[place] for place in each.shapes] for each in merge_shapes(listed, cost)]


def _cost(
    counts: Counts, places: frozenset[int], dimensions: Sequence[Ranked], predicates: int
) -> float:
    """Updates by rows, keeping the entries, and the cheaper way to roll them up by predicate."""
    if prod(each.size for each in dimensions) > _MOST_CELLS:
        return inf
    entries = counts.cells(places)
    updates = counts.rows * (1 + _DIGIT * len(dimensions)) + _ENTRY * entries
    if not dimensions:
        return updates
    widest = max(zip(dimensions, places, strict=True), key=lambda pair: (pair[0].size, pair[1]))
    blocks = counts.cells(places - {widest[1]})
    one_by_one = _CHECK * entries * predicates
    by_ranges = entries + blocks * (_STEP * widest[0].size + predicates)
    return updates + min(one_by_one, by_ranges)


def _trees(analysis: Analysis, group: _Group) -> list[Tree]:
    members = sorted({member for each in group.asked for member in each.members})
    shape = analysis.shape(members)
    queries = tuple(each.query for each in group.asked)
    if not shape.has_keys:
        return [masked(same[0].axis, same) for same in by_predicate(queries)]
    here = {member: place for place, member in enumerate(members)}
    numbers = {
        "" if bound is None else bound.key: here[member]
        for each in group.asked
        for bound, member in zip(conditions(each.query), each.members, strict=True)
    }
    first = queries[0]
    selection = Cells(shape)
    return [
        Tree(first.axis, first.relation, first.grouping, selection, queries, numbers, group.number)
    ]
