"""The last step: trees become the nodes of a plan, and every window gets its technique."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from muntin.plan.nodes import (
    Accumulator,
    Combined,
    Final,
    Lowering,
    Move,
    Partials,
    SharedPlan,
)
from muntin.plan.relations import Relation
from muntin.planner.bound import BoundQuery
from muntin.planner.combined import combine
from muntin.planner.continuity import number_trees, since_when
from muntin.planner.draft import Draft
from muntin.planner.owners import kept_owners
from muntin.planner.strategies import Tree
from muntin.planner.techniques import with_techniques

# So many moves are remembered.
_MOST_MOVES = 8


def assemble(draft: Draft) -> Draft:
    """The plan: partials that go on with those that run, and a final for each query.

    >>> import pyarrow as pa
    >>> from muntin.plan import Timeline
    >>> from muntin.planner import STEPS
    >>> from muntin.queries import queries
    >>> schema = pa.schema({"ts": pa.int64(), "v": pa.int64()})
    >>> sql = "SELECT avg(v) FROM s [RANGE 9 SLIDE 3]; SELECT sum(v) FROM s [RANGE 6 SLIDE 3]"
    >>> draft = Draft(queries(sql), schema, Timeline.of(schema, "ts"))
    >>> for step in STEPS[:-1]:
    ...     draft = step(draft)
    >>> len(draft.trees), draft.plan is None
    (1, True)
    >>> plan = assemble(draft).plan
    >>> [str(each) for each in plan.partials[0].accumulators]
    ['count(*)', 'sum(v)', 'count(v)']
    >>> [final.lowerings[0].accumulators for final in plan.finals]
    [(1, 2), (1, 2)]
    """
    slicings = tuple(draft.slicings.values())
    relations = tuple(dict.fromkeys(query.relation for query in draft.bound))
    kept = _accumulators(draft.trees)
    partials = _partials(draft, relations, kept)
    finals: dict[str, Final] = {}
    for place, tree in enumerate(draft.trees):
        reads = _reads(tree, kept[place])
        for query in tree.queries:
            finals[query.query.name] = _final(query, place, tree, reads)
    listed = tuple(finals[query.query.name] for query in draft.bound)
    combined: tuple[Combined, ...] = ()
    if draft.sharing.combined and draft.slicing != "cutty":
        ordered = {final.partials for final in listed if not final.commutative}
        partials, combined = combine(partials, slicings, ordered)
    named, nodes = with_techniques(listed, partials, slicings, draft.told)
    plan = SharedPlan(
        draft.schema,
        draft.timeline,
        relations,
        slicings,
        nodes,
        named,
        draft.strategy,
        draft.slicing,
        draft.sharing.why,
        draft.sharing.weighed,
        _moves(draft),
        draft.zone,
        combined,
        technique=draft.told.technique,
        prefer=draft.told.prefer,
        guarantees=draft.told.guarantees,
        spreads=draft.spreads,
    )
    return replace(draft, plan=plan)


def _partials(
    draft: Draft, relations: Sequence[Relation], kept: Sequence[dict[Accumulator, int]]
) -> tuple[Partials, ...]:
    places = {key: place for place, key in enumerate(draft.slicings)}
    numbers = number_trees(draft.trees, draft.slicings, draft.previous)
    partials: list[Partials] = []
    for place, ((number, origin), tree) in enumerate(zip(numbers, draft.trees, strict=True)):
        node = Partials(
            number,
            places[tree.slicing],
            relations.index(tree.relation),
            tree.grouping,
            tree.selection,
            tuple(kept[place]),
            tree.finer,
            origin=origin,
            twin=tree.twin,
        )
        if tree.twin is not None:
            since = since_when(node, numbers[tree.twin][0], draft.previous)
            node = replace(node, since=since)
        partials.append(node)
    return tuple(partials)


def _accumulators(trees: Sequence[Tree]) -> list[dict[Accumulator, int]]:
    """What each tree keeps: what its queries need, and those whose entries come from it."""
    kept = [tree.accumulators() for tree in trees]
    for feeders in ([tree.twin for tree in trees], [tree.finer for tree in trees]):
        for feeder, needed in zip(feeders, kept, strict=True):
            if feeder is not None:
                for each in needed:
                    # Values of groups lie where the groups are.
                    same = each.plain if trees[feeder].grouping else each
                    kept[feeder].setdefault(same, len(kept[feeder]))
    return kept


def _moves(draft: Draft) -> tuple[Move, ...]:
    """The moves before, as far as they are remembered, and this one if there is one."""
    previous, sharing = draft.previous, draft.sharing
    if previous is None:
        return ()
    before = kept_owners(draft.bound, previous)
    moved = tuple(
        query.query.name
        for query, old, owner in zip(draft.bound, before, sharing.owners, strict=True)
        if old is not None and old != owner
    )
    if not moved:
        return previous.moves
    return (*previous.moves, Move(moved, sharing.why))[-_MOST_MOVES:]


def _reads(tree: Tree, accumulators: dict[Accumulator, int]) -> dict[int, tuple[int, ...]]:
    """The accumulators that each call reads, by its identity: many queries have one in common."""
    calls = {id(call): call for query in tree.queries for call in query.calls}
    return {
        place: tuple(accumulators[tree.kept(each)] for each in call.accumulators())
        for place, call in calls.items()
    }


def _final(
    bound: BoundQuery, partials: int, tree: Tree, reads: dict[int, tuple[int, ...]]
) -> Final:
    lowerings = tuple(
        Lowering(
            call.name,
            call.aggregate,
            call.args,
            call.filter,
            reads[id(call)],
            tree.member(bound, call),
        )
        for call in bound.calls
    )
    return Final(
        bound.query,
        bound.predicate,
        bound.grouping,
        partials,
        lowerings,
        bound.outputs,
        bound.having,
        bound.lowered_schema,
        tree.member(bound),
    )
