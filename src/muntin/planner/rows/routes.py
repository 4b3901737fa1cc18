"""What the rows of a query are spread over buckets by: columns that all its keys have in common.

Operators bring rows together by keys: a join by its equalities, DISTINCT and EXCEPT by all their
columns. If a column of every leaf is such that all operators above compare these columns with one
another, rows that meet have equal values there, and these values decide on the bucket.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from muntin.errors import Problem, QueryError
from muntin.expressions import Bound
from muntin.expressions.binding.bound import whole_column
from muntin.expressions.tree import Column as ColumnNode
from muntin.plan.operators import (
    Difference,
    Distinct,
    Exists,
    Join,
    Node,
    RowFinal,
    RowPlan,
    Select,
    StreamSchema,
    Union,
    Windowed,
    inputs,
    leaves,
)
from muntin.plan.relations import Relation
from muntin.plan.routes import Feed, RoutedPlan, SplitGroup

# Stands for the time of a leaf's rows: where no operator compares them, any value will do.
_TIME = -1
NO_RELATION = (
    "a retroactive relation runs in this process only: an update would have to find the rows of "
    "all windows again, in every bucket, in the middle of a batch"
)
RELATION_HINT = "use muntin.stream; or pass it in tables=, where an update affects only later rows"
# A key of more columns spreads rows no better.
_ENOUGH = 8


def _refuse_relations(plan: RowPlan) -> None:
    """Refuse retroactive relations, which are kept in this process only."""
    for final in plan.finals:
        for leaf in leaves(final.root):
            if leaf.retroactive:
                raise QueryError([Problem(NO_RELATION, RELATION_HINT, final.name)])


def routed(plan: RowPlan) -> RoutedPlan:
    """The plan over feeds, each a stream spread by a key.

    The sides of joins that are aggregated have their feeds by :func:`with_sides`.
    """
    _refuse_relations(plan)
    feeds: dict[str, Feed] = {}
    groups: dict[str, SplitGroup] = {}
    finals, spread = [], {}
    # Accumulators that cannot be merged are in one bucket, and so are all rows.
    alone = {final.pairs for final in plan.joined if final.pairs and not final.mergeable}
    for final in plan.finals:
        keys, told = _keys(final, plan, alone=final.name in alone)
        met = list(zip(leaves(final.root), keys, strict=True))
        clocks = [clock_of(leaf.stream, key) for leaf, key in met]
        group = None if final.name in alone else _split(final, keys)
        if group is not None:
            known = groups.get(group.name)
            groups[group.name] = group if known is None else lasting(known, group)
            clocks, told = list(group.clocks), split_told(told)
        read = [
            _feed(leaf, key, plan, final.name, clock)
            for clock, (leaf, key) in zip(clocks, met, strict=True)
        ]
        for each in read:
            had = feeds.get(each.name)
            feeds[each.name] = each if had is None else united(had, each, plan)
        root = _reading(final.root, iter([each.clock for each in read]))
        finals.append(replace(final, root=root, written=None, rewritings=()))
        spread[final.name] = told
    streams = {feed.clock: plan.streams[feed.stream] for feed in feeds.values()}
    split = tuple(groups.values())
    return RoutedPlan(plan, RowPlan(streams, tuple(finals)), feeds, spread, groups=split)


def leaf_keys(final: RowFinal, plan: RowPlan) -> list[tuple[Bound, ...]]:
    """What the rows of each leaf of a query are spread by."""
    return _keys(final, plan, alone=False)[0]


def split_told(told: tuple[str, ...]) -> tuple[str, ...]:
    """What a query is spread by whose hot keys may be split."""
    named = " and ".join(told) or "no column"
    return (f"{named}, hot keys split by replicating their smaller side",)


def split_group(
    read: Sequence[tuple[str, tuple[Bound, ...], int]], free: tuple[int, ...]
) -> SplitGroup:
    """Streams whose hot keys may be split.

    Args:
        read: Each stream in the order of FROM, its key, and for how long its rows meet others.
        free: The places of those whose rows may be spread.
    """
    labels = tuple(clock_of(stream, key) for stream, key, _ in read)
    # A stream that has several places is sent once for each: its rows have two ways to go.
    name = " and ".join(labels) + ("" if len(free) == len(read) else ", the first split")
    clocks = tuple(f"{label}, {place} of {name}" for place, label in enumerate(labels, 1))
    streams, ticks = tuple(each[0] for each in read), tuple(each[2] for each in read)
    return SplitGroup(name, clocks, labels, streams, ticks, free)


def lasting(one: SplitGroup, other: SplitGroup) -> SplitGroup:
    """A group of the queries of both, which differ in their windows only."""
    longest = tuple(map(max, zip(one.lasting, other.lasting, strict=True)))
    return replace(one, lasting=longest)


def _split(final: RowFinal, keys: Sequence[tuple[Bound, ...]]) -> SplitGroup | None:
    """The group of a query; None where its keys stay whole."""
    if not final.replicates:
        return None
    read = [
        (leaf.stream, key, leaf.range)
        for leaf, key in zip(leaves(final.root), keys, strict=True)
        if leaf.range is not None
    ]
    if len(read) < len(keys):
        # Rows that never end would have to be sent again when a key turns hot.
        return None
    node = final.root
    while isinstance(node, Select):
        node = node.input
    return split_group(read, tuple(range(len(read))) if isinstance(node, Join) else (0,))


def clock_of(stream: str, key: Sequence[Bound]) -> str:
    """What a stream is called that is spread by a key."""
    named = ", ".join(bound.key for bound in key)
    return f"{stream} by {named}" if key else f"{stream} in one bucket"


@dataclass(frozen=True)
class _Common:
    """A column of every leaf below an operator whose values are equal in rows that meet.

    ``places`` are those of the columns in the leaves, left to right; ``carriers`` the places of
    the operator's own columns that have the value.
    """

    places: tuple[int, ...]
    carriers: frozenset[int]


def _keys(
    final: RowFinal, plan: RowPlan, *, alone: bool
) -> tuple[list[tuple[Bound, ...]], tuple[str, ...]]:
    """The key of each leaf, and what it is called; none if one bucket has all rows."""
    found = [] if alone else _commons(final.root)
    if final.show != "rows":
        # What enters and leaves is netted by all columns.
        found = [each for each in found if each.carriers]
    timed = [each for each in found if _TIME in each.places]
    chosen = timed[:1] or found[:_ENOUGH]
    read = leaves(final.root)
    keys = [
        tuple(_expression(leaf, each.places[i], plan) for each in chosen)
        for i, leaf in enumerate(read)
    ]
    told = tuple(
        " = ".join(dict.fromkeys(key[place].key for key in keys)) for place in range(len(chosen))
    )
    return keys, told


def _expression(leaf: Windowed, place: int, plan: RowPlan) -> Bound:
    if place != _TIME:
        return leaf.columns[place].value
    stream = plan.streams[leaf.stream]
    return whole_column(stream.schema.field(stream.timeline.column))


def _commons(node: Node) -> list[_Common]:
    if isinstance(node, Windowed):
        columns = range(len(node.columns))
        return [_Common((place,), frozenset({place} - {_TIME})) for place in (_TIME, *columns)]
    below = [_commons(each) for each in inputs(node)]
    if isinstance(node, Select):
        return [_Common(each.places, _carried(node, each.carriers)) for each in below[0]]
    if isinstance(node, Distinct):
        return [each for each in below[0] if each.carriers]
    if isinstance(node, Join):
        return _compared(below, node.keys, [len(each.schema) for each in node.inputs])
    if isinstance(node, Exists):
        if node.null_aware and node.negated:
            # A NULL on either side decides about rows with any value.
            return []
        return _compared(below, node.keys, [len(node.left.schema)])
    alike = _alike(below)
    # Rows of a union meet none of another input, unless an operator above compares them.
    return [*alike, _apart(below)] if isinstance(node, Union) and all(below) else alike


def _alike(below: Sequence[list[_Common]]) -> list[_Common]:
    """What inputs have in common that are compared column by column."""
    found = below[0]
    for others in below[1:]:
        found = [
            _Common(one.places + other.places, one.carriers & other.carriers)
            for one in found
            for other in others
            if one.carriers & other.carriers
        ]
    return found


def _apart(below: Sequence[list[_Common]]) -> _Common:
    places = tuple(place for each in below for place in each[0].places)
    return _Common(places, frozenset())


def _carried(node: Select, carriers: frozenset[int]) -> frozenset[int]:
    """The columns of a selection that are those of its input as they are."""
    names = {node.input.schema.names[place] for place in carriers}
    return frozenset(
        place
        for place, each in enumerate(node.columns)
        if isinstance(each.value.root, ColumnNode) and each.value.root.name in names
    )


def _compared(
    below: Sequence[list[_Common]], keys: Sequence[Sequence[int]], widths: Sequence[int]
) -> list[_Common]:
    """What inputs that are compared have in common; ``widths`` are those of the inputs shown."""
    found = []
    for places in zip(*keys, strict=True):
        chosen = [
            next((each for each in commons if place in each.carriers), None)
            for commons, place in zip(below, places, strict=True)
        ]
        held = [each for each in chosen if each is not None]
        if len(held) < len(chosen):
            continue
        carriers, begin = set(), 0
        for each, width in zip(held, widths, strict=False):
            carriers |= {begin + place for place in each.carriers}
            begin += width
        joined = sum((each.places for each in held), ())
        found.append(_Common(joined, frozenset(carriers)))
    return found


def _feed(leaf: Windowed, key: tuple[Bound, ...], plan: RowPlan, query: str, clock: str) -> Feed:
    stream = plan.streams[leaf.stream]
    read = {stream.timeline.column}
    for bound in (*(each.value for each in leaf.columns), *([leaf.where] if leaf.where else [])):
        read |= bound.columns
    for bound in key:
        read |= bound.columns
    own = {*leaf.reads, *(read if leaf.relation is None else {stream.timeline.column})}
    return Feed(
        replace(leaf, stream=clock).feed,
        leaf.stream,
        clock,
        key,
        _ordered(read, leaf.relation or stream),
        _ordered(own, stream),
        () if leaf.where is None else (leaf.where,),
        leaf.relation,
        (query,),
    )


def united(one: Feed, other: Feed, plan: RowPlan) -> Feed:
    """What sends the rows of both; they differ in columns, conditions and queries only."""
    stream = plan.streams[one.stream]
    return replace(
        one,
        columns=_ordered({*one.columns, *other.columns}, one.relation or stream),
        reads=_ordered({*one.reads, *other.reads}, stream),
        where=tuple(dict.fromkeys((*one.where, *other.where))) if one.where and other.where else (),
        queries=tuple(dict.fromkeys((*one.queries, *other.queries))),
    )


def _ordered(names: Collection[str], source: StreamSchema | Relation) -> tuple[str, ...]:
    return tuple(name for name in source.schema.names if name in names)


def _reading(node: Node, names: Iterator[str]) -> Node:
    """The same operators over feeds instead of streams, leaf by leaf."""
    if isinstance(node, Windowed):
        return replace(node, stream=next(names))
    if isinstance(node, Join | Union):
        return replace(node, inputs=tuple(_reading(each, names) for each in node.inputs))
    if isinstance(node, Exists | Difference):
        left = _reading(node.left, names)
        return replace(node, left=left, right=_reading(node.right, names))
    return replace(node, input=_reading(node.input, names))
