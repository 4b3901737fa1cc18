"""EXCEPT ALL: of a value that two inputs hold m and n times, the m - n youngest left rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.operators.exists import (
    LEFT_BORN,
    LEFT_ENDS_EARLY,
    RIGHT_BORN,
    RIGHT_ENDS,
    events_of,
    link,
    unlink,
)
from muntin.operators.rows import NONE, Changes, Rows
from muntin.operators.state.keys import KeyTable, check_alike, check_keys, grown, moved
from muntin.operators.state.members import Members
from muntin.operators.state.pending import Pending
from muntin.operators.state.row_log import RowLog
from muntin.plan.operators import Difference


class BagDifference:
    """Left rows less as many right rows of equal values; the oldest left rows are hidden.

    The left rows of a value are a list, youngest first, and what is shown is its beginning. Every
    event moves the boundary by one row at most, so that a batch costs what comes, ends, appears
    and disappears. A hidden row that ends takes the place of a shown one, which is hidden for it:
    the thesis forgets this.
    """

    STATE = (
        *("_pending", "_left", "_right", "_table", "_log", "_next"),
        *("_head", "_last", "_counts", "_after", "_before", "_shown", "_number"),
    )

    def __init__(
        self,
        node: Difference,
        lifetimes: Sequence[int],
        strict: Sequence[bool],
    ) -> None:
        types = [field.type for field in node.schema]
        check_keys(types, "EXCEPT ALL")
        check_alike(types, [field.type for field in node.right.schema])
        self._pending = [Pending(), Pending()]
        self._left, self._right = (
            Members(lifetime, strict=each) for lifetime, each in zip(lifetimes, strict, strict=True)
        )
        self._table = KeyTable(types)
        self._log = RowLog(types)
        self._next = 0
        # By value: its youngest left row, the oldest that is shown; how many rows there are left,
        # right, and shown.
        self._head = self._last = NONE
        self._counts = np.zeros((0, 3), np.int64)
        # By slot of the left: neighbours in the list, what it is shown as, where its values are.
        self._after = self._before = self._shown = self._number = NONE

    @property
    def kept(self) -> int:
        """How many rows are kept."""
        return len(self._left) + len(self._right) + sum(map(len, self._pending))

    def step(self, inputs: Sequence[Changes], bounds: Sequence[int]) -> Changes:
        """What appears and disappears below the watermark."""
        watermark = min(bounds)
        left, right = (
            pending.release(changes, watermark)
            for pending, changes in zip(self._pending, inputs, strict=True)
        )
        left_slots = self._left.add(left, self._table.codes(left.born.columns, len(left.born)))
        right_slots = self._right.add(right, self._table.codes(right.born.columns, len(right.born)))
        self._grow()
        self._number[left_slots] = self._log.append(left.born.columns, len(left.born))
        self._shown[left_slots] = -1
        left_ends = self._left.ends(left, watermark)
        right_ends = self._right.ends(right, watermark)
        events = events_of(self._left, self._right, left_slots, right_slots, left_ends, right_ends)
        changes = self._sweep(*events)
        self._log.drop(self._number[left_ends.slots])
        self._left.free(left_ends.slots)
        self._right.free(right_ends.slots)
        touched = np.unique(events[0])
        self._table.release(touched[~self._counts[touched, :2].any(axis=1)])
        self._pack()
        return changes

    def _grow(self) -> None:
        if self._table.size > self._head.size:
            self._head = grown(self._head, self._table.size, -1)
            self._last = grown(self._last, self._table.size, -1)
            counts = np.zeros((self._head.size, 3), np.int64)
            counts[: self._counts.shape[0]] = self._counts
            self._counts = counts
        if self._left.room > self._after.size:
            self._after, self._before, self._shown, self._number = (
                grown(each, self._left.room, -1)
                for each in (self._after, self._before, self._shown, self._number)
            )

    def _pack(self) -> None:
        """Take no more room than rows and values need once a large batch is over."""
        codes = self._table.packed()
        if codes is not None:
            self._head, self._last = self._head[codes], self._last[codes]
            self._counts = self._counts[codes]
            for members in (self._left, self._right):
                members.code = moved(members.code, codes)
        self._right.packed()
        held = self._left.packed()
        if held is not None:
            self._shown, self._number = self._shown[held], self._number[held]
            self._after, self._before, self._head, self._last = (
                moved(each, held)
                for each in (self._after[held], self._before[held], self._head, self._last)
            )

    def _sweep(self, codes: Ints, times: Ints, kinds: Ints, slots: Ints) -> Changes:
        found, starts, ended, at = sweep_difference(
            *(codes, times, kinds, slots, self._left.start, self._next),
            *(self._head, self._last, self._counts, self._after, self._before, self._shown),
        )
        ids = np.arange(self._next, self._next + found.size)
        self._next += found.size
        columns = self._log.take(self._number[found])
        return Changes(Rows(columns, ids, starts, self._left.natural[found]), ended, at)


@compiled
def sweep_difference(
    codes: Ints,
    times: Ints,
    kinds: Ints,
    slots: Ints,
    start: Ints,
    next_id: int,
    head: Ints,
    last: Ints,
    counts: Ints,
    after: Ints,
    before: Ints,
    shown: Ints,
) -> tuple[Ints, Ints, Ints, Ints]:
    """Apply events in order of value, time and kind: left rows that appear, ids that end."""
    found = np.empty((2, 2 * codes.size), np.int64)
    ended = np.empty((2, 2 * codes.size), np.int64)
    born = gone = i = 0
    while i < codes.size:
        code, now = codes[i], times[i]
        while i < codes.size and codes[i] == code and times[i] == now:
            kind, slot = kinds[i], slots[i]
            if kind == RIGHT_ENDS:
                counts[code, 1] -= 1
            elif kind == RIGHT_BORN:
                counts[code, 1] += 1
            elif kind == LEFT_BORN:
                link(code, slot, head, after, before)
                counts[code, 0] += 1
            else:
                if last[code] == slot:
                    last[code] = before[slot]
                unlink(code, slot, head, after, before)
                counts[code, 0] -= 1
                if shown[slot] >= 0:
                    counts[code, 2] -= 1
                    if kind == LEFT_ENDS_EARLY:
                        ended[0, gone], ended[1, gone] = shown[slot], now
                        gone += 1
            i += 1
        added, removed = settle(
            code, now, start, next_id + born, head, last, counts, after, before, shown,
            found[:, born:], ended[:, gone:],
        )  # fmt: skip
        born += added
        gone += removed
    found, ended = found[:, :born].copy(), ended[:, :gone].copy()
    return found[0], found[1], ended[0], ended[1]


@compiled
def settle(
    code: int,
    now: int,
    start: Ints,
    next_id: int,
    head: Ints,
    last: Ints,
    counts: Ints,
    after: Ints,
    before: Ints,
    shown: Ints,
    found: Ints,
    ended: Ints,
) -> tuple[int, int]:
    """Move the boundary between shown and hidden rows of a value to where it belongs."""
    born = gone = 0
    edge = -1
    wanted = max(counts[code, 0] - counts[code, 1], 0)
    # Those born now are the youngest: they are shown first.
    slot = head[code]
    while slot >= 0 and born < wanted and start[slot] == now and shown[slot] < 0:
        found[0, born], found[1, born] = slot, now
        shown[slot] = next_id + born
        born += 1
        edge = slot
        slot = after[slot]
    held = counts[code, 2] + born
    while held > wanted:
        slot = last[code]
        ended[0, gone], ended[1, gone] = shown[slot], now
        shown[slot] = -1
        gone += 1
        held -= 1
        last[code] = before[slot]
    if held == born:
        last[code] = edge
    while held < wanted:
        slot = head[code] if held == 0 else after[last[code]]
        found[0, born], found[1, born] = slot, now
        shown[slot] = next_id + born
        born += 1
        held += 1
        last[code] = slot
    counts[code, 2] = held
    return born, gone
