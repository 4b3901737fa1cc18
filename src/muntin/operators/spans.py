"""Values shown by who has them, each time once it is over: DISTINCT, EXCEPT and INTERSECT.

`Counts` says when a value appears and when it disappears. Where nobody asks before it has ended,
that can be read off what is kept of both inputs, which never changes: on Spark it lies in files
that are written once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.operators.distinct import merged
from muntin.operators.rows import (
    ALWAYS,
    NEVER,
    NONE,
    Changes,
    Columns,
    Route,
    Rows,
    concat_columns,
    take,
)
from muntin.operators.state import keys
from muntin.operators.state.live_rows import (
    LiveRows,
    by_end,
    ending,
    matches_in,
    united,
)
from muntin.operators.state.pending import Pending
from muntin.operators.state.radix_sort import order_of
from muntin.operators.state.segments import Segment, begins_of
from muntin.plan.operators import Difference, Distinct

# When a value is shown: while the left holds it and the right anything, nothing, or it too.
_KINDS = {"distinct": 0, "except": 1, "intersect": 2}


class Spans:
    """Values for as long as a condition on who holds them holds, each time once that has ended.

    Of the left rows of a value, the one that lasts longest is kept, with the instant since which
    the value was shown when it came; NEVER, if it was not. Of the right rows of a value that come
    together, what they cover is kept for as long again as left rows live. So what ends can be cut
    out of the lives that are kept, for the values that a batch touches.

    Args:
        node: What is asked. Rows of its inputs have ends of their own, and keep to them.
        lifetimes: The longest that rows live, of each input.
    """

    STATE = ("_pending", "_sides", "_next", "_reached", "_exact")

    def __init__(self, node: Distinct | Difference, lifetimes: Sequence[int]) -> None:
        kind = node.kind if isinstance(node, Difference) else "distinct"
        self._types = [field.type for field in node.schema]
        keys.check_keys(self._types, kind.upper())
        if isinstance(node, Difference):
            keys.check_alike(self._types, [field.type for field in node.right.schema])
        self._none = Rows.none(node.schema)
        self._kind = _KINDS[kind]
        self._longest = lifetimes[0]
        self._pending = [Pending() for _ in lifetimes]
        self._sides = [LiveRows(sum(lifetimes[: i + 1])) for i in range(len(lifetimes))]
        self._next = 0
        self._reached = ALWAYS
        # Whether equal hashes prove equal values.
        self._exact = True

    @property
    def kept(self) -> int:
        """How many rows are kept."""
        return sum(map(len, self._sides)) + sum(map(len, self._pending))

    def step(self, inputs: Sequence[Changes], bounds: Sequence[int]) -> Changes:
        """What has ended below the watermark."""
        watermark = min(bounds)
        fresh = [
            self._segment(pending.release(changes, watermark).born)
            for pending, changes in zip(self._pending, inputs, strict=True)
        ]
        if watermark <= self._reached:
            return Changes.births(self._none)
        if len(fresh) > 1:
            fresh[1] = self._united(fresh[1])
        held = [
            [each for each in (*side.all(), own) if len(each)]
            for side, own in zip(self._sides, fresh, strict=True)
        ]
        shown, lasting = self._none, by_end(NONE, self._none)
        hashes = self._touched(held, fresh, watermark)
        if hashes.size:
            shown, lasting = self._shown([*held, []][:2], hashes, watermark)
        self._reached = watermark
        # What ends at the watermark is over once it is passed.
        self._sides[0].keep(lasting, watermark - 1)
        for side, own in zip(self._sides[1:], fresh[1:], strict=True):
            side.keep(own, watermark - 1 - self._longest)
        return Changes.births(shown)

    def _segment(self, rows: Rows) -> Segment:
        """New rows of one input."""
        columns = tuple(map(keys.canonical, rows.columns))
        hashes, exact = keys.hash_columns(columns, len(rows))
        self._exact = self._exact and exact
        # Since when a value was shown stands for the id; it is not known of new rows.
        since = np.full(len(rows), ALWAYS)
        return by_end(hashes, Rows(columns, since, rows.start, rows.end))

    def _united(self, fresh: Segment) -> Segment:
        """New right rows, where those of a value overlap or touch as one."""
        if not len(fresh):
            return fresh
        if self._exact:
            # Rows are in order of hashes, then of starts.
            hashes, start, end, places = united(fresh.hashes, fresh.start, fresh.end)
        else:
            rows = fresh.rows
            codes = keys.KeyTable(self._types).codes(rows.columns, len(rows))
            order = np.lexsort((rows.start, codes))
            _, start, end, first = united(codes[order], rows.start[order], rows.end[order])
            places = order[first]
            hashes = fresh.hashes[places]
        return by_end(hashes, Rows(take(fresh.rows.columns, places), start, start, end))

    def _touched(self, held: list[list[Segment]], fresh: list[Segment], watermark: int) -> Ints:
        """The hashes of values that come, or whose time may have ended; each once, in order."""
        after, until = self._reached - 1, watermark if watermark == NEVER else watermark - 1
        found = merged(fresh[0].hashes, _hashes(held[0], ending(held[0], after, until)))
        if self._kind == _KINDS["except"]:
            found = merged(found, fresh[1].hashes)
        if self._kind == _KINDS["intersect"]:
            found = merged(found, _hashes(held[1], ending(held[1], after, until)))
        return found

    def _shown(
        self, held: list[list[Segment]], hashes: Ints, watermark: int
    ) -> tuple[Rows, Segment]:
        """What ended since the last step, and the new left rows that last."""
        left, right = held
        # Far from the ends of what numbers can be, as lives are subtracted from it.
        before = np.full(hashes.size, max(self._reached - 1, ALWAYS // 2))
        until = np.full(hashes.size, watermark)
        lives = matches_in(left, hashes, before, until)
        if not lives.kept.size:
            return self._none, by_end(NONE, self._none)
        route = Route.of(begins_of(left), lives.kept)
        start, end, since = (
            route.ints([getattr(each.rows, name) for each in left])
            for name in ("start", "end", "ids")
        )
        first = np.full(hashes.size, watermark)
        np.minimum.at(first, lives.asking, start)
        covers = matches_in(right, hashes, first, until)
        codes, partners = lives.asking, covers.asking
        if self._exact:
            by_value, _ = order_of(hashes[codes], start)
            by_partner, _ = order_of(hashes[partners], covers.start)
        else:
            columns = _columns(left, lives.kept)
            if covers.kept.size:
                columns = concat_columns([columns, _columns(right, covers.kept)])
            numbers = keys.KeyTable(self._types).codes(columns, codes.size + partners.size)
            codes, partners = numbers[: codes.size], numbers[codes.size :]
            by_value = np.lexsort((start, codes))
            by_partner = np.lexsort((covers.start, partners))
        partners, begins, ends, _ = united(
            partners[by_partner], covers.start[by_partner], covers.end[by_partner]
        )
        # A right row that reaches the watermark goes on: what it was cut to is not its end.
        ends = np.where(ends >= watermark, NEVER, ends)
        given = (codes[by_value], start[by_value], end[by_value], since[by_value])
        found, starts, stops, lasts, told = cut_spans(
            *given, partners, begins, ends, self._reached, watermark, self._kind
        )
        order = np.lexsort((starts, stops))
        ids = np.arange(self._next, self._next + order.size)
        self._next += order.size
        values = _columns(left, lives.kept[by_value[found[order]]])
        shown = Rows(values, ids, starts[order], stops[order])
        chosen = by_value[lasts]
        kept = Rows(_columns(left, lives.kept[chosen]), told, start[chosen], end[chosen])
        return shown, by_end(hashes[lives.asking[chosen]], kept)


def _columns(segments: list[Segment], places: Ints) -> Columns:
    """The values of rows, counted through all segments."""
    route = Route.of(begins_of(segments), places)
    columns = [each.rows.columns for each in segments]
    return tuple(route.column(arrays) for arrays in zip(*columns, strict=True))


def _hashes(segments: list[Segment], places: Ints) -> Ints:
    """The hashes of rows, counted through all segments, in order."""
    if not places.size:
        return NONE
    return np.sort(keys.hash_columns(_columns(segments, places), places.size)[0])


@compiled
def follow(codes: Ints, start: Ints, end: Ints, head: int) -> tuple[int, int]:
    """Where the rows of one value stop that follow each other without a gap, and when they end."""
    stop, last = end[head], head + 1
    while last < codes.size and codes[last] == codes[head] and start[last] <= stop:
        stop = max(stop, end[last])
        last += 1
    return last, stop


@compiled
def cut_spans(
    codes: Ints,
    start: Ints,
    end: Ints,
    since: Ints,
    partners: Ints,
    begins: Ints,
    ends: Ints,
    reached: int,
    watermark: int,
    kind: int,
) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """What is shown and ended since the last step: a left row of the value, from when, to when.

    Then the new left row of each value that lasts longest, if it lasts longer than the old ones,
    and since when the value was shown when it came.
    """
    room = codes.size + partners.size
    found = np.empty((3, room), np.int64)
    lasts = np.empty((2, codes.size), np.int64)
    count = kept = i = low = 0
    while i < codes.size:
        code = codes[i]
        while low < partners.size and partners[low] < code:
            low += 1
        longest, newest, told = ALWAYS, -1, NEVER
        at = low
        while i < codes.size and codes[i] == code:
            # Rows that follow each other without a gap, from the first on.
            head = i
            last, stop = follow(codes, start, end, head)
            while at < partners.size and partners[at] == code and ends[at] <= start[head]:
                at += 1
            # Cut them by what the right covers, and look up new rows on the way.
            now, row = start[head], head
            cover = at
            while now < stop:
                covered = cover < partners.size and partners[cover] == code and begins[cover] <= now
                until = stop
                if covered:
                    until = min(stop, ends[cover])
                elif cover < partners.size and partners[cover] == code:
                    until = min(stop, begins[cover])
                if kind == 0:
                    until = stop
                wanted = kind == 0 or covered == (kind == 2)
                begin = now
                if now == start[head] and since[head] != ALWAYS and since[head] != NEVER:
                    begin = since[head]
                while row < last and start[row] < until:
                    if since[row] == ALWAYS:
                        if end[row] > longest:
                            longest, newest = end[row], row
                            told = begin if wanted else NEVER
                    elif end[row] >= longest:
                        longest, newest = end[row], -1
                    row += 1
                if wanted and reached <= until and (until < watermark or watermark == NEVER):
                    found[0, count], found[1, count], found[2, count] = head, begin, until
                    count += 1
                if covered and kind != 0:
                    cover += 1
                now = until
            i = last
        if newest >= 0 and longest >= watermark:
            lasts[0, kept], lasts[1, kept] = newest, told
            kept += 1
    one, two = found[:, :count].copy(), lasts[:, :kept].copy()
    return one[0], one[1], one[2], two[0], two[1]
