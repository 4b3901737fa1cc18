"""The fourth step: predicates by the expressions they mention, and who shares their cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, prod

from muntin.expressions import Bound
from muntin.plan.relations import Relation
from muntin.plan.selection import Cells
from muntin.planner.bound import BoundQuery
from muntin.planner.cell_counts import Counts, Guess, Sample, sample_cells
from muntin.planner.continuity import Kept, kept_trees
from muntin.planner.draft import Draft
from muntin.planner.strategies import (
    Tree,
    by_predicate,
    commutes,
    conditions,
    fragments,
    group_by,
    masked,
    shards,
    slices,
    unshared,
)
from muntin.predicates import Analysis, Ranked, merge_shapes

# What the papers' strategies share instead of cells.
_RULES = {"unshared": unshared, "slices": slices, "fragments": fragments, "shards": shards}
# Among so many shapes every pair is weighed; beyond, each stands alone.
_MOST_SHAPES = 64


def cells(draft: Draft) -> Draft:
    """The sets of partials, each with cells for predicates over the same expressions.

    Queries that run already stay in the tree they are in, because what it has kept can be read by
    its own dimensions only. A sample of rows tells which expressions are worth sharing cells.

    >>> import pyarrow as pa
    >>> from muntin.plan import Timeline
    >>> from muntin.planner.steps.bind import bind
    >>> from muntin.planner.steps.share import share
    >>> from muntin.planner.steps.weigh import weigh
    >>> from muntin.queries import queries
    >>> schema = pa.schema({"ts": pa.int64(), "v": pa.int64(), "w": pa.int64()})
    >>> sql = "; ".join(
    ...     f"SELECT sum(v) FROM s [RANGE 9 SLIDE 3] WHERE {each}" for each in ("v > 5", "v > 7"))
    >>> draft = share(weigh(bind(Draft(queries(sql), schema, Timeline.of(schema, "ts")))))
    >>> (tree,) = cells(draft).trees
    >>> tree.members, [each.bound.key for each in tree.selection.shape.dimensions]
    ({'v > 5': 0, 'v > 7': 1}, ['v'])
    """
    if draft.strategy != "cells":
        return replace(draft, trees=tuple(_RULES[draft.strategy](draft.bound)))
    kept = kept_trees(draft.bound, draft.previous, draft.watermark)
    trees: list[Tree] = []
    for alike in group_by(draft.bound, lambda each: (each.axis, each.relation, commutes(each))):
        if not commutes(alike[0]):
            for grouped in group_by(alike, lambda each: each.grouping):
                trees.extend(masked(same) for same in by_predicate(grouped))
            continue
        trees.extend(_share(draft, alike, kept, len(trees)))
    return replace(draft, trees=tuple(trees))


def undecided(draft: Draft) -> list[Relation]:
    """The relations of a draft with bound queries whose rows tell what is worth sharing."""
    if draft.strategy != "cells":
        return []
    found: dict[Relation, None] = {}
    for alike in group_by(draft.bound, lambda each: (each.axis[:2], each.relation)):
        shared = [query for query in alike if commutes(query)]
        relation = alike[0].relation
        if shared and relation not in found and _is_choice(_asked(draft, shared)[1]):
            found[relation] = None
    return list(found)


def _share(
    draft: Draft, queries: Sequence[BoundQuery], kept: Mapping[str, Kept], before: int
) -> list[Tree]:
    analysis, asked = _asked(draft, queries)
    by_grouping: dict[tuple[Bound, ...], list[Asked]] = {}
    for each in asked:
        by_grouping.setdefault(each.query.grouping, []).append(each)
    groups: list[Group] = []
    for alike in by_grouping.values():
        counts: Counts = Guess(analysis.dimensions)
        if _is_choice(asked):
            counts = _counts(draft, alike[0].query, analysis.dimensions)
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


def _asked(draft: Draft, queries: Sequence[BoundQuery]) -> tuple[Analysis, list[Asked]]:
    """What queries over one relation ask."""
    each_asked = [conditions(query) for query in queries]
    bounds = [bound for asked in each_asked for bound in asked]
    analysis = draft.analysis(queries[0].relation, bounds)
    numbers = iter(analysis.index)
    found = []
    for query, wanted in zip(queries, each_asked, strict=True):
        members = tuple(next(numbers) for _ in wanted)
        found.append(Asked(query, members, _places(analysis, members)))
    return analysis, found


def _is_choice(asked: Sequence[Asked]) -> bool:
    """Whether rows have a say: they need not be read where there is nothing to choose."""
    return len({(each.query.grouping, each.places) for each in asked}) > 1


def _counts(draft: Draft, query: BoundQuery, dimensions: Sequence[Ranked]) -> Counts:
    """How many entries the rows of queries like one fall into."""
    rows = draft.sample.get(query.relation)
    if rows is None:
        return Guess(dimensions)
    return sample_cells(rows, draft.slicings[query.axis], query.grouping, dimensions)


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


@dataclass(frozen=True)
class Asked:
    """What one query asks: its conditions, as predicates, and all dimensions they depend on."""

    query: BoundQuery
    members: tuple[int, ...]
    places: frozenset[int]


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


# In units of one update of a cell by a row, as measured on the compiled kernels.
_ENTRY = 8.0  # to store, sort and merge an entry
_CHECK = 0.4  # to ask one predicate about one entry, and to add it where it holds
_STEP = 0.3  # to find where a range of ranks begins among the entries of a block
_DIGIT = 0.3  # to read one more rank into a row's key
_ROLL_UP = 4.0  # to roll up an entry into one of a coarser grouping
MOST_CELLS = 1 << 62


def rolls_up(finer: Counts, places: frozenset[int]) -> bool:
    """Whether a coarser grouping is cheaper rolled up from entries than fed with the rows.

    That takes a sample: without one nothing is known about the number of groups.
    """
    return isinstance(finer, Sample) and _ROLL_UP * finer.cells(places) < finer.rows


def cost_of_cells(
    counts: Counts, places: frozenset[int], dimensions: Sequence[Ranked], predicates: int
) -> float:
    """Updates by rows, keeping the entries, and the cheaper way to roll them up by predicate."""
    if prod(each.size for each in dimensions) > MOST_CELLS:
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
