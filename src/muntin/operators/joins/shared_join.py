"""Joins of the same two streams on the same key: one store of rows for all of them.

They differ in their windows, conditions and columns. A row is kept once, for as long as the longest
window wants it, with a bit for each condition that it satisfies. New rows meet the kept ones once,
for the longest windows; each join then picks its pairs by two bits and the distance in time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from muntin._compiled import compiled
from muntin._typing import Bools, Ints
from muntin.expressions import Bound
from muntin.operators.joins.store_side import StoreSide, conditions
from muntin.operators.rows import (
    NEVER,
    Changes,
    Columns,
    Route,
    Rows,
    concat,
    in_threads,
    take,
)
from muntin.operators.select import Condition
from muntin.operators.state import keys
from muntin.operators.state.segments import Segment, begins_of, lives_within, matches
from muntin.plan.operators import Join, StreamSchema, Windowed

# So many conditions of one stream have a bit each.
MOST_CONDITIONS = 62


@dataclass(frozen=True)
class StoreKey:
    """What joins must have in common to share a store: streams, and the keys of both."""

    streams: tuple[str, str]
    keys: tuple[tuple[Bound, ...], tuple[Bound, ...]]


def store_key(node: Join) -> StoreKey | None:
    """What a join can share with others; None if it is not a join of two windowed streams."""
    if len(node.inputs) != 2:
        return None
    first, second = node.inputs
    if not isinstance(first, Windowed) or not isinstance(second, Windowed):
        return None
    if any(each.relation is not None or each.retroactive for each in (first, second)):
        return None
    return StoreKey(
        (first.stream, second.stream),
        (_key_columns(first, node.keys[0]), _key_columns(second, node.keys[1])),
    )


def _key_columns(leaf: Windowed, places: Sequence[int]) -> tuple[Bound, ...]:
    return tuple(leaf.columns[place].value for place in places)


def has_room(nodes: Sequence[Join]) -> bool:
    """Whether one store has bits for the conditions of all these joins."""
    return all(len(conditions(_leaves(nodes, i))) <= MOST_CONDITIONS for i in range(2))


class JoinStore:
    """The rows of two streams, and the joins that read them.

    Args:
        key: What the joins have in common.
        nodes: The joins.
        streams: The streams by name.
    """

    STATE = ("_sides", "_exact")

    def __init__(
        self, key: StoreKey, nodes: Sequence[Join], streams: Mapping[str, StreamSchema]
    ) -> None:
        types = [[each.type for each in own] for own in key.keys]
        keys.check_keys(types[0], "a join")
        keys.check_alike(*types)
        self.key, self.nodes = key, list(nodes)
        self._sides = [
            StoreSide(_leaves(nodes, i), key.keys[i], streams[key.streams[i]]) for i in range(2)
        ]
        self.threads = 1
        self._exact = True
        self._found: dict[Join, Changes] = {}

    def arrange(self, nodes: Sequence[Join]) -> None:
        """Go on with other joins; those that stay are not changed by it."""
        if list(nodes) != self.nodes:
            self.nodes = list(nodes)
            for i, side in enumerate(self._sides):
                side.arrange(_leaves(nodes, i))

    @property
    def rows_kept(self) -> int:
        """How many rows are kept."""
        return sum(len(side.kept) for side in self._sides)

    def errors(self, node: Join) -> int:
        """How often expressions of a join's leaves failed."""
        return sum(side.errors(leaf) for side, leaf in zip(self._sides, _two(node), strict=True))

    def run(self, batches: Mapping[str, pa.Table], bounds: tuple[int, int]) -> None:
        """Take in new rows of both streams, and find the pairs of every join.

        Args:
            batches: New rows by stream.
            bounds: The least start of rows that each of the two streams may still give.
        """
        fresh = []
        for side, stream in zip(self._sides, self.key.streams, strict=True):
            segment, exact = side.read(batches.get(stream))
            self._exact = self._exact and exact
            fresh.append(segment)
        # New rows of the first meet kept ones; those of the second new ones of the first as well.
        kept = [side.kept.all() for side in self._sides]
        first = self._pairs([fresh[0]], kept[1], asks=0) if len(fresh[0]) else None
        met = [*kept[0], *([fresh[0]] if len(fresh[0]) else [])]
        second = self._pairs(met, [fresh[1]], asks=1) if len(fresh[1]) else None
        found = [each for each in (first, second) if each is not None]
        self._found = {node: self._rows(node, found) for node in self.nodes}
        for side, segment, others in zip(self._sides, fresh, reversed(bounds), strict=True):
            if len(segment):
                side.kept.add(segment, others)
            side.kept.evict(others)

    def held(self, leaf: Windowed, place: int) -> list[Rows]:
        """The rows of one stream that are kept and that a leaf of one of the joins takes."""
        return self._sides[place].held(leaf)

    def changes(self, node: Join) -> Changes:
        """What the last batch gave to a join, told once."""
        return self._found.pop(node)

    def _pairs(
        self, left: Sequence[Segment], right: Sequence[Segment], *, asks: int
    ) -> _Pairs | None:
        """Pairs that are alive together by the longest windows and satisfy some condition each."""
        sides = [list(left), list(right)]
        [asking] = sides[asks]
        others = sides[1 - asks] = [
            each for each in sides[1 - asks] if lives_within(each, asking.first, asking.last)
        ]
        if not others:
            return None
        rows = asking.hashes, asking.start, asking.end
        found = [matches(each, *rows, self.threads) for each in others]
        begins = begins_of(others)
        asked = np.concatenate([each.asking for each in found])
        met = np.concatenate([each.kept + begins[i] for i, each in enumerate(found)])
        if not asked.size:
            return None
        places = (asked, met) if asks == 0 else (met, asked)
        routes = [
            Route.of(begins_of(segments), at) for segments, at in zip(sides, places, strict=True)
        ]
        tasks = [
            (route, arrays)
            for route, segments in zip(routes, sides, strict=True)
            for arrays in zip(*(each.rows.columns for each in segments), strict=True)
        ]
        taken = tuple(in_threads(self.threads, Route.column, tasks, asked.size))
        width = len(self._sides[0].columns) + 1
        starts = [
            route.ints([each.start for each in own])
            for route, own in zip(routes, sides, strict=True)
        ]
        pairs = _Pairs(taken[:width], taken[width:], *starts)
        return pairs if self._exact else pairs.where(self._equal(pairs))

    def _equal(self, pairs: _Pairs) -> Bools:
        width = len(self.key.keys[0])
        return keys.equal_rows(pairs.left[:width], pairs.right[:width], pairs.left_start.size)

    def _rows(self, node: Join, found: Sequence[_Pairs]) -> Changes:
        """The rows of one join among the pairs of all."""
        left, right = _two(node)
        both = list(zip(self._sides, (left, right), strict=True))
        bits = [side.wheres.index(leaf.where) for side, leaf in both]
        ranges = [NEVER if leaf.range is None else leaf.range for leaf in (left, right)]
        parts = [Rows.none(node.schema)]
        for pairs in found:
            chosen, start, end = choose(
                *(pairs.masks(0), pairs.masks(1), pairs.left_start, pairs.right_start),
                *(bits[0], bits[1], ranges[0], ranges[1]),
            )
            columns = tuple(
                held[side.columns.index(each.value)]
                for (side, leaf), held in zip(both, (pairs.left, pairs.right), strict=True)
                for each in leaf.columns
            )
            if chosen.size < pairs.left_start.size:
                columns = take(columns, chosen)
            parts.append(Rows(columns, start, start, end))
        return Changes.births(concat(parts))


@dataclass(frozen=True)
class _Pairs:
    """Pairs by the columns and starts of their two rows; the last column of each holds bits."""

    left: Columns
    right: Columns
    left_start: Ints
    right_start: Ints

    def masks(self, side: int) -> Ints:
        """The bits of one row of each pair."""
        return np.array((self.left, self.right)[side][-1])

    def where(self, mask: Bools) -> _Pairs:
        """The pairs that a mask names."""
        if mask.all():
            return self
        places = np.flatnonzero(mask)
        starts = self.left_start[places], self.right_start[places]
        return _Pairs(take(self.left, places), take(self.right, places), *starts)


class SharedJoin:
    """One of the joins that share a store."""

    STATE = ("_next",)
    HOLDS = 2

    def __init__(self, node: Join, store: JoinStore) -> None:
        self._node, self._store = node, store
        self._condition = Condition(node.residual, node.schema)
        self._next = 0

    @property
    def kept(self) -> int:
        """How many rows the store keeps, for all that share it."""
        return self._store.rows_kept

    @property
    def errors(self) -> int:
        """How often an expression of the join or of its leaves failed."""
        return self._store.errors(self._node) + self._condition.errors

    @property
    def store(self) -> JoinStore:
        """The rows of both streams."""
        return self._store

    def held(self, place: int) -> list[Rows]:
        """The rows kept of one input."""
        return self._store.held(_two(self._node)[place], place)

    def step(self, inputs: Sequence[Changes], bounds: Sequence[int]) -> Changes:
        """The pairs that the store has found for this join."""
        del inputs, bounds
        rows = self._store.changes(self._node).born
        rows = rows.where(self._condition(rows))
        ids = np.arange(self._next, self._next + len(rows))
        self._next += len(rows)
        return Changes.births(Rows(rows.columns, ids, rows.start, rows.end))


def _leaves(nodes: Iterable[Join], side: int) -> list[Windowed]:
    return [_two(node)[side] for node in nodes]


def _two(node: Join) -> tuple[Windowed, Windowed]:
    first, second = node.inputs
    assert isinstance(first, Windowed)
    assert isinstance(second, Windowed)
    return first, second


@compiled
def choose(
    left: Ints,
    right: Ints,
    left_start: Ints,
    right_start: Ints,
    left_bit: int,
    right_bit: int,
    left_range: int,
    right_range: int,
) -> tuple[Ints, Ints, Ints]:
    """The pairs whose rows have two bits and live together: their places, starts and ends."""
    chosen = np.empty(left.size, np.int64)
    starts = np.empty(left.size, np.int64)
    ends = np.empty(left.size, np.int64)
    count = 0
    for i in range(left.size):
        if not (left[i] >> left_bit) & (right[i] >> right_bit) & 1:
            continue
        one, other = left_start[i], right_start[i]
        one_end = NEVER if left_range >= NEVER else min(one + left_range, NEVER)
        other_end = NEVER if right_range >= NEVER else min(other + right_range, NEVER)
        if one < other_end and other < one_end:
            chosen[count] = i
            starts[count] = max(one, other)
            ends[count] = min(one_end, other_end)
            count += 1
    return chosen[:count].copy(), starts[:count].copy(), ends[:count].copy()
