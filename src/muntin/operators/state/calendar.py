"""A calendar queue of ends: partitions of time, of which expiry looks at the current one only.

From section 3.5.2 of the thesis. Partition ``n`` holds the ends from ``n * width + 1`` to
``(n + 1) * width``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muntin._typing import Ints
from muntin.operators.rows import NEVER, NONE

# As many chunks of the current partition as are worth a look each before they are merged.
_CHUNKS = 16


@dataclass
class CalendarChunk:
    """Entries of one partition; sorted by their ends once the partition is current."""

    ends: Ints
    slots: Ints
    ids: Ints
    is_sorted: bool = False

    def sorted(self) -> CalendarChunk:
        """The entries in order of their ends."""
        if self.is_sorted:
            return self
        order = np.argsort(self.ends, kind="stable")
        return CalendarChunk(self.ends[order], self.slots[order], self.ids[order], is_sorted=True)

    def cut(self, begin: int, end: int) -> CalendarChunk:
        """Some of the entries, which are in order."""
        part = slice(begin, end)
        return CalendarChunk(self.ends[part], self.slots[part], self.ids[part], is_sorted=True)


class Calendar:
    """Slots by the time at which they end. What never ends is not entered.

    >>> calendar = Calendar(width=10)
    >>> calendar.add(np.array([60, 51, 75]), np.array([0, 1, 2]), np.array([0, 1, 2]))
    >>> calendar.bounds()
    [(51, 60), (71, 80)]
    >>> ends, slots, _ = calendar.pop(60)
    >>> ends.tolist(), slots.tolist()
    ([51], [1])
    """

    STATE = ("width", "_partitions")

    def __init__(self, width: int) -> None:
        self.width = max(width, 1)
        self._partitions: dict[int, list[CalendarChunk]] = {}

    def bounds(self) -> list[tuple[int, int]]:
        """The first and the last end of each partition that holds some."""
        return [
            (number * self.width + 1, (number + 1) * self.width)
            for number in sorted(self._partitions)
        ]

    def add(self, ends: Ints, slots: Ints, ids: Ints) -> None:
        """Enter slots with their ends."""
        finite = np.flatnonzero(ends < NEVER)
        numbers = (ends[finite] - 1) // self.width
        if not numbers.size:
            return
        order = finite[np.argsort(numbers, kind="stable")]
        distinct, firsts = np.unique(np.sort(numbers), return_index=True)
        bounds = [*firsts.tolist(), order.size]
        for i, number in enumerate(distinct.tolist()):
            mine = order[bounds[i] : bounds[i + 1]]
            chunk = CalendarChunk(ends[mine], slots[mine], ids[mine])
            self._partitions.setdefault(number, []).append(chunk)

    def pop(self, until: int) -> tuple[Ints, Ints, Ints]:
        """Take out the entries that end before ``until``: their ends, slots and ids."""
        current = (until - 1) // self.width
        taken = []
        for number in [number for number in self._partitions if number < current]:
            taken.extend(self._partitions.pop(number))
        chunks = [chunk.sorted() for chunk in self._partitions.pop(current, [])]
        kept = []
        for chunk in chunks:
            cut = int(np.searchsorted(chunk.ends, until))
            taken.append(chunk.cut(0, cut))
            if cut < chunk.ends.size:
                kept.append(chunk.cut(cut, chunk.ends.size))
        if kept:
            self._partitions[current] = kept if len(kept) < _CHUNKS else [_merged(kept).sorted()]
        if not taken:
            return NONE, NONE, NONE
        found = _merged(taken)
        return found.ends, found.slots, found.ids


def _merged(chunks: list[CalendarChunk]) -> CalendarChunk:
    return CalendarChunk(
        np.concatenate([chunk.ends for chunk in chunks]),
        np.concatenate([chunk.slots for chunk in chunks]),
        np.concatenate([chunk.ids for chunk in chunks]),
    )
