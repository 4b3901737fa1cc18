"""From queries and a schema to a shared plan."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from muntin._garbage import uncollected
from muntin.aggregators.choice import Prefer
from muntin.errors import MuntinError, Problem, QueryError, did_you_mean
from muntin.expressions.zones import UTC, Zone
from muntin.plan.nodes import (
    STRATEGIES,
    Accumulator,
    Axis,
    Combined,
    Final,
    Lowering,
    Move,
    Partials,
    SharedPlan,
    Slicing,
    Strategy,
)
from muntin.plan.timeline import Timeline
from muntin.planner.combined import combine
from muntin.planner.continuity import continues, kept_trees, number_trees, since_when
from muntin.planner.owners import Sharer, Sharing, kept_owners, owned, share_all, shared
from muntin.planner.sampling import Guess, Sampler, sample_cells
from muntin.planner.steps.bind import Binding, BoundQuery
from muntin.planner.steps.cells import Counter, cells
from muntin.planner.strategies import Tree, fragments, shards, slices, unshared
from muntin.planner.techniques import Preferences, with_techniques
from muntin.queries import Query
from muntin.windows import EdgeClass, Window, cut_classes, reduce_classes
from muntin.windows.edges import Slicing as SlicingName
from muntin.windows.edges import check_slicing

# So many moves are remembered.
_MOST_MOVES = 8
_RULES = {"unshared": unshared, "slices": slices, "fragments": fragments, "shards": shards}


@dataclass(frozen=True)
class _Options:
    strategy: Strategy
    slicing: SlicingName
    sample: Sampler | None
    previous: SharedPlan | None
    sharer: Sharer
    watermark: int | None
    zone: Zone
    told: Preferences


def build_plan(
    queries: Sequence[Query],
    schema: pa.Schema,
    time: str,
    *,
    strategy: Strategy = "cells",
    slicing: SlicingName = "pairs",
    tables: Mapping[str, pa.Schema] | None = None,
    sample: Sampler | None = None,
    previous: SharedPlan | None = None,
    sharer: Sharer = share_all,
    watermark: int | None = None,
    zone: Zone = UTC,
    technique: str | None = None,
    prefer: Prefer = "throughput",
) -> SharedPlan:
    """Bind queries to a schema and share what they have in common.

    Which queries share a set of partials is the strategy's rule; within it, equal parts of their
    aggregates are kept once. Problems of all queries are reported together.

    Args:
        queries: The queries.
        schema: The columns of the rows.
        time: The column of event times.
        strategy: ``unshared``, ``slices``, ``fragments``, ``shards`` or ``cells``.
        slicing: How windows are cut: ``panes``, ``pairs`` or ``cutty``.
        tables: The columns of the tables that queries may join, by name.
        sample: Gives some joined rows of a relation, to weigh which predicates share their cells.
        previous: The plan of the queries that run already: those that stay keep their slices.
        sharer: Decides which queries are cut together, where the strategy leaves it open
            (``slices``, ``shards`` and ``cells``); all are if not given.
        watermark: The time up to which the windows of queries that run already are answered.
        zone: Where the local times are that expressions ask for; that of the previous plan.
        technique: The final technique of queries that name none themselves; chosen if not given.
        prefer: What a choice goes by: ``throughput`` or ``latency``.

    >>> from muntin.queries import queries
    >>> schema = pa.schema({"ts": pa.timestamp("us"), "v": pa.float64()})
    >>> print(build_plan(queries("SELECT avg(v), sum(v) FROM s [RANGE '1 min' SLIDE '1 min']"),
    ...                  schema, "ts"))
    SharedPlan  1 query → 1 set of partials  nothing to share
    ├─ slices of ts  1 window → 60 edges/h
    └─ partials 1
       ├─ count(*), sum(v), count(v)  serve q1
       └─ final q1  range 1 minute slide 1 minute  gives avg(v), sum(v)
    """
    _check(strategy, slicing)
    if previous is not None and previous.zone != zone:
        raise MuntinError(
            f"the queries run in the time zone {previous.zone.name}, not in {zone.name}",
            hint="plan them from the beginning in another one",
        )
    told = Preferences(technique, prefer)
    timeline = Timeline.of(schema, time)
    options = _Options(strategy, slicing, sample, previous, sharer, watermark, zone, told)
    with uncollected():
        bound = _bound(queries, Binding(schema, timeline, tables, zone))
        sharing = shared(bound, strategy, sharer, previous)
        plan = _share(bound, sharing, schema, timeline, options)
        if sharing.stay is None or previous is None or continues(plan, previous, watermark):
            return plan
        sharing = Sharing(sharing.stay, weighed=sharing.weighed, combined=sharing.combined)
        return _share(bound, sharing, schema, timeline, options)


def _bound(queries: Sequence[Query], binding: Binding) -> list[BoundQuery]:
    """All queries bound, or the problems of all."""
    bound: list[BoundQuery] = []
    problems: list[Problem] = []
    for query in queries:
        try:
            bound.append(binding.bind(query))
        except QueryError as error:
            problems.extend(error.problems)
        except MuntinError as error:
            problems.append(Problem(error.message, error.hint, query.name))
    if problems:
        raise QueryError(problems)
    return bound


def _share(
    queries: Sequence[BoundQuery],
    sharing: Sharing,
    schema: pa.Schema,
    timeline: Timeline,
    options: _Options,
) -> SharedPlan:
    bound = owned(queries, sharing.owners)
    slicings = _share_slices(bound, options)
    trees = _trees(bound, slicings, options)
    places = {key: place for place, key in enumerate(slicings)}
    relations = tuple(dict.fromkeys(query.relation for query in bound))
    partials: list[Partials] = []
    finals: dict[str, Final] = {}
    kept = _accumulators(trees)
    numbers = number_trees(trees, slicings, options.previous)
    for place, ((number, origin), tree) in enumerate(zip(numbers, trees, strict=True)):
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
            since = since_when(node, numbers[tree.twin][0], options.previous)
            node = replace(node, since=since)
        partials.append(node)
        for query in tree.queries:
            finals[query.query.name] = _final(query, place, tree, kept[place])
    listed = tuple(finals[query.query.name] for query in bound)
    nodes, combined = tuple(partials), tuple[Combined, ...]()
    if sharing.combined and options.slicing != "cutty":
        ordered = {final.partials for final in listed if not final.commutative}
        nodes, combined = combine(nodes, tuple(slicings.values()), ordered)
    named, nodes = with_techniques(listed, nodes, tuple(slicings.values()), options.told)
    return SharedPlan(
        schema,
        timeline,
        relations,
        tuple(slicings.values()),
        nodes,
        named,
        options.strategy,
        options.slicing,
        sharing.why,
        sharing.weighed,
        _moves(queries, sharing, options.previous),
        options.zone,
        combined,
        technique=options.told.technique,
        prefer=options.told.prefer,
    )


def _accumulators(trees: Sequence[Tree]) -> list[dict[Accumulator, int]]:
    """What each tree keeps: what its queries need, and those whose entries come from it."""
    kept = [tree.accumulators() for tree in trees]
    for feeders in ([tree.twin for tree in trees], [tree.finer for tree in trees]):
        for feeder, needed in zip(feeders, kept, strict=True):
            if feeder is not None:
                for each in needed:
                    kept[feeder].setdefault(each, len(kept[feeder]))
    return kept


def _moves(
    queries: Sequence[BoundQuery], sharing: Sharing, previous: SharedPlan | None
) -> tuple[Move, ...]:
    """The moves before, as far as they are remembered, and this one if there is one."""
    if previous is None:
        return ()
    before = kept_owners(queries, previous)
    moved = tuple(
        query.query.name
        for query, old, owner in zip(queries, before, sharing.owners, strict=True)
        if old is not None and old != owner
    )
    if not moved:
        return previous.moves
    return (*previous.moves, Move(moved, sharing.why))[-_MOST_MOVES:]


def _trees(
    bound: Sequence[BoundQuery], slicings: dict[Hashable, Slicing], options: _Options
) -> list[Tree]:
    if options.strategy != "cells":
        return _RULES[options.strategy](bound)

    def count(query: BoundQuery) -> Counter:
        if options.sample is None:
            return Guess
        rows = options.sample(query.relation)
        return lambda found: sample_cells(rows, slicings[query.axis], query.grouping, found)

    return cells(bound, count, kept_trees(bound, options.previous, options.watermark))


def _share_slices(bound: Sequence[BoundQuery], options: _Options) -> dict[Hashable, Slicing]:
    """Slicings by axis, cut by every window over it."""
    windows: dict[Axis, dict[Window, None]] = {}
    for query in bound:
        windows.setdefault(query.axis, {})[query.query.window] = None
    return {axis: _slicing(axis, each, options.slicing) for axis, each in windows.items()}


def _slicing(axis: Axis, windows: Iterable[Window], name: SlicingName) -> Slicing:
    listed = tuple(windows)
    classes = cut_classes(listed, name)
    marks: tuple[EdgeClass, ...] = ()
    if name == "cutty":
        # Window ends that no window starts at; reduced together, so that those are left out.
        every = reduce_classes((*classes, *cut_classes(listed, "pairs")))
        marks = tuple(each for each in every if each not in classes)
    return Slicing(*axis[:2], listed, classes, axis[2], marks)


def _final(
    bound: BoundQuery, partials: int, tree: Tree, accumulators: dict[Accumulator, int]
) -> Final:
    lowerings = tuple(
        Lowering(
            call.name,
            call.aggregate,
            call.args,
            call.filter,
            tuple(accumulators[tree.kept(each)] for each in call.accumulators()),
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


def _check(strategy: str, slicing: SlicingName) -> None:
    check_slicing(slicing)
    if strategy not in STRATEGIES:
        raise MuntinError(
            f"there is no strategy {strategy!r}",
            hint=did_you_mean(str(strategy), STRATEGIES) or f"use one of {', '.join(STRATEGIES)}",
        )
