"""Running totals of sealed entries: any window of an invertible part is one subtraction.

An entry of the log holds what its place had summed up before it. The sum of a place over a window
is what it had at the first entry after the window, less what it had at the first one in it. Sums
are rows of 64-bit lanes that may wrap around: differences stay right while the window's own fit.

From Golab, "Sliding Window Query Processing over Data Streams", 2.3.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from muntin._compiled import compiled
from muntin._typing import Bools, Ints
from muntin.aggregates.algebra import Part
from muntin.aggregates.columns.by_part import class_of
from muntin.aggregates.columns.column import AdditiveColumn
from muntin.aggregates.columns.counts import CountColumn
from muntin.aggregates.columns.sums import LOAD_LIMIT, SumColumn
from muntin.engine.slices.places import Chains, Spans
from muntin.engine.slices.stretches import (
    Stretched,
    Trail,
    before_it,
    first_since,
    load_int64,
    stretch_of,
)

Int32s = npt.NDArray[np.int32]
Arrays = dict[str, npt.NDArray[Any]]


class Lanes(NamedTuple):
    """Lanes as kernels read them, by stretch: where they lie, and how they fit those of today.

    A stretch has ``widths`` lanes of limbs, which are those from ``shifts`` on, and ``kinds`` that
    count special values. What it lacks is zero.
    """

    addresses: Ints
    widths: Ints
    kinds: Ints
    shifts: Ints


class Totals:
    """The running totals of one invertible part.

    Lanes of an entry are what its place had before it, ``heads[p]`` is what place p has now. The
    first ``width`` lanes are limbs from ``base`` on, the others count special values.
    """

    technique = "running_totals"

    def __init__(self, part: Part) -> None:
        self.part = part
        self.base, self.width, self.specials = 0, 0, 0
        self.heads = np.zeros((0, 0), np.int64)
        self._lanes = Stretched(np.int64, 0)
        # The base, width and special lanes of each stretch in files.
        self._fits: list[tuple[int, int, int]] = []

    @property
    def nbytes(self) -> int:
        """Bytes of all totals in memory."""
        return self._lanes.nbytes + self.heads.nbytes

    def resize(self, room: int, places: int, *, leaps: bool) -> None:
        """Make room for as many entries in memory, and places."""
        self._lanes.resize(room)
        if places > len(self.heads):
            size = max(places, len(self.heads) * 9 // 8)
            longer = np.zeros((size, self.heads.shape[1]), np.int64)
            longer[: len(self.heads)] = self.heads
            self.heads = longer

    def shift(self, count: int, size: int) -> None:
        """Forget the first ``count`` of ``size`` entries in memory."""
        self._lanes.shift(count, size)

    def drop(self, count: int) -> None:
        """Forget the first stretches in files."""
        self._lanes.drop(count)
        del self._fits[:count]

    def append(self, trail: Trail, at: int, places: Ints, column: AdditiveColumn) -> int:
        """Take in sealed entries from position ``at`` on; how many additions that took."""
        if isinstance(column, SumColumn):
            # A window of 2**31 settled entries has room for its carries.
            column.settle()
        base, limbs, specials = _rows_of(column)
        kinds = 0 if specials is None else specials.shape[1]
        self._fit(base, limbs.shape[1], kinds)
        lanes, row = self._lanes.tail, at - int(trail.firsts[-1])
        _append(lanes, self.heads, row, places, limbs, base - self.base)
        if specials is not None:
            _append_more(lanes, self.heads, row, places, specials, self.width)
        elif self.specials:
            _copy_more(lanes, self.heads, row, places, self.width)
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
        mine, fit = (self.base, self.width, self.specials), (low, high - low, kinds)
        self._lanes.replace(refitted(self._lanes.tail, mine, fit))
        self.heads = refitted(self.heads, mine, fit)
        self.base, self.width, self.specials = fit

    def _as_lanes(self) -> Lanes:
        mine = (self.base, self.width, self.specials)
        bases, widths, kinds = np.array([*self._fits, mine], np.int64).T.copy()
        shifts = np.where(widths > 0, bases - self.base, 0)
        return Lanes(self._lanes.addresses, widths, kinds, shifts)

    def read(
        self, trail: Trail, lasts: Ints, chains: Chains, held: Bools, spans: Spans
    ) -> tuple[AdditiveColumn, int, int]:
        """The sums of windows, and the aggregations it took along time and along cells.

        A window of one place is one subtraction; each other place that it holds is another, and an
        addition.
        """
        out = np.zeros((spans.slots.size, self.heads.shape[1]), np.int64)
        windows, places = _read(
            trail, self._as_lanes(), self.width, self.heads, lasts, chains, held, spans, out
        )
        return self._column(out), windows, 2 * (places - windows)

    def raw(self, places: Int32s, skip: int) -> AdditiveColumn:
        """The entries themselves, which are of these places, behind the first ``skip`` ones."""
        mine = (self.base, self.width, self.specials)
        kept = [
            refitted(rows, fit, mine)
            for rows, fit in zip(self._lanes.kept, self._fits, strict=True)
        ]
        lanes = np.concatenate([*kept, self._lanes.tail]) if kept else self._lanes.tail
        out = np.empty((places.size, self.heads.shape[1]), np.int64)
        _differences(lanes[skip:], self.heads, places, out)
        return self._column(out)

    def _column(self, rows: Ints) -> AdditiveColumn:
        if self.part.kind in ("count", "count_if"):
            return CountColumn(
                self.part, rows[:, 0] if self.width else np.zeros(len(rows), np.int64)
            )
        kind = class_of(self.part)
        assert issubclass(kind, SumColumn)
        limbs = np.ascontiguousarray(rows[:, : self.width])
        specials = np.ascontiguousarray(rows[:, self.width :]) if self.specials else None
        if not self.width:
            column = kind.empty(self.part, len(rows))
            column.specials = specials
            return column
        return kind(self.part, limbs, self.base, LOAD_LIMIT, specials)

    def stretch(self, rows: slice) -> Arrays:
        """Some entries in memory, as arrays."""
        fit = np.array([self.base, self.width, self.specials])
        return {"lanes": self._lanes.tail[rows], "fit": fit}

    def keep(self, arrays: Arrays) -> None:
        """Put a stretch that `stretch` made behind those kept before."""
        self._lanes.keep(arrays["lanes"])
        base, width, kinds = arrays["fit"].tolist()
        self._fits.append((base, width, kinds))

    def base_arrays(self, places: int) -> Arrays:
        """What is known of each place, as arrays."""
        fit = np.array([self.base, self.width, self.specials])
        return {"heads": self.heads[:places], "fit": fit}

    def rebase(self, arrays: Arrays) -> None:
        """Go on from what `base_arrays` made."""
        self.base, self.width, self.specials = arrays["fit"].tolist()
        self.heads = np.array(arrays["heads"])
        self._lanes.replace(np.zeros((0, self.heads.shape[1]), np.int64))


def _rows_of(column: AdditiveColumn) -> tuple[int, Ints, Ints | None]:
    if isinstance(column, CountColumn):
        return 0, column.counts[:, None], None
    assert isinstance(column, SumColumn)
    return column.base, column.limbs, column.specials


def refitted(rows: Ints, was: tuple[int, int, int], fit: tuple[int, int, int]) -> Ints:
    """Rows of lanes with others around them, which are zero."""
    if was == fit:
        return rows
    (base, width, kinds), (low, wide, most) = was, fit
    out = np.zeros((len(rows), wide + most), np.int64)
    at = base - low if width else 0
    out[:, at : at + width] = rows[:, :width]
    out[:, wide : wide + kinds] = rows[:, width:]
    return out


def united_lanes(lanes: Sequence[Ints], fits: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Lanes of several stretches in one, and how they fit: the widest lie around all others."""
    held = [(int(base), int(width), int(kinds)) for base, width, kinds in fits]
    wide = [each for each in held if each[1]] or held
    low = min(base for base, _, _ in wide)
    high = max(base + width for base, width, _ in wide)
    fit = low, high - low, max(kinds for _, _, kinds in held)
    rows = [refitted(each, was, fit) for each, was in zip(lanes, held, strict=True)]
    return np.concatenate(rows), np.array(fit)


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
def _add(
    firsts: Ints, lanes: Lanes, position: int, width: int, sign: int, row: int, out: Ints
) -> None:
    """Add the lanes of an entry to a row, or take them off."""
    stretch = stretch_of(firsts, position)
    wide, kinds, shift = lanes.widths[stretch], lanes.kinds[stretch], lanes.shifts[stretch]
    at = (position - firsts[stretch]) * (wide + kinds)
    address = lanes.addresses[stretch]
    for k in range(wide):
        out[row, shift + k] += sign * load_int64(address, at + k)
    for k in range(kinds):
        out[row, width + k] += sign * load_int64(address, at + wide + k)


@compiled
def _read(
    trail: Trail,
    lanes: Lanes,
    width: int,
    heads: Ints,
    lasts: Ints,
    chains: Chains,
    held: Bools,
    spans: Spans,
    out: Ints,
) -> tuple[int, int]:
    """Add up the differences of all places; how many windows hold any, and how many places."""
    windows, places = 0, 0
    for row in range(spans.slots.size):
        before = places
        place, low = chains.firsts[spans.slots[row]], max(spans.lows[row], trail.begin)
        while place >= 0:
            if held[spans.members[row], chains.cells[place]] and lasts[place] >= low:
                last, after = lasts[place], -1
                if last >= spans.highs[row]:
                    after = first_since(trail, last, spans.highs[row])
                    last = before_it(trail, after)
                if last >= low:
                    places += 1
                    if after < 0:
                        for k in range(heads.shape[1]):
                            out[row, k] += heads[place, k]
                    else:
                        _add(trail.firsts, lanes, after, width, 1, row, out)
                    first = first_since(trail, last, low)
                    _add(trail.firsts, lanes, first, width, -1, row, out)
            place = chains.following[place]
        windows += places > before
    return windows, places


@compiled
def _differences(lanes: Ints, heads: Ints, places: Int32s, out: Ints) -> None:
    """What each entry adds to the total of its place."""
    width = lanes.shape[1]
    totals = heads.copy()
    for i in range(out.shape[0] - 1, -1, -1):
        place = places[i]
        for k in range(width):
            out[i, k] = totals[place, k] - lanes[i, k]
            totals[place, k] = lanes[i, k]
