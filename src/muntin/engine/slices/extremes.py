"""Selective parts of sealed entries: the best entry of any window, by a monotone deque a place.

A deque lists the entries that no later one is as good as. Its front, or the first of it in a
shorter window, is the window's best: one structure serves all ranges and predicates. An entry
enters and leaves it once, which takes fewer than two comparisons.

SlickDeque (Non-Inv) of Shein, "Algorithms and Optimizations for Incremental Window-Based
Aggregations", over many groups at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.aggregates.coders import coder
from muntin.aggregates.column import PartColumn
from muntin.aggregates.extreme_column import ExtremeColumn
from muntin.aggregates.order_kernels import NOTHING
from muntin.aggregates.parts import TIMED, Part
from muntin.aggregates.pick_column import PickColumn
from muntin.compiled import compiled
from muntin.engine.slices.places import Chains, Spans
from muntin.engine.slices.segments import Lists, Segments, push, since_place

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Flags = npt.NDArray[np.uint8]


class Codes(NamedTuple):
    """Entries as numbers: the lesser (key, flag, value) is the better; flag 0 is no value at all.

    Where greatest is best, keys and values are complemented.
    """

    keys: Ints
    flags: Flags
    values: Ints


class Extremes:
    """The deques of one part that selects: min, max, first, last, min_by or max_by."""

    technique = "slickdeque_noninv"

    def __init__(self, part: Part) -> None:
        self.part = part
        self._picks = part.kind not in ("min", "max")
        self._flip = -1 if part.kind in ("max", "last", "last_valid", "max_by") else 0
        key = part.types[0]
        if self._picks:
            key = pa.int64() if part.kind in TIMED else part.types[1]
        self._coders = [coder(key), *([coder(part.types[0])] if self._picks else [])]
        self._codes = _no_codes(0, self._picks)
        self._deques = Segments()
        self._pushed = 0

    @property
    def nbytes(self) -> int:
        """Bytes of codes, deques and dictionaries."""
        held = sum(array.nbytes for array in self._codes) + self._deques.nbytes
        return held + sum(each.nbytes for each in self._coders)

    def resize(self, entries: int, places: int) -> None:
        """Make room for as many entries and places."""
        if entries > self._codes.keys.size:
            codes, size = _no_codes(entries, self._picks), self._codes.keys.size
            codes.keys[:size], codes.flags[:size] = self._codes.keys, self._codes.flags
            if self._picks:
                codes.values[:size] = self._codes.values
            self._codes = codes
        self._deques.reserve(places)

    def shift(self, count: int, size: int) -> None:
        """Forget the first ``count`` entries of ``size``."""
        codes, kept = self._codes, size - count
        codes.keys[:kept], codes.flags[:kept] = codes.keys[count:size], codes.flags[count:size]
        if self._picks:
            codes.values[:kept] = codes.values[count:size]
        self._deques.shift(count)
        self._pushed = max(self._pushed - count, 0)
        self._forget_unused(kept)

    def _forget_unused(self, size: int) -> None:
        """Let dictionaries shrink once most of what they hold is gone."""
        for number, each in enumerate(self._coders):
            if each.moves:
                held = (self._codes.keys, self._codes.values)[number][:size] ^ self._flip
                self._move(number, each.drop_unused(held[self._live(number, size)]), size)

    def append(self, at: int, places: Ints, column: PartColumn) -> int:
        """Take in sealed entries from ``at`` on; they are compared when windows are read."""
        end = at + places.size
        if isinstance(column, ExtremeColumn):
            seen, values = column.seen(), None
            keys = column.result() if self._coders[0].moves else column.codes()
        else:
            assert isinstance(column, PickColumn)
            seen = column.seen
            keys = column._decoded_keys() if self._coders[0].moves else column.keys  # noqa: SLF001
            values = column.result() if self._coders[1].moves else column.values
            values = self._coded(1, values, at)
            self._codes.values[at:end] = np.where(column.valid, values ^ self._flip, 0)
            first = column.valid == (self._flip != 0)
            self._codes.flags[at:end] = np.where(seen, np.where(first, 1, 2), 0)
        self._codes.keys[at:end] = self._coded(0, keys, at) ^ self._flip
        if values is None:
            self._codes.flags[at:end] = seen
        return 0

    def _coded(self, number: int, given: Ints | pa.Array, size: int) -> Ints:
        """Codes by this part's own dictionary; those given out before follow where it moves."""
        if not self._coders[number].moves:
            assert isinstance(given, np.ndarray)
            return given
        codes, moved = self._coders[number].encode(given)
        self._move(number, moved, size)
        return codes

    def _move(self, number: int, moved: Ints | None, size: int) -> None:
        if moved is None or not moved.size:
            return
        held = (self._codes.keys, self._codes.values)[number][:size]
        live = self._live(number, size)
        held[live] = moved[held[live] ^ self._flip] ^ self._flip

    def _live(self, number: int, size: int) -> Bools:
        """Which entries have a key, or a value that is not NULL."""
        flags = self._codes.flags[:size]
        live: Bools = flags == (1 if self._flip else 2) if number else flags > 0
        return live

    def read(
        self, places: npt.NDArray[np.int32], chains: Chains, held: Bools, spans: Spans
    ) -> tuple[PartColumn, int]:
        """The best entries of windows in order of their ends, and how many comparisons it took.

        ``places`` are those of all entries of the log.
        """
        best = np.empty(spans.slots.size, np.int64)
        pushed, done, steps = max(self._pushed, self._deques.since), 0, 0
        while True:
            done, pushed, more = _read(
                self._codes, self._deques.lists, places, chains, held, spans, done, pushed,
                self._deques.since, best,
            )  # fmt: skip
            steps += more
            if done == best.size:
                break
            self._deques.pack()
        self._pushed = pushed
        return self._taken(best), steps

    def expire(self, since: int) -> None:
        """Forget places of the log before ``since``."""
        self._deques.since = since

    def raw(self, places: npt.NDArray[np.int32], count: int) -> PartColumn:
        """The first ``count`` entries themselves."""
        return self._taken(np.arange(count))

    def _taken(self, rows: Ints) -> PartColumn:
        at = np.maximum(rows, 0)
        if not self._codes.keys.size:
            at, rows = np.zeros(0, np.int64), rows[:0]
        flags = np.where(rows < 0, 0, self._codes.flags[at])
        keys = self._codes.keys[at]
        seen = flags > 0
        if not self._picks:
            least = np.where(seen, keys, NOTHING)
            marks = seen & (keys == NOTHING)
            own = self._coders[0].copy()
            return ExtremeColumn(self.part, least, own, marks if marks.any() else None)
        valid = seen & (flags == (1 if self._flip else 2))
        values = np.where(valid, self._codes.values[at] ^ self._flip, 0)
        coders = self._coders[0].copy(), self._coders[1].copy()
        return PickColumn(self.part, seen, (keys ^ self._flip, valid, values), coders)


def _no_codes(size: int, picks: bool) -> Codes:
    # A minimum has no values besides its keys: one number stands in for all of them.
    values = np.zeros(size if picks else 1, np.int64)
    return Codes(np.zeros(size, np.int64), np.zeros(size, np.uint8), values)


@compiled
def _before(codes: Codes, i: int, j: int) -> bool:
    """Whether entry i is better than entry j."""
    if codes.keys[i] != codes.keys[j]:
        return bool(codes.keys[i] < codes.keys[j])
    if codes.flags[i] != codes.flags[j]:
        return bool(codes.flags[i] < codes.flags[j])
    return bool(codes.values.size > 1 and codes.values[i] < codes.values[j])


@compiled
def _read(
    codes: Codes,
    deques: Lists,
    places: npt.NDArray[np.int32],
    chains: Chains,
    held: Bools,
    spans: Spans,
    done: int,
    pushed: int,
    since: int,
    best: Ints,
) -> tuple[int, int, int]:
    """Bring the deques to the end of each window in turn, and find its best entry.

    Returns how many windows are done, fewer than all where a deque has no more room, up to which
    place of the log entries are in, and the comparisons.
    """
    steps = 0
    for row in range(done, spans.slots.size):
        while pushed < spans.highs[row]:
            if codes.flags[pushed]:
                place = places[pushed]
                begin, end = deques.begins[place], deques.ends[place]
                while end > begin and deques.items[end - 1] >= since:
                    steps += 1
                    if _before(codes, deques.items[end - 1], pushed):
                        break
                    end -= 1
                deques.ends[place] = end
                if not push(deques, place, pushed):
                    return row, pushed, steps
            pushed += 1
        found = -1
        place = chains.firsts[spans.slots[row]]
        while place >= 0:
            if held[spans.members[row], chains.cells[place]]:
                at = since_place(deques, place, spans.lows[row])
                if at < deques.ends[place]:
                    item = int(deques.items[at])
                    if found < 0:
                        found = item
                    else:
                        steps += 1
                        if _before(codes, item, found):
                            found = item
            place = chains.following[place]
        best[row] = found
    return spans.slots.size, pushed, steps
