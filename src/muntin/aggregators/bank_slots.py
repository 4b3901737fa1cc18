"""Slots of a bank: which hold a group, and which are free for the next one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.compiled import compiled
from muntin.errors import DataError

Ints = npt.NDArray[np.int64]
FREE = -1


class Slots:
    """Groups by number, from 0 up; the number of a group that left is given out again.

    `marks` holds FREE, or the last check that met the slot: that is how one pass finds a slot
    that is free, unknown, or given twice.

    >>> slots = Slots(3)
    >>> slots.remove(np.array([1]))
    >>> slots.add(2).tolist(), len(slots)
    ([1, 3], 4)
    """

    def __init__(self, count: int) -> None:
        self.marks: Ints = np.zeros(count, np.int64)
        self._checks = 0
        self._free: Ints = np.zeros(0, np.int64)
        self._all: Ints | None = np.arange(count)

    def __len__(self) -> int:
        return len(self.marks) - len(self._free)

    @property
    def packed(self) -> bool:
        """Whether the slots are 0, 1, 2 and so on without a gap."""
        return len(self._free) == 0

    def all(self) -> Ints:
        """The slots that hold a group, rising."""
        if self._all is None:
            self._all = np.flatnonzero(self.marks != FREE)
        return self._all

    def add(self, count: int) -> Ints:
        """Slots for `count` groups: free ones first, the least first."""
        reused = self._free[:count]
        self._free = self._free[count:]
        self.marks[reused] = 0
        fresh = np.arange(len(self.marks), len(self.marks) + count - len(reused))
        self.marks = np.concatenate([self.marks, np.zeros(len(fresh), np.int64)])
        self._all = None
        return np.concatenate([reused, fresh])

    def remove(self, slots: Ints) -> None:
        """Let groups go."""
        self.check(slots)
        self.marks[slots] = FREE
        self._free = np.flatnonzero(self.marks == FREE)
        self._all = None

    def check(self, slots: Ints) -> None:
        """Refuse a slot that holds no group, or comes twice."""
        self._checks += 1
        bad = _first_bad(self.marks, slots, self._checks)
        if bad == len(slots):
            return
        slot = int(slots[bad])
        if 0 <= slot < len(self.marks) and self.marks[slot] == self._checks:
            raise DataError(f"group {slot} comes twice", hint="advance it once a call")
        raise DataError(f"no group has number {slot}", hint="use the numbers that `add` gave")

    def restore(self, held: Ints) -> None:
        """Take over which of the slots hold a group: FREE, or anything else."""
        self.__init__(len(held))  # type: ignore[misc]
        self.remove(np.flatnonzero(held == FREE))


@compiled
def _first_bad(marks: Ints, slots: Ints, check: int) -> int:
    for i in range(len(slots)):
        slot = slots[i]
        if slot < 0 or slot >= len(marks) or marks[slot] == FREE or marks[slot] == check:
            return i
        marks[slot] = check
    return len(slots)
