"""The join of inputs whose rows may end before their time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from muntin._compiled import compiled
from muntin._typing import Bools, Ints
from muntin.operators.joins.join import Combined, WindowJoin
from muntin.operators.rows import NEVER, NONE, Changes, Rows
from muntin.operators.state.keys import grown, is_sparse, moved
from muntin.operators.state.members import Ends, Members
from muntin.operators.state.pending import Pending
from muntin.plan.operators import Join

Table = npt.NDArray[np.int64]
# As many rows that have ended are not worth a look at all that are kept.
_MANY = 1024


class StrictJoin(WindowJoin):
    """A join that takes rows in order, below the watermark, and ends combinations early.

    Every combination that is alive is in the list of each of its rows, so that the early end of a
    row costs as much as the combinations that end with it.
    """

    STATE = (
        *WindowJoin.STATE,
        *("_pending", "_members", "_free", "_size", "_heads", "_nexts", "_ids", "_ends", "_uses"),
        "_dead",
    )
    # None: some of its rows wait, or may end early.
    HOLDS = 0

    def __init__(self, node: Join, lifetimes: Sequence[int], *, partners: bool = False) -> None:
        super().__init__(node, lifetimes, partners=partners)
        self._named = True
        count = len(lifetimes)
        self._pending = [Pending() for _ in lifetimes]
        self._members = [Members(lifetime, strict=True) for lifetime in lifetimes]
        self._free = NONE
        self._size = 0
        # Rows of each input that had no end of their own, and have ended.
        self._dead = [0] * count
        # The first combination of each row; of each combination the next of each of its rows,
        # its id, its natural end, and how many of its rows are alive.
        self._heads: Table = np.full((count, 0), -1)
        self._nexts: Table = np.full((count, 0), -1)
        self._ids = self._ends = self._uses = NONE

    @property
    def kept(self) -> int:
        """How many rows and combinations are kept."""
        waiting = sum(map(len, self._pending))
        return super().kept + waiting + int(self._size - self._free.size)

    def step(self, inputs: Sequence[Changes], bounds: Sequence[int]) -> Changes:
        """The combinations that begin, and those that end early, below the watermark."""
        watermark = min(bounds)
        released = [
            pending.release(changes, watermark)
            for pending, changes in zip(self._pending, inputs, strict=True)
        ]
        ends = []
        for members, changes in zip(self._members, released, strict=True):
            members.add(changes, np.zeros(len(changes.born), np.int64))
            ends.append(members.ends(changes, watermark))
        room = max(members.room for members in self._members)
        self._heads = _wider(self._heads, room)
        combined = self.combine([each.born for each in released], [watermark] * len(released))
        ended, at = self._end(ends)
        rows, slots, until = self._alive(combined)
        early = np.flatnonzero(until < rows.end)
        self._enter(rows, slots, until >= watermark)
        for side, each in enumerate(ends):
            self._forget(side, each)
        self._pack()
        return Changes(
            rows, np.concatenate((ended, rows.ids[early])), np.concatenate((at, until[early]))
        )

    def _forget(self, side: int, ends: Ends) -> None:
        """Free rows that ended; those that no expiry drops are dropped once they are the most."""
        members = self._members[side]
        self._dead[side] += int((members.natural[ends.slots] >= NEVER).sum())
        members.free(ends.slots)
        if 2 * self._dead[side] > max(self._sides[side].lasting, _MANY):
            self._sides[side].sift(lambda ids: members.find(ids) >= 0)
            self._dead[side] = 0

    def _pack(self) -> None:
        """Take no more room than rows and combinations need once a large batch is over."""
        for side, members in enumerate(self._members):
            held = members.packed()
            if held is not None:
                self._heads[side, : held.size] = self._heads[side, held]
                self._heads[side, held.size :] = -1
        room = max(members.room for members in self._members)
        if room < self._heads.shape[1]:
            self._heads = self._heads[:, :room].copy()
        if is_sparse(self._ids.size, self._size - self._free.size):
            held = np.flatnonzero(self._uses > 0)
            self._heads = moved(self._heads, held)
            self._nexts = moved(np.ascontiguousarray(self._nexts[:, held]), held)
            self._ids, self._ends, self._uses = (
                each[held] for each in (self._ids, self._ends, self._uses)
            )
            self._size, self._free = held.size, NONE

    def _alive(self, combined: Combined) -> tuple[Rows, Table, Ints]:
        """Combinations of rows that are all alive, the slots of these, and when the first ends."""
        slots = np.array(
            [members.find(ids) for members, ids in zip(self._members, combined.parts, strict=True)]
        )
        until = np.array(
            [members.end[each] for members, each in zip(self._members, slots, strict=True)]
        ).min(axis=0, initial=np.iinfo(np.int64).max)
        held = (slots >= 0).all(axis=0) & (until > combined.rows.start)
        return combined.rows.where(held), slots[:, held], until[held]

    def _enter(self, rows: Rows, slots: Table, lasting: Bools) -> None:
        """Keep combinations that are alive at the watermark."""
        chosen = np.flatnonzero(lasting)
        reused, self._free = self._free[: chosen.size], self._free[chosen.size :]
        new = np.arange(self._size, self._size + chosen.size - reused.size)
        self._size += new.size
        if self._size > self._ids.size:
            self._ids, self._ends, self._uses = (
                grown(each, self._size, -1) for each in (self._ids, self._ends, self._uses)
            )
            self._nexts = _wider(self._nexts, self._ids.size)
        places = np.concatenate((reused, new))
        self._ids[places], self._ends[places] = rows.ids[chosen], rows.end[chosen]
        self._uses[places] = slots.shape[0]
        enter_pairs(places, np.ascontiguousarray(slots[:, chosen]), self._heads, self._nexts)

    def _end(self, ends: Sequence[Ends]) -> tuple[Ints, Ints]:
        """Combinations of earlier batches that end early, and when; dead ones are forgotten."""
        sides = np.repeat(np.arange(len(ends)), [each.slots.size for each in ends])
        slots = np.concatenate([each.slots for each in ends])
        at = np.concatenate([each.at for each in ends])
        early = np.concatenate([each.early for each in ends])
        order = np.argsort(at, kind="stable")
        ended, times, free = end_pairs(
            sides[order],
            slots[order],
            at[order],
            early[order],
            self._heads,
            self._nexts,
            self._ids,
            self._ends,
            self._uses,
        )
        self._free = np.concatenate((self._free, free))
        return ended, times


def _wider(table: Table, width: int) -> Table:
    if table.shape[1] >= width:
        return table
    found = np.full((table.shape[0], width), -1)
    found[:, : table.shape[1]] = table
    return found


@compiled
def enter_pairs(places: Ints, slots: Table, heads: Table, nexts: Table) -> None:
    """Put combinations into the lists of their rows."""
    for i in range(places.size):
        for side in range(slots.shape[0]):
            slot = slots[side, i]
            nexts[side, places[i]] = heads[side, slot]
            heads[side, slot] = places[i]


@compiled
def end_pairs(
    sides: Ints,
    slots: Ints,
    at: Ints,
    early: Bools,
    heads: Table,
    nexts: Table,
    ids: Ints,
    ends: Ints,
    uses: Ints,
) -> tuple[Ints, Ints, Ints]:
    """End the combinations of rows that end, in order of time; forget those without live rows."""
    ended = np.empty(ids.size, np.int64)
    times = np.empty(ids.size, np.int64)
    free = np.empty(ids.size, np.int64)
    gone = freed = 0
    for i in range(sides.size):
        pair = heads[sides[i], slots[i]]
        heads[sides[i], slots[i]] = -1
        while pair >= 0:
            if early[i] and ends[pair] > at[i]:
                ended[gone], times[gone] = ids[pair], at[i]
                ends[pair] = at[i]
                gone += 1
            uses[pair] -= 1
            if uses[pair] == 0:
                free[freed] = pair
                freed += 1
            pair = nexts[sides[i], pair]
    return ended[:gone].copy(), times[:gone].copy(), free[:freed].copy()
