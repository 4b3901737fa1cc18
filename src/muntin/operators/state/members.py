"""Rows that are alive, in slots, and when each of them ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muntin._typing import Bools, Ints
from muntin.operators.rows import NONE, Changes
from muntin.operators.state.calendar import Calendar
from muntin.operators.state.int_map import IntMap
from muntin.operators.state.keys import grown, is_sparse


@dataclass(frozen=True)
class Ends:
    """Rows that ended: their slots, when, and whether that was before their time."""

    slots: Ints
    at: Ints
    early: Bools


class Members:
    """The rows of one edge that are alive.

    A calendar queue knows when each row ends by itself; where rows may end earlier (a strict
    edge), an index by id finds their slot at once.

    Args:
        lifetime: The longest that rows with an end live.
        strict: Whether rows may end before their time.
    """

    STATE = ("_calendar", "_index", "_free", "_size", "ids", "start", "natural", "end", "code")

    def __init__(self, lifetime: int, *, strict: bool) -> None:
        self._calendar = Calendar(lifetime // 8)
        self._index = IntMap() if strict else None
        self._free = NONE
        self._size = 0
        self.ids = self.start = self.natural = self.end = self.code = NONE

    def __len__(self) -> int:
        return int(self._size - self._free.size)

    @property
    def room(self) -> int:
        """The number of slots."""
        return int(self.ids.size)

    def add(self, changes: Changes, codes: Ints) -> Ints:
        """Take in rows that are born; their slots."""
        rows = changes.born
        slots = self._slots(len(rows))
        self.ids[slots], self.start[slots] = rows.ids, rows.start
        self.natural[slots] = self.end[slots] = rows.end
        self.code[slots] = codes
        self._calendar.add(rows.end, slots, rows.ids)
        if self._index is not None:
            self._index.put(rows.ids, slots)
        return slots

    def _slots(self, count: int) -> Ints:
        reused, self._free = self._free[:count], self._free[count:]
        new = np.arange(self._size, self._size + count - reused.size)
        self._size += new.size
        if self._size > self.room:
            self.ids, self.start, self.natural, self.end, self.code = (
                grown(each, self._size, -1)
                for each in (self.ids, self.start, self.natural, self.end, self.code)
            )
        return np.concatenate((reused, new))

    def ends(self, changes: Changes, until: int) -> Ends:
        """The rows that end before ``until``, by themselves or early; they keep their slots."""
        early, at = NONE, NONE
        if self._index is not None and changes.ended.size:
            early = self._index.get(changes.ended)
            known = early >= 0
            early, at = early[known], changes.at[known]
            self.end[early] = at
        ends, slots, ids = self._calendar.pop(until)
        # An entry of the calendar counts for nothing if its row ended early.
        held = (self.ids[slots] == ids) & (self.end[slots] == ends)
        slots, ends = slots[held], ends[held]
        return Ends(
            np.concatenate((early, slots)),
            np.concatenate((at, ends)),
            np.arange(early.size + slots.size) < early.size,
        )

    def find(self, ids: Ints) -> Ints:
        """The slots of rows, -1 for those that are not alive."""
        assert self._index is not None
        return self._index.get(ids)

    def free(self, slots: Ints) -> None:
        """Forget rows that ended."""
        if self._index is not None:
            self._index.drop(self.ids[slots])
        self.ids[slots] = -1
        self._free = np.concatenate((self._free, slots))

    def packed(self) -> Ints | None:
        """Move all rows to the first slots, where a large batch has left most others free.

        Only between steps, as it takes for granted that rows that ended are freed.

        Returns:
            The slots that the rows had, in order: the first is now slot 0. None if nobody moved.
        """
        if not is_sparse(self.room, len(self)):
            return None
        held = np.flatnonzero(self.ids >= 0)
        slots, ids, end = np.arange(held.size), self.ids[held], self.end[held]
        self._calendar = Calendar(self._calendar.width)
        self._calendar.add(end, slots, ids)
        if self._index is not None:
            self._index = IntMap()
            self._index.put(ids, slots)
        # One slot more, as rows that are not there are looked up at -1.
        self.ids, self.start, self.natural, self.end, self.code = (
            np.append(each[held], -1)
            for each in (self.ids, self.start, self.natural, self.end, self.code)
        )
        self._size, self._free = held.size, NONE
        return held
