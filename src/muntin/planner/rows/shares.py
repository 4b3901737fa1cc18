"""The sides of joins in buckets: a plan for each feed that sides are answered from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from muntin.expressions import Bound
from muntin.expressions.zones import UTC, Zone
from muntin.plan.joined import JoinFinal
from muntin.plan.nodes import SharedPlan
from muntin.plan.operators import RowPlan, StreamSchema, leaves
from muntin.plan.routes import Feed, RoutedPlan, SplitGroup
from muntin.planner.continuity import dated
from muntin.planner.draft import Draft
from muntin.planner.replanner import Moment, Replanner
from muntin.planner.rows.routes import (
    clock_of,
    lasting,
    leaf_keys,
    split_group,
    split_told,
    united,
)
from muntin.planner.techniques import Preferences
from muntin.queries import Query

# With more conditions than these, to judge rows costs more than to send those that nobody wants.
_FEW = 8


@dataclass(frozen=True)
class Known:
    """What is known of a stream between two batches: its watermark and its largest time."""

    watermark: int | None = None
    seen: int | None = None


@dataclass(frozen=True)
class Choices:
    """How plans of sides are made: the zone of expressions, and what was told of techniques."""

    zone: Zone = UTC
    told: Preferences = field(default_factory=Preferences)


def with_sides(
    plan: RoutedPlan,
    previous: RoutedPlan | None = None,
    known: Mapping[str, Known] | None = None,
    choices: Choices | None = None,
) -> RoutedPlan:
    """The plan with the sides of joins that are aggregated without pairs.

    Args:
        plan: The plan without them.
        previous: The plan that the state is of: sides of both keep their slices.
        known: What is known of each stream.
        choices: How plans are made.

    >>> import pyarrow as pa
    >>> from muntin.plan.operators import StreamSchema
    >>> from muntin.plan.timeline import Timeline
    >>> from muntin.planner.rows import routed, row_plan
    >>> from muntin.queries import parse
    >>> schema = pa.schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.float64()})
    >>> stream = StreamSchema(schema, Timeline("ts", pa.int64()))
    >>> sql = "SELECT sum(a.v) FROM s [RANGE 5 SLIDE 1] a JOIN t [RANGE 3] b ON a.k = b.k"
    >>> asked = row_plan([parse(sql)[0].query], {"s": stream, "t": stream})
    >>> made = with_sides(routed(asked))
    >>> sorted(made.sides), sorted(made.spanning)
    (['s by k', 't by k'], ['q1'])
    """
    joined = plan.asked.joined
    groups = {each.name: each for each in plan.groups}
    keys, queries = _asked(joined, groups)
    before = {} if previous is None else previous.sides
    sides: dict[str, SharedPlan] = {}
    feeds = dict(plan.feeds)
    for clock, own in queries.items():
        stream, key = keys[clock]
        at = (known or {}).get(stream, Known())
        made = _plan(plan, stream, own, before.get(clock), at, choices or Choices())
        sides[clock] = made
        each = _feed(plan, clock, stream, key, made, own)
        had = feeds.get(clock)
        feeds[clock] = each if had is None else united(had, each, plan.asked)
    spread = dict(plan.spread)
    spread |= {each.name: _told(each) for each in joined if each.sides}
    spread |= {each.name: plan.spread[each.pairs] for each in joined if each.pairs}
    spanning = [each.name for each in joined if not each.by_key and each.mergeable]
    return replace(
        plan,
        feeds=feeds,
        spread=spread,
        sides=sides,
        spanning=frozenset(spanning),
        groups=tuple(groups.values()),
    )


def meeting_keys(plan: RowPlan) -> dict[str, tuple[str, tuple[Bound, ...]]]:
    """By name, the streams whose rows meet others by a key, and the key."""
    found = {
        clock_of(side.stream, side.spread): (side.stream, side.spread)
        for final in plan.joined
        for side in final.sides
    }
    for final in plan.finals:
        if len(leaves(final.root)) < 2 or any(each.retroactive for each in leaves(final.root)):
            continue
        for leaf, key in zip(leaves(final.root), leaf_keys(final, plan), strict=True):
            if leaf.relation is None and _is_met(key, plan.streams[leaf.stream]):
                found[clock_of(leaf.stream, key)] = leaf.stream, key
    return found


def _is_met(key: tuple[Bound, ...], stream: StreamSchema) -> bool:
    """Whether rows are spread by a key at all, and not by their time alone."""
    return bool(key) and {name for each in key for name in each.columns} != {stream.timeline.column}


def _asked(
    joined: Sequence[JoinFinal], groups: dict[str, SplitGroup]
) -> tuple[dict[str, tuple[str, tuple[Bound, ...]]], dict[str, list[Query]]]:
    """By feed, its stream and its key; the sides that read it. Groups of hot keys are added."""
    keys: dict[str, tuple[str, tuple[Bound, ...]]] = {}
    queries: dict[str, list[Query]] = {}
    for final in joined:
        clocks = [clock_of(side.stream, side.spread) for side in final.sides]
        if final.replicates and final.sides:
            group = _split(final)
            known = groups.get(group.name)
            groups[group.name] = group if known is None else lasting(known, group)
            clocks = list(group.clocks)
        for clock, side in zip(clocks, final.sides, strict=True):
            keys[clock] = side.stream, side.spread
            queries.setdefault(clock, []).append(side.query)
    return keys, queries


def _split(final: JoinFinal) -> SplitGroup:
    """The group of an aggregate without pairs.

    Slices reach back up to a slide beyond a window.
    """
    read = [
        (side.stream, side.spread, side.query.window.range + final.slide) for side in final.sides
    ]
    padded = any(side.optional for side in final.sides)
    return split_group(read, (0,) if padded else tuple(range(len(read))))


def _plan(
    plan: RoutedPlan,
    stream: str,
    queries: list[Query],
    previous: SharedPlan | None,
    known: Known,
    choices: Choices,
) -> SharedPlan:
    """The plan of the sides over one feed."""
    if previous is not None and [final.query for final in previous.finals] == queries:
        return previous
    source = plan.asked.streams[stream]
    draft = Draft((), source.schema, source.timeline, zone=choices.zone, told=choices.told)
    made = Replanner(draft).plan(queries, {}, Moment(previous, known.watermark))
    return dated(made, known.seen)


def _feed(
    plan: RoutedPlan,
    clock: str,
    stream: str,
    key: tuple[Bound, ...],
    made: SharedPlan,
    queries: Sequence[Query],
) -> Feed:
    wanted = list(dict.fromkeys(final.predicate for final in made.finals))
    where = tuple(each for each in wanted if each is not None)
    if len(where) < len(wanted) or len(where) > _FEW:
        where = ()
    sent = {*made.columns(), *(name for bound in key for name in bound.columns)}
    # A condition may read what cells do without, where the rest of it says the same.
    read = {*sent, *(name for bound in where for name in bound.columns)}
    columns, reads = (
        tuple(name for name in plan.asked.streams[stream].schema.names if name in chosen)
        for chosen in (sent, read)
    )
    names = tuple(query.name for query in queries)
    return Feed(clock, stream, clock, key, columns, reads, where, None, names)


def _told(final: JoinFinal) -> tuple[str, ...]:
    """What a join is spread by, as explain says it."""
    keys = zip(*(side.spread for side in final.sides), strict=True)
    told = tuple(" = ".join(dict.fromkeys(bound.key for bound in each)) for each in keys)
    return split_told(told) if final.replicates else told
