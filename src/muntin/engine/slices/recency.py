"""The groups of sealed slices in order of recency: who has entries in a window.

A list with links both ways, so that an entry costs the same however many groups there are.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin._compiled import compiled
from muntin._typing import Ints
from muntin.engine.slices.array_pack import Arrays
from muntin.engine.slices.stretches import int32_at

Int32s = npt.NDArray[np.int32]

_FEW = 256
_NEVER = -(2**62)


class Recency:
    """Slots in order of when they were last sealed: short windows visit no group of long ones."""

    def __init__(self) -> None:
        # Slot s has its neighbours at place s + 1; place 0 is the end of the list, both ways.
        self._links = np.zeros((2, _FEW), np.int32)
        self._last = np.full(_FEW, _NEVER)
        self._stamps = np.zeros(_FEW, np.int32)
        self._counts = np.zeros(2, np.int64)

    @property
    def live(self) -> int:
        """How many slots have an entry."""
        return int(self._counts[0])

    @property
    def nbytes(self) -> int:
        """Bytes of the list."""
        return self._links.nbytes + self._last.nbytes + self._stamps.nbytes

    def arrays(self, slots: int) -> Arrays:
        """The list as arrays."""
        held = min(slots + 1, self._last.size)
        counts = np.array([self.live])
        return {"links": self._links[:, :held], "last": self._last[:held], "counts": counts}

    def restore(self, arrays: Arrays) -> None:
        """Go on from what `arrays` made."""
        self._links, self._last = np.array(arrays["links"]), np.array(arrays["last"])
        self._stamps = np.zeros(self._last.size, np.int32)
        self._counts = np.array([int(arrays["counts"][0]), 0])

    def touch(self, slots: Int32s, starts: Ints, count: int) -> None:
        """Note that entries of these slots were sealed, in this order."""
        if count + 1 > self._last.size:
            size = max(count + 1, self._last.size * 5 // 4)
            links, last = np.zeros((2, size), np.int32), np.full(size, _NEVER)
            links[:, : self._last.size], last[: self._last.size] = self._links, self._last
            self._links, self._last = links, last
            self._stamps = np.zeros(size, np.int32)
            self._counts[1] = 0
        _touch(self._links, self._last, self._counts, slots, starts)

    def expire(self, before: int) -> None:
        """Let go of slots that were last sealed before a tick."""
        _expire(self._links, self._last, self._counts, before)

    def candidates(
        self, lows: Ints, highs: Ints, since: Ints, firsts: Ints, owners: Ints, slots: Int32s
    ) -> tuple[Ints, Ints]:
        """Pairs of window and slot, among them all that hold an entry."""
        room = int(np.minimum(highs - lows, self.live).sum())
        windows, found = np.empty(room, np.int64), np.empty(room, np.int64)
        size = _candidates(
            self._links, self._last, self._stamps, self._counts, lows, highs, since, firsts,
            owners, slots, windows, found,
        )  # fmt: skip
        return windows[:size], found[:size]


@compiled
def _unlink(links: Int32s, at: int) -> None:
    before, after = links[0, at], links[1, at]
    links[1, before], links[0, after] = after, before


@compiled
def _touch(links: Int32s, last: Ints, counts: Ints, slots: Int32s, starts: Ints) -> None:
    for i in range(slots.size):
        at = slots[i] + 1
        if last[at] == _NEVER:
            counts[0] += 1
        else:
            _unlink(links, at)
        newest = links[0, 0]
        links[0, at], links[1, at] = newest, 0
        links[1, newest], links[0, 0] = at, at
        last[at] = starts[i]


@compiled
def _expire(links: Int32s, last: Ints, counts: Ints, before: int) -> None:
    at = links[1, 0]
    while at and last[at] < before:
        after = links[1, at]
        _unlink(links, at)
        last[at] = _NEVER
        counts[0] -= 1
        at = after


@compiled
def _candidates(
    links: Int32s,
    last: Ints,
    stamps: Int32s,
    counts: Ints,
    lows: Ints,
    highs: Ints,
    since: Ints,
    firsts: Ints,
    owners: Ints,
    slots: Int32s,
    windows: Ints,
    found: Ints,
) -> int:
    """List slots by the entries of a window, or by recency where there are fewer of those."""
    size = 0
    for window in range(lows.size):
        if highs[window] - lows[window] <= counts[0]:
            counts[1] += 1
            if counts[1] == 1 << 31:
                # Stamps begin anew before their numbers run out.
                stamps[:] = 0
                counts[1] = 1
            for entry in range(lows[window], highs[window]):
                slot = slots[int32_at(firsts, owners, entry)]
                if stamps[slot + 1] != counts[1]:
                    stamps[slot + 1] = counts[1]
                    windows[size], found[size] = window, slot
                    size += 1
        else:
            at = links[0, 0]
            while at and last[at] >= since[window]:
                windows[size], found[size] = window, at - 1
                size += 1
                at = links[0, at]
    return size
