"""Running totals of sealed entries: any window of an invertible part is one subtraction.

An entry of the log holds what its place had summed up before it. The sum of a place over a window
is what it had at the first entry after the window, less what it had at the first one in it. Sums
are rows of 64-bit lanes that may wrap around: differences stay right while the window's own fit.

From Golab, "Sliding Window Query Processing over Data Streams", 2.3.4.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from muntin.aggregates.additive_column import AdditiveColumn
from muntin.aggregates.count_column import CountColumn
from muntin.aggregates.log_column import LogColumn
from muntin.aggregates.parts import Part
from muntin.aggregates.sum_column import LOAD_LIMIT, SumColumn
from muntin.compiled import compiled
from muntin.engine.slices.places import Chains, Spans
from muntin.engine.slices.segments import Lists, since_place

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Totals:
    """The running totals of one invertible part.

    ``lanes[i]`` is what the place of entry i had before it, ``heads[p]`` what place p has now.
    The first ``width`` lanes are limbs from ``base`` on, the others count special values.
    """

    technique = "running_totals"

    def __init__(self, part: Part) -> None:
        self.part = part
        self.base, self.width, self.specials = 0, 0, 0
        self.lanes = np.zeros((0, 0), np.int64)
        self.heads = np.zeros((0, 0), np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes of all totals."""
        return self.lanes.nbytes + self.heads.nbytes

    def resize(self, entries: int, places: int) -> None:
        """Make room for as many entries and places."""
        self.lanes = _grown(self.lanes, entries)
        if places > len(self.heads):
            self.heads = _grown(self.heads, max(places, len(self.heads) * 9 // 8))

    def shift(self, count: int, size: int) -> None:
        """Forget the first ``count`` entries of ``size``."""
        self.lanes[: size - count] = self.lanes[count:size]

    def append(self, at: int, places: Ints, column: AdditiveColumn) -> int:
        """Take in sealed entries from ``at`` on; how many additions that took."""
        if isinstance(column, SumColumn):
            # A window of 2**31 settled entries has room for its carries.
            column.settle()
        base, limbs, specials = _rows_of(column)
        kinds = 0 if specials is None else specials.shape[1]
        self._fit(base, limbs.shape[1], kinds)
        _append(self.lanes, self.heads, at, places, limbs, base - self.base)
        if specials is not None:
            _append_more(self.lanes, self.heads, at, places, specials, self.width)
        elif self.specials:
            _copy_more(self.lanes, self.heads, at, places, self.width)
        return int(places.size)

    def _fit(self, base: int, width: int, kinds: int) -> None:
        """Widen the lanes to hold limbs from ``base`` on, and special values if there are any."""
        low, high = self.base, self.base + self.width
        if width and self.width:
            low, high = min(low, base), max(high, base + width)
        elif width:
            low, high = base, base + width
        kinds = max(kinds, self.specials)
        if (low, high, kinds) == (self.base, self.base + self.width, self.specials):
            return
        self.lanes = self._wider(self.lanes, low, high, kinds)
        self.heads = self._wider(self.heads, low, high, kinds)
        self.base, self.width, self.specials = low, high - low, kinds

    def _wider(self, rows: Ints, low: int, high: int, kinds: int) -> Ints:
        out = np.zeros((len(rows), high - low + kinds), np.int64)
        at = self.base - low if self.width else 0
        out[:, at : at + self.width] = rows[:, : self.width]
        out[:, high - low : high - low + self.specials] = rows[:, self.width :]
        return out

    def read(
        self, lists: Lists, chains: Chains, held: Bools, spans: Spans
    ) -> tuple[AdditiveColumn, int]:
        """The sums of windows, and how many subtractions they took."""
        out = np.zeros((spans.slots.size, self.lanes.shape[1]), np.int64)
        steps = _read(self.lanes, self.heads, lists, chains, held, spans, out)
        return self._column(out), steps

    def raw(self, places: npt.NDArray[np.int32], count: int) -> AdditiveColumn:
        """The first ``count`` entries themselves, which are of these places."""
        out = np.empty((count, self.lanes.shape[1]), np.int64)
        _differences(self.lanes, self.heads, places, out)
        return self._column(out)

    def _column(self, rows: Ints) -> AdditiveColumn:
        if self.part.kind in ("count", "count_if"):
            return CountColumn(
                self.part, rows[:, 0] if self.width else np.zeros(len(rows), np.int64)
            )
        kind = LogColumn if self.part.kind == "log_sum" else SumColumn
        limbs = np.ascontiguousarray(rows[:, : self.width])
        specials = np.ascontiguousarray(rows[:, self.width :]) if self.specials else None
        if not self.width:
            column = kind.empty(self.part, len(rows))
            column.specials = specials
            return column
        return kind(self.part, limbs, self.base, LOAD_LIMIT, specials)


def _rows_of(column: AdditiveColumn) -> tuple[int, Ints, Ints | None]:
    if isinstance(column, CountColumn):
        return 0, column.counts[:, None], None
    assert isinstance(column, SumColumn)
    return column.base, column.limbs, column.specials


def _grown(rows: Ints, size: int) -> Ints:
    if size <= len(rows):
        return rows
    out = np.zeros((size, rows.shape[1]), np.int64)
    out[: len(rows)] = rows
    return out


@compiled
def _append(lanes: Ints, heads: Ints, at: int, places: Ints, limbs: Ints, first: int) -> None:
    width = limbs.shape[1]
    for i in range(places.size):
        place = places[i]
        for k in range(lanes.shape[1]):
            lanes[at + i, k] = heads[place, k]
        for k in range(width):
            heads[place, first + k] += limbs[i, k]


@compiled
def _append_more(lanes: Ints, heads: Ints, at: int, places: Ints, more: Ints, first: int) -> None:
    """Add up special values, whose lanes are behind the others."""
    for i in range(places.size):
        for k in range(more.shape[1]):
            lanes[at + i, first + k] = heads[places[i], first + k]
            heads[places[i], first + k] += more[i, k]


@compiled
def _copy_more(lanes: Ints, heads: Ints, at: int, places: Ints, first: int) -> None:
    for i in range(places.size):
        for k in range(first, lanes.shape[1]):
            lanes[at + i, k] = heads[places[i], k]


@compiled
def _read(
    lanes: Ints,
    heads: Ints,
    lists: Lists,
    chains: Chains,
    held: Bools,
    spans: Spans,
    out: Ints,
) -> int:
    width, steps = lanes.shape[1], 0
    for row in range(spans.slots.size):
        place = chains.firsts[spans.slots[row]]
        while place >= 0:
            if held[spans.members[row], chains.cells[place]]:
                low = since_place(lists, place, spans.lows[row])
                high = since_place(lists, place, spans.highs[row])
                if low < high:
                    steps += 1
                    before = lists.items[low]
                    if high == lists.ends[place]:
                        for k in range(width):
                            out[row, k] += heads[place, k] - lanes[before, k]
                    else:
                        after = lists.items[high]
                        for k in range(width):
                            out[row, k] += lanes[after, k] - lanes[before, k]
            place = chains.following[place]
    return steps


@compiled
def _differences(lanes: Ints, heads: Ints, places: npt.NDArray[np.int32], out: Ints) -> None:
    """What each entry adds to the total of its place."""
    width = lanes.shape[1]
    totals = heads.copy()
    for i in range(out.shape[0] - 1, -1, -1):
        place = places[i]
        for k in range(width):
            out[i, k] = totals[place, k] - lanes[i, k]
            totals[place, k] = lanes[i, k]
