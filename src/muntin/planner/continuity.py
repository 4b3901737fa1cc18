"""What stays the same from plan to plan while queries come, go, and change trees.

A query that changes trees leaves nothing behind. Slices are kept by where they start, and rows
of different batches may be cut differently as long as every cut respects the query's windows:
so its partials keep their slices, and rows of the batches that follow are cut by the other tree.
Where queries of one tree go to several, each begins with a copy. Where partials of several trees
are cut together they are twins: rows go into one of them, and its entries to all. A twin is given
up for the one that rows go into when no window of its queries reaches back to before that began.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from muntin.plan.nodes import Axis, Partials, SharedPlan, Slicing
from muntin.plan.relations import Relation
from muntin.plan.selection import Cells, Mask
from muntin.plan.timeline import MAX_TICK
from muntin.planner.bound import BoundQuery
from muntin.planner.strategies import Tree


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


def number_trees(
    trees: Sequence[Tree], slicings: Mapping[Axis, Slicing], previous: SharedPlan | None
) -> list[tuple[int, int | None]]:
    """The number and the origin of each tree's partials: trees that were there go on with theirs.

    Of several trees that go on with the same partials, one in the same slices keeps the number.
    """
    nodes = () if previous is None else previous.partials
    known: dict[Hashable, int] = {}
    owners: dict[int, Hashable] = {}
    for node in nodes:
        assert previous is not None
        slicing = previous.slicings[node.slicing]
        known[_identity(slicing, previous.relations[node.relation], node)] = node.number
        owners[node.number] = slicing.identity
    wanted = [
        tree.number
        if tree.number is not None or isinstance(tree.selection, Cells)
        else known.get(_identity(slicings[tree.slicing], tree.relation, tree))
        for tree in trees
    ]
    keeps: dict[int, int] = {}
    for place, (number, tree) in enumerate(zip(wanted, trees, strict=True)):
        if number is not None and (
            number not in keeps or owners[number] == slicings[tree.slicing].identity
        ):
            keeps[number] = place
    following = max((node.number for node in nodes), default=-1) + 1
    numbers: list[tuple[int, int | None]] = []
    for place, number in enumerate(wanted):
        if number is not None and keeps[number] == place:
            numbers.append((number, None))
        else:
            numbers.append((following, number))
            following += 1
    return numbers


def kept_trees(
    bound: Sequence[BoundQuery], previous: SharedPlan | None, watermark: int | None
) -> dict[str, Kept]:
    """For queries that stay, the tree of cells that they were in, or its twin that takes over."""
    kept: dict[str, Kept] = {}
    if previous is None:
        return kept
    asked = {query.query.name: query for query in bound}
    over = settled(previous, watermark)
    for final in previous.finals:
        node = previous.partials[final.partials]
        query = asked.get(final.name)
        if query is None or query.query != final.query or not isinstance(node.selection, Cells):
            continue
        if node.number in over:
            assert node.twin is not None
            node = previous.partials[node.twin]
        dimensions = frozenset(each.key for each in node.selection.bounds)
        finer = None if node.finer is None else previous.partials[node.finer].number
        moves = previous.slicings[node.slicing].identity != query.axis
        kept[final.name] = Kept(node.number, dimensions, finer, moves or node.twin is not None)
    return kept


def settled(plan: SharedPlan, watermark: int | None) -> frozenset[int]:
    """The numbers of twins that can be given up: no open window reaches back to their beginning.

    One whose queries fill gaps stays: where the last gap began is known to its own bucket only.
    """
    if watermark is None:
        return frozenset()
    found = {node.number for node in plan.partials if node.since is not None}
    for final in plan.finals if found else ():
        node, window = plan.partials[final.partials], final.window
        following = (watermark - window.phase) // window.period + 1
        start = window.phase + following * window.period - window.range
        if final.query.emit_empty or (node.since is not None and start <= node.since):
            found.discard(node.number)
    return frozenset(found)


def since_when(node: Partials, host: int, previous: SharedPlan | None) -> int | None:
    """Since when partials have had their twin, of this number, if they had it before."""
    for before in () if previous is None else previous.partials:
        if before.number == node.number and before.twin is not None:
            assert previous is not None
            return before.since if previous.partials[before.twin].number == host else None
    return None


def continues(plan: SharedPlan, previous: SharedPlan, watermark: int | None) -> bool:
    """Whether every query that stays goes on with the partials it had."""
    over = settled(previous, watermark)
    before = {final.name: final for final in previous.finals}
    for final in plan.finals:
        old = before.get(final.name)
        if old is None or old.query != final.query:
            continue
        node, had = plan.partials[final.partials], previous.partials[old.partials]
        if had.number in over:
            assert had.twin is not None
            had = previous.partials[had.twin]
        if had.number not in (node.number, node.origin):
            return False
        if type(node.selection) is not type(had.selection):
            return False
    return True


def dated(plan: SharedPlan, seen: int | None) -> SharedPlan:
    """The plan as it takes effect after rows up to an event time: what begins, begins there."""
    since = -MAX_TICK - 1 if seen is None else seen
    begin = [node.twin is not None and node.since is None for node in plan.partials]
    if not any(begin) and all(move.at is not None for move in plan.moves):
        return plan
    return replace(
        plan,
        partials=tuple(
            replace(node, since=since) if begins else node
            for node, begins in zip(plan.partials, begin, strict=True)
        ),
        moves=tuple(
            move if move.at is not None else replace(move, at=since) for move in plan.moves
        ),
    )


def _identity(slicing: Slicing, relation: Relation, node: Partials | Tree) -> Hashable:
    """What partials must have in common with a tree for it to go on with them."""
    predicate = node.selection.predicate if isinstance(node.selection, Mask) else None
    kind = type(node.selection).__name__
    return slicing.identity, relation, node.grouping, kind, predicate
