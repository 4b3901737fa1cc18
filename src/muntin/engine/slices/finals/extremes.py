"""Selective parts of sealed entries: the best entry of any window, by a monotone deque per place.

An entry points back to the nearest one of its place that is better. From the last entry of a window
these steps lead along its deque, and the earliest of them in the window is the window's best: one
structure serves all ranges and predicates. Entries never change once they are in, so they may lie
in files, and the deque of any earlier moment is still there. To find an entry's step takes fewer
than two comparisons on average, since what it passes over is never looked at again.

SlickDeque (Non-Inv) of Shein, "Algorithms and Optimizations for Incremental Window-Based
Aggregations", over many groups at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin._compiled import compiled
from muntin._typing import Bools, Ints
from muntin.aggregates.algebra import TIMED, Part
from muntin.aggregates.columns.codes import NOTHING, coder
from muntin.aggregates.columns.column import PartColumn
from muntin.aggregates.columns.extremes import ExtremeColumn
from muntin.aggregates.columns.picks import PickColumn
from muntin.engine.slices.places import Chains, Spans
from muntin.engine.slices.stretches import (
    Stretched,
    Trail,
    before_it,
    first_since,
    last_before,
    leap_at,
    load_int64,
    load_uint8,
    stretch_of,
)

Int32s = npt.NDArray[np.int32]
Arrays = dict[str, npt.NDArray[Any]]


class Codes(NamedTuple):
    """Entries as numbers: the lesser (key, flag, value) is the better; flag 0 is no value at all.

    Where greatest is best, keys and values are complemented. These are the addresses of stretches.
    """

    firsts: Ints
    keys: Ints
    flags: Ints
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
        self._keys, self._flags = Stretched(np.int64), Stretched(np.uint8)
        self._values = Stretched(np.int64)
        # How far back the nearest better entry lies, and one further back along the deque. That
        # leap passes 2**n - 1 entries.
        self._steps, self._leaps = Stretched(np.int32), Stretched(np.int32)
        self._lengths = Stretched(np.uint8)
        self._tops = np.zeros(0, np.int64)

    @property
    def _arrays(self) -> dict[str, Stretched]:
        found = {
            "keys": self._keys,
            "flags": self._flags,
            "steps": self._steps,
            "leaps": self._leaps,
            "lengths": self._lengths,
        }
        # A minimum has no values besides its keys.
        return {**found, "values": self._values} if self._picks else found

    @property
    def moves(self) -> bool:
        """Whether codes depend on the values seen, and move as more are seen."""
        return any(each.moves for each in self._coders)

    @property
    def nbytes(self) -> int:
        """Bytes of codes, deques and dictionaries in memory."""
        held = sum(array.nbytes for array in self._arrays.values()) + self._tops.nbytes
        return held + sum(each.nbytes for each in self._coders)

    def resize(self, room: int, places: int, *, leaps: bool) -> None:
        """Make room for as many entries in memory, with leaps or without, and places."""
        for name, array in self._arrays.items():
            if leaps or name not in ("leaps", "lengths"):
                array.resize(room)
        if places > self._tops.size:
            longer = np.full(max(places, self._tops.size * 9 // 8), -1)
            longer[: self._tops.size] = self._tops
            self._tops = longer

    def shift(self, count: int, size: int) -> None:
        """Forget the first ``count`` of ``size`` entries in memory."""
        for array in self._arrays.values():
            array.shift(count, size)
        self._forget_unused(size - count)

    def drop(self, count: int) -> None:
        """Forget the first stretches in files."""
        for array in self._arrays.values():
            array.drop(count)

    def _forget_unused(self, size: int) -> None:
        """Let dictionaries shrink once most of what they hold is gone."""
        for number, each in enumerate(self._coders):
            if each.moves:
                held = (self._keys, self._values)[number].tail[:size] ^ self._flip
                self._move(number, each.drop_unused(held[self._live(number, size)]), size)

    def append(self, trail: Trail, at: int, places: Ints, column: PartColumn) -> int:
        """Take in sealed entries from position ``at`` on; how many comparisons that took."""
        first = int(trail.firsts[-1])
        begin, end = at - first, at - first + places.size
        keys, flags = self._keys.tail, self._flags.tail
        if isinstance(column, ExtremeColumn):
            given = column.result() if self._coders[0].moves else column.codes()
            flags[begin:end] = column.seen()
        else:
            assert isinstance(column, PickColumn)
            given = column._decoded_keys() if self._coders[0].moves else column.keys  # noqa: SLF001
            values = column.result() if self._coders[1].moves else column.values
            values = self._coded(1, values, begin)
            self._values.tail[begin:end] = np.where(column.valid, values ^ self._flip, 0)
            is_first = column.valid == (self._flip != 0)
            flags[begin:end] = np.where(column.seen, np.where(is_first, 1, 2), 0)
        keys[begin:end] = self._coded(0, given, begin) ^ self._flip
        return _push(
            self._deques(trail), self._codes(trail), at, places, self._tops,
            self._lengths.addresses, self._steps.tail, self._leaps.tail, self._lengths.tail,
        )  # fmt: skip

    def _codes(self, trail: Trail) -> Codes:
        values = self._values.addresses if self._picks else np.zeros(0, np.int64)
        return Codes(trail.firsts, self._keys.addresses, self._flags.addresses, values)

    def _deques(self, trail: Trail) -> Trail:
        return Trail(trail.firsts, self._steps.addresses, self._leaps.addresses, trail.begin)

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
        held = (self._keys, self._values)[number].tail[:size]
        live = self._live(number, size)
        held[live] = moved[held[live] ^ self._flip] ^ self._flip

    def _live(self, number: int, size: int) -> Bools:
        """Which entries have a key, or a value that is not NULL."""
        flags = self._flags.tail[:size]
        live: Bools = flags == (1 if self._flip else 2) if number else flags > 0
        return live

    def read(
        self, trail: Trail, lasts: Ints, chains: Chains, held: Bools, spans: Spans
    ) -> tuple[PartColumn, int, int]:
        """The best entries of windows, and the comparisons it took along time and along cells.

        Along time they are found; entries were compared when they were taken in.
        """
        best = np.empty(spans.slots.size, np.int64)
        codes, deques = self._codes(trail), self._deques(trail)
        across = _read(codes, deques, trail, lasts, chains, held, spans, best)
        taken = Codes(*np.empty((4, best.size), np.int64))
        _take(codes, best, *taken[1:])
        return self._column(taken.keys, taken.flags, taken.values), 0, across

    def raw(self, places: Int32s, skip: int) -> PartColumn:
        """The entries themselves, behind the first ``skip`` ones."""
        keys, flags = (each.whole(skip, places.size) for each in (self._keys, self._flags))
        values = self._values.whole(skip, places.size) if self._picks else keys
        return self._column(keys, flags.astype(np.int64), values)

    def _column(self, keys: Ints, flags: Ints, values: Ints) -> PartColumn:
        seen = flags > 0
        if not self._picks:
            least = np.where(seen, keys, NOTHING)
            marks = seen & (keys == NOTHING)
            own = self._coders[0].copy()
            return ExtremeColumn(self.part, least, own, marks if marks.any() else None)
        valid = seen & (flags == (1 if self._flip else 2))
        given = np.where(valid, values ^ self._flip, 0)
        coders = self._coders[0].copy(), self._coders[1].copy()
        return PickColumn(self.part, seen, (keys ^ self._flip, valid, given), coders)

    def stretch(self, rows: slice) -> Arrays:
        """Some entries in memory, as arrays."""
        return {name: array.tail[rows] for name, array in self._arrays.items()}

    def keep(self, arrays: Arrays) -> None:
        """Put a stretch that `stretch` made behind those kept before."""
        for name, array in self._arrays.items():
            array.keep(arrays[name])

    def base_arrays(self, places: int) -> Arrays:
        """What is known of each place, as arrays."""
        return {"tops": self._tops[:places]}

    def rebase(self, arrays: Arrays) -> None:
        """Go on from what `base_arrays` made."""
        self._tops = np.array(arrays["tops"])


@compiled
def _before(codes: Codes, i: int, j: int) -> bool:
    """Whether entry i is better than entry j."""
    s, t = stretch_of(codes.firsts, i), stretch_of(codes.firsts, j)
    i, j = i - codes.firsts[s], j - codes.firsts[t]
    one, other = load_int64(codes.keys[s], i), load_int64(codes.keys[t], j)
    if one != other:
        return bool(one < other)
    one, other = load_uint8(codes.flags[s], i), load_uint8(codes.flags[t], j)
    if one != other:
        return bool(one < other)
    if codes.values.size == 0:
        return False
    return bool(load_int64(codes.values[s], i) < load_int64(codes.values[t], j))


@compiled
def _has_value(codes: Codes, position: int) -> bool:
    return bool(_uint8_at(codes.firsts, codes.flags, position) > 0)


@compiled
def _uint8_at(firsts: Ints, addresses: Ints, position: int) -> int:
    stretch = stretch_of(firsts, position)
    return int(load_uint8(addresses[stretch], position - firsts[stretch]))


@compiled
def _push(
    deques: Trail,
    codes: Codes,
    at: int,
    places: Ints,
    tops: Ints,
    passed: Ints,
    steps: Int32s,
    leaps: Int32s,
    lengths: npt.NDArray[np.uint8],
) -> int:
    """Point each new entry, which lies in memory, to the nearest better one before it.

    One without a value points to the last one that has any. ``tops`` is that one of each place.
    """
    compared, first = 0, deques.firsts[deques.firsts.size - 1]
    for i in range(places.size):
        position, top = at + i, tops[places[i]]
        if top < deques.begin:
            top = -1
        is_valued = _has_value(codes, position)
        while is_valued and top >= 0:
            compared += 1
            if _before(codes, top, position):
                break
            top = before_it(deques, top)
        step, leap, length = 0, 0, 0
        if top >= 0:
            step, leap, length = position - top, position - top, 1
            back = leap_at(deques, top)
            over = top - back
            # Two leaps of one length become one that is as long as both, and the step.
            if back > 0 and over >= deques.begin:
                last = _uint8_at(deques.firsts, passed, top)
                further = leap_at(deques, over)
                if further > 0 and last == _uint8_at(deques.firsts, passed, over):
                    leap, length = position - over + further, last + 1
        steps[position - first] = step
        if leaps.size:
            leaps[position - first], lengths[position - first] = leap, length
        if is_valued:
            tops[places[i]] = position
    return compared


@compiled
def _read(
    codes: Codes,
    deques: Trail,
    trail: Trail,
    lasts: Ints,
    chains: Chains,
    held: Bools,
    spans: Spans,
    best: Ints,
) -> int:
    """Find each window's best entry, -1 for none; the comparisons between places of a slot."""
    compared = 0
    for row in range(spans.slots.size):
        found, low = -1, max(spans.lows[row], trail.begin)
        place = chains.firsts[spans.slots[row]]
        while place >= 0:
            if held[spans.members[row], chains.cells[place]] and lasts[place] >= low:
                last = last_before(trail, lasts[place], spans.highs[row])
                if last >= low and not _has_value(codes, last):
                    last = before_it(deques, last)
                if last >= low:
                    last = first_since(deques, last, low)
                    if found < 0:
                        found = last
                    else:
                        compared += 1
                        if _before(codes, last, found):
                            found = last
            place = chains.following[place]
        best[row] = found
    return compared


@compiled
def _take(codes: Codes, rows: Ints, keys: Ints, flags: Ints, values: Ints) -> None:
    """The codes of some entries; flag 0 for none."""
    for i in range(rows.size):
        keys[i], flags[i], values[i] = 0, 0, 0
        if rows[i] >= 0:
            stretch = stretch_of(codes.firsts, rows[i])
            at = rows[i] - codes.firsts[stretch]
            keys[i] = load_int64(codes.keys[stretch], at)
            flags[i] = load_uint8(codes.flags[stretch], at)
            if codes.values.size:
                values[i] = load_int64(codes.values[stretch], at)
