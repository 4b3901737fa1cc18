"""Rows of one input while the other holds a partner, or none: each time once it is over.

`Presence` says when a row appears and when it disappears. Where nobody asks before it has ended,
all of that can be read off the rows of both inputs, so nothing is kept but them, and they never
change: on Spark they lie in files that are written once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.operators.rows import ALWAYS, NONE, Changes, Columns, Route, Rows, concat_columns, take
from muntin.operators.state import keys
from muntin.operators.state.keys import KeyTable
from muntin.operators.state.live_rows import LiveRows, by_end, ending, matches_in, united
from muntin.operators.state.pending import Pending
from muntin.operators.state.radix_sort import order_of
from muntin.operators.state.segments import Segment, Segments, begins_of
from muntin.plan.operators import Exists

# Which part of a left row's life is given.
_COVERED, _BARE, _WHOLE = range(3)
# Right rows live longest. So many of their segments stand beside each other before they are merged:
# files hold them, and what is merged is written again.
_FAN_OUT = 32


@dataclass(frozen=True)
class _Lives:
    """Left rows that are looked at: where they stand, their keys by number, and their lives."""

    places: Ints
    codes: Ints
    start: Ints
    end: Ints


class Appearances:
    """Left rows while a partner is alive, or while none is, each time once that has ended.

    What ends in a batch is found from two sides: left rows that end by themselves, and keys at
    which partners come (or, if partners are asked for, go). For these keys the lives of all right
    rows are put together, and the left rows cut by them. So a batch costs the rows of the keys it
    touches. A key with very many rows is gone through whenever it is touched, by a few loops.

    Left rows are kept until they end, and right rows for as long again as left rows live: then no
    row is left that they hid or showed. With ``whole``, a left row is given if no partner was alive
    at any time.

    Where the node has a residual condition, the second input is not its right one but the pairs of
    both that satisfy the condition, each with the id of its left row as its only column.

    Args:
        node: What is asked. Rows of its inputs have ends of their own, and keep to them.
        lifetimes: The longest that rows live, of each input.
    """

    STATE = ("_pending", "_sides", "_next", "_reached", "_exact")
    # Of the right input only keys are kept.
    HOLDS = 1

    def __init__(self, node: Exists, lifetimes: Sequence[int]) -> None:
        schemas = (node.left.schema, node.right.schema)
        types = [
            [schema.field(place).type for place in places]
            for schema, places in zip(schemas, node.keys, strict=True)
        ]
        keys.check_keys(types[0], "EXISTS")
        keys.check_alike(*types)
        self._node = node
        # With a residual condition the partners of each left row are its own.
        self._by_pairs = node.residual is not None
        self._types = [pa.int64()] if self._by_pairs else types[0]
        self._part = _WHOLE if node.whole else _BARE if node.negated else _COVERED
        self._longest = lifetimes[0]
        self._pending = [Pending(), Pending()]
        right = LiveRows if self._part == _COVERED else Segments
        # Partitions are as wide as rows stay long.
        self._sides = [LiveRows(lifetimes[0]), right(sum(lifetimes), fan_out=_FAN_OUT)]
        self._next = 0
        self._reached = ALWAYS
        # Whether equal hashes prove equal keys.
        self._exact = True

    @property
    def kept(self) -> int:
        """How many rows are kept."""
        return sum(map(len, self._sides)) + sum(map(len, self._pending))

    def held(self, place: int) -> list[Rows]:
        """The rows kept of the left input, as they came."""
        assert place == 0
        return [each.rows for each in self._sides[0].all()] + self._pending[0].held()

    def step(self, inputs: Sequence[Changes], bounds: Sequence[int]) -> Changes:
        """What has ended at the watermark."""
        watermark = min(bounds)
        fresh = [
            self._segment(side, pending.release(changes, watermark).born)
            for side, (pending, changes) in enumerate(zip(self._pending, inputs, strict=True))
        ]
        held = [
            [each for each in (*side.all(), own) if len(each)]
            for side, own in zip(self._sides, fresh, strict=True)
        ]
        shown = Rows.none(self._node.left.schema)
        if held[0] and watermark > self._reached:
            shown = self._shown(held, fresh[1], watermark)
        self._reached = max(self._reached, watermark)
        self._sides[0].keep(fresh[0], self._reached)
        self._sides[1].keep(fresh[1], self._reached - self._longest)
        return Changes.births(shown)

    def _segment(self, side: int, rows: Rows) -> Segment:
        """New rows of one input; those that can never be shown or be a partner are left out."""
        if side or self._part == _COVERED:
            rows = rows.where(~keys.has_null(self._keys(side, rows), len(rows)))
        held = self._keys(side, rows)
        hashes, exact = keys.hash_columns(held, len(rows))
        self._exact = self._exact and exact
        if side or not self._by_pairs:
            rows = Rows(held if side else rows.columns, rows.start, rows.start, rows.end)
        if side and self._part != _COVERED:
            # Nobody asks which of them end.
            return Segment.of(hashes, rows)
        return by_end(hashes, rows)

    def _keys(self, side: int, rows: Rows) -> Columns:
        """The columns that partners are found by."""
        if self._by_pairs:
            return rows.columns if side else (pa.array(rows.ids),)
        return tuple(rows.columns[place] for place in self._node.keys[side])

    def _shown(self, held: list[list[Segment]], fresh: Segment, watermark: int) -> Rows:
        """What ended since the last step, in order of its ends, then of its starts."""
        left, right = held
        places = ending(left, self._reached, watermark)
        if self._part != _WHOLE and right:
            places = np.concatenate((places, self._turned(held, fresh, watermark)))
        if not places.size:
            return Rows.none(self._node.left.schema)
        route = Route.of(begins_of(left), places)
        start = route.ints([each.rows.start for each in left])
        end = route.ints([each.rows.end for each in left])
        lives, covers = self._covers(held, places, start, end)
        found, starts, ends = self._cut(lives, covers, watermark)
        order = np.lexsort((starts, ends))
        chosen = Route.of(begins_of(left), lives.places[found[order]])
        columns = [each.rows.columns for each in left]
        ids = np.arange(self._next, self._next + order.size)
        self._next += order.size
        taken = tuple(chosen.column(arrays) for arrays in zip(*columns, strict=True))
        return Rows(taken, ids, starts[order], ends[order])

    def _turned(self, held: list[list[Segment]], fresh: Segment, watermark: int) -> Ints:
        """Left rows that go on, and that partners may have hidden since (or left alone)."""
        left, right = held
        hashes = fresh.hashes
        if self._part == _COVERED:
            over = Route.of(begins_of(right), ending(right, self._reached - 1, watermark - 1))
            hashes = np.sort(self._hashes(1, right, over))
        if not hashes.size:
            return NONE
        hashes = hashes[np.r_[True, hashes[1:] != hashes[:-1]]]
        now = np.full(hashes.size, watermark)
        return matches_in(left, hashes, now, now).kept

    def _hashes(self, side: int, segments: list[Segment], route: Route) -> Ints:
        """The hashes of the keys of some rows."""
        columns = self._key_columns(side, segments, route)
        return keys.hash_columns(columns, len(columns[0]) if columns else _size(route))[0]

    def _key_columns(self, side: int, segments: list[Segment], route: Route) -> Columns:
        if not side and self._by_pairs:
            return (pa.array(route.ints([each.rows.ids for each in segments])),)
        columns = [each.rows.columns for each in segments]
        if not side:
            columns = [tuple(each[place] for place in self._node.keys[0]) for each in columns]
        return tuple(route.column(arrays) for arrays in zip(*columns, strict=True))

    def _covers(
        self, held: list[list[Segment]], places: Ints, start: Ints, end: Ints
    ) -> tuple[_Lives, tuple[Ints, Ints, Ints]]:
        """Left rows in order of their keys, and the lives of partners: key, start, end."""
        left, right = held
        columns = self._key_columns(0, left, Route.of(begins_of(left), places))
        hashes, _ = keys.hash_columns(columns, start.size)
        order, hashes = order_of(hashes, start)
        start, end = start[order], end[order]
        heads = np.r_[True, hashes[1:] != hashes[:-1]]
        firsts = np.flatnonzero(heads)
        # Each key is looked up once, whatever the number of its rows.
        found = matches_in(right, hashes[firsts], start[firsts], np.maximum.reduceat(end, firsts))
        if self._exact:
            lives = _Lives(places[order], np.cumsum(heads) - 1, start, end)
            by_key, _ = order_of(hashes[firsts][found.asking], found.start)
            partners = found.asking
        else:
            columns = take(columns, order)
            if found.kept.size:
                theirs = self._key_columns(1, right, Route.of(begins_of(right), found.kept))
                columns = concat_columns([columns, theirs])
            codes = KeyTable(self._types).codes(columns, order.size + found.kept.size)
            own, partners = codes[: order.size], codes[order.size :]
            again = np.argsort(own, kind="stable")
            lives = _Lives(places[order[again]], own[again], start[again], end[again])
            by_key = np.lexsort((found.start, partners))
        return lives, (partners[by_key], found.start[by_key], found.end[by_key])

    def _cut(
        self, lives: _Lives, covers: tuple[Ints, Ints, Ints], watermark: int
    ) -> tuple[Ints, Ints, Ints]:
        """The parts of lives that ended since the last step: whose, from when, to when."""
        partners, begins, ends, _ = united(*covers)
        given = (lives.codes, lives.start, lives.end, partners, begins, ends)
        step = (self._reached, watermark, self._part)
        room = np.empty((3, 0), np.int64)
        found = np.empty((3, cut_lives(*given, *step, room)), np.int64)
        cut_lives(*given, *step, found)
        return found[0], found[1], found[2]


def _size(route: Route) -> int:
    return sum(places.size for _, places in route.parts)


@compiled
def cut_lives(
    codes: Ints,
    start: Ints,
    end: Ints,
    partners: Ints,
    begins: Ints,
    ends: Ints,
    reached: int,
    watermark: int,
    part: int,
    found: Ints,
) -> int:
    """Write the parts of left rows' lives that ended since the last step, or only count them.

    A part that ends with its row is over once the watermark has reached the end: what begins there
    is not alive together with it. One that ends before, when partners come or go, is over once the
    watermark has passed that.
    """
    count = low = 0
    for i in range(codes.size):
        while low < partners.size and partners[low] < codes[i]:
            low += 1
        # Those of one key stand in order of time, and none of them overlap or touch.
        high, stop = low, partners.size
        first, last = start[i], end[i]
        is_due = reached < last <= watermark
        # The first that ends at or after what was reached: all before it was told.
        while high < stop:
            middle = (high + stop) // 2
            if partners[middle] == codes[i] and ends[middle] < (
                first + 1 if part == _WHOLE else max(reached, first)
            ):
                high = middle + 1
            else:
                stop = middle
        at = high
        if part == _WHOLE:
            met = at < partners.size and partners[at] == codes[i] and begins[at] < last
            if is_due and not met:
                if found.size:
                    found[0, count], found[1, count], found[2, count] = i, first, last
                count += 1
            continue
        bare = first
        if part == _BARE and at > low:
            bare = max(first, ends[at - 1])
        while bare < last:
            more = at < partners.size and partners[at] == codes[i] and begins[at] < last
            if part == _BARE:
                begin = bare
                stop_at = begins[at] if more else last
            else:
                if not more:
                    break
                begin = max(first, begins[at])
                stop_at = min(last, ends[at])
            over = is_due if stop_at == last else reached <= stop_at < watermark
            if over and begin < stop_at:
                if found.size:
                    found[0, count], found[1, count], found[2, count] = i, begin, stop_at
                count += 1
            if not more or stop_at >= watermark:
                break
            bare = ends[at]
            at += 1
    return count
