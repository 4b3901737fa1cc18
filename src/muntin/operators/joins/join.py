"""Combinations of rows of several inputs that are alive together and have equal keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from muntin._typing import Ints
from muntin.operators.joins.orders import JoinStream, probe_order
from muntin.operators.rows import (
    NONE,
    Changes,
    Columns,
    Route,
    Rows,
    concat,
    in_threads,
)
from muntin.operators.select import Condition
from muntin.operators.state import keys
from muntin.operators.state.segments import (
    Matches,
    Segment,
    Segments,
    begins_of,
    holds,
    lives_within,
    matches,
)
from muntin.plan.operators import Join


@dataclass(frozen=True)
class Found:
    """Combinations found so far: a place in each input that was met, and their lifetimes.

    Of rows of input ``asks`` that have met no other yet, all are there, and no places.
    """

    asks: int
    places: dict[int, Ints]
    hashes: Ints
    start: Ints
    end: Ints

    def take(self, chosen: Ints) -> Found:
        """Some of the combinations."""
        hashes, start, end = self.hashes[chosen], self.start[chosen], self.end[chosen]
        return Found(self.asks, self.places_of(chosen), hashes, start, end)

    def places_of(self, chosen: Ints) -> dict[int, Ints]:
        """The places of some of the combinations."""
        if not self.places:
            return {self.asks: chosen}
        return {side: each[chosen] for side, each in self.places.items()}


@dataclass(frozen=True)
class Combined:
    """Combinations as rows, and the ids of their parts, input by input."""

    rows: Rows
    parts: tuple[Ints, ...]


class WindowJoin:
    """The join of two to six inputs on one key; rows are met on arrival, in any order.

    With every batch, new rows of input ``i`` meet the rows of the inputs before it with the batch,
    and of those after it without: so every combination is found once, when its last row comes.
    Nothing but input rows is kept. A row is dropped once the other inputs cannot give a row that
    would be alive together with it.

    Args:
        node: The join.
        lifetimes: The longest that rows with an end live, of each input.
        partners: Whether a result has one column only, the id of its row of the first input.
    """

    STATE: tuple[str, ...] = ("_sides", "_next", "_exact")
    # So many of its inputs it keeps as they came.
    HOLDS = 6

    def __init__(self, node: Join, lifetimes: Sequence[int], *, partners: bool = False) -> None:
        types = [
            [node.inputs[i].schema.field(place).type for place in places]
            for i, places in enumerate(node.keys)
        ]
        keys.check_keys(types[0], "a join")
        for each in types[1:]:
            keys.check_alike(types[0], each)
        self._node = node
        self._partners = partners
        self._condition = Condition(node.residual, node.schema)
        self._sides = [Segments(lifetime) for lifetime in lifetimes]
        self._next = 0
        self.threads = 1
        # Whether somebody asks for the ids of parts.
        self._named = partners
        # Whether equal hashes prove equal keys.
        self._exact = True

    @property
    def kept(self) -> int:
        """How many rows are kept."""
        return sum(len(side) for side in self._sides)

    @property
    def errors(self) -> int:
        """How often the residual condition failed."""
        return self._condition.errors

    def held(self, place: int) -> list[Rows]:
        """The rows kept of one input, as they came."""
        return [each.rows for each in self._sides[place].all()]

    def step(self, inputs: Sequence[Changes], bounds: Sequence[int]) -> Changes:
        """The combinations that are complete with new rows of the inputs.

        Args:
            inputs: What is new of each input; no row ends before its time.
            bounds: The least start of rows that each input may still give.
        """
        return Changes.births(self.combine([each.born for each in inputs], bounds).rows)

    def combine(self, fresh: Sequence[Rows], bounds: Sequence[int]) -> Combined:
        """The same, with the ids of the parts of each combination."""
        given = list(enumerate(fresh))
        segments = in_threads(self.threads, self._segment, given, sum(map(len, fresh)))
        found = [self._combined(i, segments) for i, segment in enumerate(segments) if len(segment)]
        for i, segment in enumerate(segments):
            others = min(bound for j, bound in enumerate(bounds) if j != i)
            self._sides[i].keep(segment, others)
        return self._numbered([each for each in found if each is not None])

    def _segment(self, side: int, rows: Rows) -> Segment:
        """New rows of one input in order of their keys; those with a NULL in it meet nothing."""
        rows = rows.where(~keys.has_null(self._keys(side, rows.columns), len(rows)))
        hashes, exact = keys.hash_columns(self._keys(side, rows.columns), len(rows))
        self._exact = self._exact and exact
        if not self._named:
            rows = Rows(rows.columns, rows.start, rows.start, rows.end)
        return Segment.of(hashes, rows)

    def _keys(self, side: int, columns: Columns) -> Columns:
        return tuple(columns[place] for place in self._node.keys[side])

    def _combined(self, side: int, fresh: Sequence[Segment]) -> Combined | None:
        """What new rows of one input give with the rows of all others."""
        segment = fresh[side]
        met = [
            [
                each
                for each in self._sides[j].all() + [fresh[j]] * (j < side)
                if len(each) and lives_within(each, segment.first, segment.last)
            ]
            for j in range(len(fresh))
        ]
        met[side] = [segment]
        others = [j for j in range(len(met)) if j != side]
        found = Found(side, {}, segment.hashes, segment.start, segment.end)
        if len(others) > 1:
            # Nothing is put together for a key that some input does not hold.
            for j in others:
                found = found.take(holds(met[j], found.hashes))
        if not all(met):
            return None
        order = _probe_order(segment, others, met)
        for j in order:
            if not found.start.size:
                return None
            found = _meet(found, j, met[j], is_last=j == order[-1], threads=self.threads)
        return self._confirmed(found, met) if found.start.size else None

    def _confirmed(self, found: Found, met: list[list[Segment]]) -> Combined:
        """Combinations with equal keys that satisfy the residual condition."""
        routes = [Route.of(begins_of(each), found.places[i]) for i, each in enumerate(met)]
        taken = self._taken(routes, met, found.start.size)
        parts: list[Ints] = [
            routes[i].ints([each.rows.ids for each in met[i]])
            for i in range(len(met))
            if self._named
        ]
        rows = Rows(sum(taken, ()), found.start, found.start, found.end)
        mask = self._condition(rows)
        if not self._exact:
            first = self._keys(0, taken[0])
            for side in range(1, len(taken)):
                mask &= keys.equal_rows(first, self._keys(side, taken[side]), len(rows))
        if mask.all():
            return Combined(rows, tuple(parts))
        return Combined(rows.where(mask), tuple(each[mask] for each in parts))

    def _taken(
        self, routes: Sequence[Route], met: Sequence[Sequence[Segment]], count: int
    ) -> list[Columns]:
        """The columns of combinations, input by input."""
        same = self._same_keys()
        sources = [
            [same.get((side, place), (side, place)) for place in range(len(each.schema))]
            for side, each in enumerate(self._node.inputs)
        ]
        wanted = sorted(set().union(*sources))
        tasks = [
            (routes[side], [each.rows.columns[place] for each in met[side]])
            for side, place in wanted
        ]
        columns = in_threads(self.threads, Route.column, tasks, count)
        held = dict(zip(wanted, columns, strict=True))
        return [tuple(held[source] for source in each) for each in sources]

    def _same_keys(self) -> dict[tuple[int, int], tuple[int, int]]:
        """Columns of other inputs, by input and place, that are the key of the first: taken once.

        Floats that are equal may differ in their bits: there is more than one zero and NaN.
        """
        schema, places = self._node.inputs[0].schema, self._node.keys[0]
        if not self._exact or any(pa.types.is_floating(schema.field(at).type) for at in places):
            return {}
        return {
            (side, own): (0, first)
            for side, each in enumerate(self._node.keys)
            for own, first in zip(each, places, strict=True)
        }

    def _numbered(self, found: Sequence[Combined]) -> Combined:
        """All combinations of a step, with ids of their own."""
        none = Combined(Rows.none(self._node.schema), (NONE,) * len(self._sides) * self._named)
        rows = concat([none.rows, *(each.rows for each in found)])
        parts = [
            np.concatenate(each)
            for each in zip(*(each.parts for each in (none, *found)), strict=True)
        ]
        ids = np.arange(self._next, self._next + len(rows))
        self._next += len(rows)
        columns = (pa.array(parts[0]),) if self._partners else rows.columns
        return Combined(Rows(columns, ids, rows.start, rows.end), tuple(parts))


def _probe_order(segment: Segment, others: list[int], met: list[list[Segment]]) -> list[int]:
    """The inputs in the order in which new rows meet them with the fewest comparisons."""
    if len(others) == 1:
        return others
    held = []
    for j in others:
        rows, values = sum(map(len, met[j])), max(each.keys for each in met[j])
        held.append(JoinStream(1, rows, values, values))
    order = probe_order(JoinStream(1, 1, segment.keys), held)
    return [others[place] for place in order]


def _meet(
    found: Found, side: int, segments: list[Segment], *, is_last: bool, threads: int
) -> Found:
    """Combinations with the rows of one more input, in order of their hashes until the last."""
    rows = found.hashes, found.start, found.end
    parts = [matches(segment, *rows, threads) for segment in segments]
    pairs = parts[0]
    if len(parts) > 1:
        begins = begins_of(segments)
        asking = np.concatenate([part.asking for part in parts])
        kept = np.concatenate([part.kept + begins[i] for i, part in enumerate(parts)])
        start = np.concatenate([part.start for part in parts])
        end = np.concatenate([part.end for part in parts])
        pairs = Matches(asking, kept, start, end)
        if not is_last:
            order = np.argsort(asking, kind="stable")
            pairs = Matches(asking[order], kept[order], start[order], end[order])
    places = {**found.places_of(pairs.asking), side: pairs.kept}
    hashes = NONE if is_last else found.hashes[pairs.asking]
    return Found(found.asks, places, hashes, pairs.start, pairs.end)
