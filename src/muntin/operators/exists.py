"""Rows of one input while the other holds a partner, or while it holds none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.operators.rows import NONE, Changes, Columns, Rows, take
from muntin.operators.state import keys
from muntin.operators.state.keys import KeyTable, grown, moved
from muntin.operators.state.members import Ends, Members
from muntin.operators.state.pending import Pending
from muntin.operators.state.row_log import RowLog
from muntin.plan.operators import Exists

# What happens to a key at an instant, in this order.
RIGHT_ENDS, RIGHT_BORN, LEFT_ENDS, LEFT_ENDS_EARLY, LEFT_BORN = range(5)
_ROOM = 1024


class Presence:
    """Left rows shown while a partner is alive; ``negated``, while none is.

    Partners are counted per key, and the left rows of a key are a list: a key whose count turns
    from or to zero shows or hides them all. So a batch costs the rows that come, end, appear and
    disappear. Each time a left row appears it is a row of its own, which ends with the left row
    unless it is hidden before.

    With ``whole``, a left row is given when it has ended, if no partner was alive at any time.

    Where the node has a residual condition, the second input is not its right one but the pairs of
    both that satisfy the condition, each with the id of its left row as its only column.
    """

    STATE = (
        *("_pending", "_left", "_right", "_table", "_log", "_next"),
        *("_cover", "_head", "_after", "_before", "_shown", "_number"),
    )
    # Of the right input only keys are kept.
    HOLDS = 1

    def __init__(
        self,
        node: Exists,
        lifetimes: Sequence[int],
        strict: Sequence[bool],
    ) -> None:
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
        self._pending = [Pending(), Pending()]
        self._left, self._right = (
            Members(lifetime, strict=each) for lifetime, each in zip(lifetimes, strict, strict=True)
        )
        self._table = KeyTable([pa.int64()] if self._by_pairs else types[0])
        self._log = RowLog([field.type for field in node.left.schema])
        self._next = 0
        # By key: partners alive, and the first of its left rows. Key 0 is that of rows with NULL.
        self._cover = np.zeros(1, np.int64)
        self._head = np.full(1, -1)
        # By slot of the left: neighbours in the list, what it is shown as, where its values are.
        self._after = self._before = self._shown = self._number = NONE

    @property
    def kept(self) -> int:
        """How many rows are kept."""
        return len(self._left) + len(self._right) + sum(map(len, self._pending))

    def held(self, place: int) -> list[Rows]:
        """The rows kept of the left input, as they came."""
        assert place == 0
        left = self._left
        slots = np.flatnonzero(left.ids >= 0)
        columns = self._log.take(self._number[slots])
        alive = Rows(columns, left.ids[slots], left.start[slots], left.natural[slots])
        return [alive, *self._pending[0].held()]

    def step(self, inputs: Sequence[Changes], bounds: Sequence[int]) -> Changes:
        """What appears and disappears below the watermark."""
        watermark = min(bounds)
        left, right = (
            pending.release(changes, watermark)
            for pending, changes in zip(self._pending, inputs, strict=True)
        )
        left_codes = self._codes(0, left.born)
        right_codes = self._codes(1, right.born)
        partners = np.flatnonzero(right_codes > 0)
        right = Changes(right.born.take(partners), right.ended, right.at)
        left_slots = self._left.add(left, left_codes)
        right_slots = self._right.add(right, right_codes[partners])
        self._grow()
        self._number[left_slots] = self._log.append(left.born.columns, len(left.born))
        self._shown[left_slots] = -1
        # Nothing that begins at the watermark is alive together with a row that ends there: it is
        # known then to have met nobody.
        left_ends = self._left.ends(left, watermark + self._node.whole)
        right_ends = self._right.ends(right, watermark)
        events = events_of(self._left, self._right, left_slots, right_slots, left_ends, right_ends)
        changes = self._unmatched(*events) if self._node.whole else self._sweep(*events)
        self._forget(left_ends, right_ends, np.unique(events[0]))
        return changes

    def _codes(self, side: int, rows: Rows) -> Ints:
        """The key of each row; 0 where it has a NULL, which equals nothing."""
        columns = self._keys(side, rows)
        codes = np.zeros(len(rows), np.int64)
        held = np.flatnonzero(~keys.has_null(columns, len(rows)))
        codes[held] = 1 + self._table.codes(take(columns, held), held.size)
        return codes

    def _keys(self, side: int, rows: Rows) -> Columns:
        """The columns that partners are found by."""
        if self._by_pairs:
            return rows.columns if side else (pa.array(rows.ids),)
        return tuple(rows.columns[place] for place in self._node.keys[side])

    def _grow(self) -> None:
        if self._table.size + 1 > self._cover.size:
            self._cover = grown(self._cover, self._table.size + 1, 0)
            self._head = grown(self._head, self._table.size + 1, -1)
        if self._left.room > self._after.size:
            self._after, self._before, self._shown, self._number = (
                grown(each, self._left.room, -1)
                for each in (self._after, self._before, self._shown, self._number)
            )

    def _sweep(self, codes: Ints, times: Ints, kinds: Ints, slots: Ints) -> Changes:
        births: list[tuple[Ints, Ints]] = []
        ended: list[tuple[Ints, Ints]] = []
        cursor = np.array([0, -1, 0, self._next], np.int64)
        room = codes.size + _ROOM
        while cursor[0] < codes.size or cursor[1] >= 0:
            born_slot, born_at, gone_id, gone_at = (np.empty(room, np.int64) for _ in range(4))
            born, gone = sweep(
                *(codes, times, kinds, slots, self._left.start, self._node.negated),
                *(self._cover, self._head, self._after, self._before, self._shown),
                *(cursor, born_slot, born_at, gone_id, gone_at),
            )
            births.append((born_slot[:born], born_at[:born]))
            ended.append((gone_id[:gone], gone_at[:gone]))
        slots, starts = _joined(births)
        ids = np.arange(self._next, self._next + slots.size)
        self._next = int(cursor[3])
        columns = self._log.take(self._number[slots])
        rows = Rows(columns, ids, starts, self._left.natural[slots])
        return Changes(rows, *_joined(ended))

    def _unmatched(self, codes: Ints, times: Ints, kinds: Ints, slots: Ints) -> Changes:
        found, ends = sweep_unmatched(
            *(codes, times, kinds, slots),
            *(self._cover, self._head, self._after, self._before, self._shown),
        )
        ids = np.arange(self._next, self._next + found.size)
        self._next += found.size
        columns = self._log.take(self._number[found])
        return Changes.births(Rows(columns, ids, self._left.start[found], ends))

    def _forget(self, left: Ends, right: Ends, touched: Ints) -> None:
        self._log.drop(self._number[left.slots])
        self._left.free(left.slots)
        self._right.free(right.slots)
        touched = touched[touched > 0]
        # With whole, left rows that met a partner are in no list, but their key may go.
        gone = touched[(self._cover[touched] == 0) & (self._head[touched] < 0)]
        self._table.release(gone - 1)
        self._pack()

    def _pack(self) -> None:
        """Take no more room than rows and keys need once a large batch is over."""
        codes = self._table.packed()
        if codes is not None:
            kept = np.r_[0, 1 + codes]
            self._cover, self._head = self._cover[kept], self._head[kept]
            for members in (self._left, self._right):
                members.code = moved(members.code, kept)
        self._right.packed()
        held = self._left.packed()
        if held is not None:
            self._shown, self._number = self._shown[held], self._number[held]
            self._after, self._before, self._head = (
                moved(each, held) for each in (self._after[held], self._before[held], self._head)
            )


def events_of(
    left: Members, right: Members, born: Ints, right_born: Ints, ends: Ends, right_ends: Ends
) -> tuple[Ints, Ints, Ints, Ints]:
    """All that happens, in order of key, time and kind: key, time, kind, slot."""
    parts: list[tuple[Ints, Ints, Ints, Ints]] = [
        _kind(right, right_ends.slots, right_ends.at, RIGHT_ENDS),
        _kind(right, right_born, right.start[right_born], RIGHT_BORN),
        _kind(left, ends.slots[~ends.early], ends.at[~ends.early], LEFT_ENDS),
        _kind(left, ends.slots[ends.early], ends.at[ends.early], LEFT_ENDS_EARLY),
        _kind(left, born, left.start[born], LEFT_BORN),
    ]
    codes, times, kinds, slots = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.lexsort((kinds, times, codes))
    return codes[order], times[order], kinds[order], slots[order]


def _kind(members: Members, slots: Ints, at: Ints, kind: int) -> tuple[Ints, Ints, Ints, Ints]:
    return members.code[slots], at, np.full(slots.size, kind), slots


def _joined(parts: list[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    if not parts:
        return NONE, NONE
    return np.concatenate([each for each, _ in parts]), np.concatenate([each for _, each in parts])


@compiled
def link(code: int, slot: int, head: Ints, after: Ints, before: Ints) -> None:
    """Put a left row first in the list of its key."""
    first = head[code]
    after[slot], before[slot] = first, -1
    if first >= 0:
        before[first] = slot
    head[code] = slot


@compiled
def unlink(code: int, slot: int, head: Ints, after: Ints, before: Ints) -> None:
    """Take a left row out of the list of its key."""
    if before[slot] >= 0:
        after[before[slot]] = after[slot]
    else:
        head[code] = after[slot]
    if after[slot] >= 0:
        before[after[slot]] = before[slot]


@compiled
def sweep(
    codes: Ints,
    times: Ints,
    kinds: Ints,
    slots: Ints,
    start: Ints,
    negated: bool,
    cover: Ints,
    head: Ints,
    after: Ints,
    before: Ints,
    shown: Ints,
    cursor: Ints,
    born_slot: Ints,
    born_at: Ints,
    gone_id: Ints,
    gone_at: Ints,
) -> tuple[int, int]:
    """Apply events, instant by instant, and write what appears and disappears, until out of room.

    ``cursor`` is where it goes on: the next event, the left row that is looked at, whether all
    rows of its key are (or those born at this instant), and the next id. Two rows of room are
    needed for each event.
    """
    i, walk, everyone, next_id = cursor[0], cursor[1], cursor[2], cursor[3]
    born = gone = 0
    while True:
        if walk >= 0:
            code, now = codes[i - 1], times[i - 1]
            wanted = (cover[code] > 0) != negated
            while walk >= 0 and (everyone or start[walk] == now):
                if born == born_slot.size or gone == gone_id.size:
                    cursor[0], cursor[1], cursor[2], cursor[3] = i, walk, everyone, next_id
                    return born, gone
                if wanted and shown[walk] < 0:
                    born_slot[born], born_at[born] = walk, now
                    shown[walk] = next_id
                    next_id += 1
                    born += 1
                elif not wanted and shown[walk] >= 0:
                    gone_id[gone], gone_at[gone] = shown[walk], now
                    shown[walk] = -1
                    gone += 1
                walk = after[walk]
            walk = -1
        if i == codes.size:
            break
        code, now = codes[i], times[i]
        stop = i
        while stop < codes.size and codes[stop] == code and times[stop] == now:
            stop += 1
        if gone + stop - i > gone_id.size:
            break
        was_covered = cover[code] > 0
        while i < stop:
            kind, slot = kinds[i], slots[i]
            if kind == RIGHT_ENDS:
                cover[code] -= 1
            elif kind == RIGHT_BORN:
                cover[code] += 1
            elif kind == LEFT_BORN:
                link(code, slot, head, after, before)
            else:
                unlink(code, slot, head, after, before)
                if kind == LEFT_ENDS_EARLY and shown[slot] >= 0:
                    gone_id[gone], gone_at[gone] = shown[slot], now
                    gone += 1
            i += 1
        everyone = 1 if (cover[code] > 0) != was_covered else 0
        walk = head[code]
    cursor[0], cursor[1], cursor[2], cursor[3] = i, walk, everyone, next_id
    return born, gone


@compiled
def sweep_unmatched(
    codes: Ints,
    times: Ints,
    kinds: Ints,
    slots: Ints,
    cover: Ints,
    head: Ints,
    after: Ints,
    before: Ints,
    met: Ints,
) -> tuple[Ints, Ints]:
    """Apply events, and find the left rows that end without having met a partner."""
    found = np.empty(codes.size, np.int64)
    ends = np.empty(codes.size, np.int64)
    count = i = 0
    while i < codes.size:
        code, now = codes[i], times[i]
        while i < codes.size and codes[i] == code and times[i] == now:
            kind, slot = kinds[i], slots[i]
            if kind == RIGHT_ENDS:
                cover[code] -= 1
            elif kind == RIGHT_BORN:
                cover[code] += 1
            elif kind == LEFT_BORN:
                link(code, slot, head, after, before)
            elif met[slot] < 0:
                unlink(code, slot, head, after, before)
                found[count], ends[count] = slot, now
                count += 1
            i += 1
        # Who has met a partner need not be looked at again.
        while cover[code] > 0 and head[code] >= 0:
            slot = head[code]
            met[slot] = 0
            unlink(code, slot, head, after, before)
    return found[:count].copy(), ends[:count].copy()
