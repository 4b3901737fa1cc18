"""Counts, exact sums and moments as lanes of integers that add and subtract."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from muntin._typing import Bools, Ints
from muntin.aggregates.counts import Count, CountIf
from muntin.aggregates.exact.number import DOUBLE_GRID, Exact
from muntin.aggregates.moments import Moments
from muntin.aggregates.sums import Total
from muntin.aggregators.encodings import limbs, lowering
from muntin.aggregators.encodings import limbs as kernels
from muntin.aggregators.encodings.encoding import Encoding, Values
from muntin.aggregators.encodings.limbs import Limbs
from muntin.aggregators.operators import Store, Sum, Sums

# So many lanes are compiled for.
_LANES = (1, 2, 3, 4, 8, 16)
# Powers of two up to here, and their inverses, are normal doubles.
_FAR = 1000


@dataclass(frozen=True)
class Additive(Encoding):
    """Lanes: the limbs of the sum, those of the sum of squares, then the marks.

    The marks count rows, NaN, +inf and -inf. As long as each value is one finite row they are left
    out: how many rows an answer has is then known without counting. A count is one lane of rows.
    Lanes are padded to one of a few widths, so that few kernels serve all.
    """

    aggregate: Any
    double: bool
    sum: Limbs | None = None
    squares: Limbs | None = None
    marked: bool = False

    @property
    def limbs(self) -> int:
        """Lanes taken by limbs."""
        return sum(part.count for part in (self.sum, self.squares) if part is not None)

    @property
    def lanes(self) -> int:
        """Lanes in all, without padding; a count is one lane."""
        return self.limbs + (MARKS if self.marked else 0) or 1

    @cached_property
    def op(self) -> Any:
        """Bare integers for one lane."""
        size = next(size for size in _LANES if size >= self.lanes)
        return Sum() if size == 1 else Sums((0,) * size)

    @property
    def width(self) -> int:
        """Lanes, padding included."""
        return len(self._zeros)

    def described(self) -> dict[str, Any]:
        """Where the limbs lie, and whether there are marks."""
        parts = {"sum": self.sum, "squares": self.squares}
        places = {name: part and [part.base, part.count] for name, part in parts.items()}
        return {**places, "marked": self.marked}

    def redescribed(self, said: dict[str, Any]) -> Additive:
        """Take the description back; the limbs' width follows from the window."""
        parts = {"sum": self.sum, "squares": self.squares}
        placed: dict[str, Any] = {
            name: replace(limbs, base=said[name][0], count=said[name][1])
            for name, limbs in parts.items()
            if limbs is not None
        }
        return replace(self, marked=said["marked"], **placed)

    @property
    def direct(self) -> bool:
        """A single lane of integers is its own answer, unless it is divided."""
        return self.lanes == 1 and not self.double and self.aggregate.name == "sum"

    @property
    def implies_rows(self) -> bool:
        """Whether rows are not counted in a lane."""
        return self.sum is not None and not self.marked

    @property
    def needs_rows(self) -> bool:
        """A sum divides by nothing."""
        return self.implies_rows and self.aggregate.name != "sum"

    def covering(self, values: Values) -> Additive | None:
        """Limbs at both ends as needed, and marks for NULL, NaN and infinities."""
        if self.sum is None:
            return self
        span, special = span_of_values(values)
        marked = special or values.valid is not None
        return self.spanning(span, marked)

    def spanning(self, span: Span | None, marked: bool) -> Additive | None:
        """The encoding widened to the bits of `span`; None if that takes too many lanes."""
        wider = replace(self, marked=self.marked or marked)
        if span is not None and self.sum is not None:
            wider = replace(wider, sum=_widened(self.sum, span, self.double))
            if self.squares is not None:
                doubled = 2 * span[0], 2 * span[1]
                wider = replace(wider, squares=_widened(self.squares, doubled, self.double))
        return wider if wider.lanes <= _LANES[-1] else None

    def lift(self, values: Values, out: Store) -> Store:
        """Cut every value into limbs, and mark it."""
        if self.sum is None:
            return _ones(self.aggregate, values)
        if self.lanes == 1 and not self.double:
            return values.items
        lanes = self._lanes_of(out)
        self._lift_limbs(values, lanes)
        if self.marked:
            valid = np.ones(len(lanes), np.bool_) if values.valid is None else values.valid
            bits = values.items if self.double else np.zeros(len(lanes), np.int64)
            kernels.mark_doubles(bits, valid, lanes, self.limbs)
        return out

    def _lift_limbs(self, values: Values, lanes: Ints) -> None:
        assert self.sum is not None
        width, base, count = self.sum.width, self.sum.base, self.sum.count
        if not self.double:
            kernels.lift_integers(values.items, width, lanes, 0, count)
        elif base > -_FAR and self.sum.top < _FAR:
            units = np.ldexp(1.0, base + width * np.arange(count))
            kernels.lift_doubles(values.items.view(np.float64), units, lanes, 0)
        else:
            kernels.lift_extreme_doubles(values.items, base, width, lanes, 0, count)
        if self.squares is not None:
            base, at, count = self.squares.base, count, self.squares.count
            if self.double:
                kernels.lift_double_squares(values.items, base, width, lanes, at, count)
            else:
                kernels.lift_integer_squares(values.items, width, lanes, at, count)

    @property
    def _zeros(self) -> tuple[int, ...]:
        return self.op.zeros if isinstance(self.op, Sums) else (0,)

    def shaped(self, lanes: Ints) -> Store:
        """Rows of lanes as the operator stores them."""
        return lanes if isinstance(self.op, Sums) else lanes.reshape(-1)

    def _lanes_of(self, store: Store) -> Ints:
        return store.reshape(-1, self.width)

    def lower(self, partials: Store, rows: Ints, out: npt.NDArray[Any]) -> Bools | None:
        """Round once."""
        lanes = self._lanes_of(partials)
        if self.sum is None:
            out[:] = lanes[:, 0]
            return None
        marks = lanes[:, self.limbs : self.limbs + MARKS] if self.marked else None
        total, squares = (lanes, 0, self.sum), (lanes, self.sum.count, self.squares)
        return lowering.lower(self.aggregate, total, squares, rows, marks, out)

    def widened(self, store: Store, wider: Encoding, rows: Ints | None) -> Store:
        """Limbs keep their places; those that are added are zero."""
        assert isinstance(wider, Additive)
        lanes = self._lanes_of(store)
        out: Ints = np.zeros((len(lanes), wider.width), np.int64)
        source = target = 0
        for own, other in ((self.sum, wider.sum), (self.squares, wider.squares)):
            if own is not None and other is not None:
                below = target + (own.base - other.base) // own.width
                out[:, below : below + own.count] = lanes[:, source : source + own.count]
                source, target = source + own.count, target + other.count
        if wider.marked and self.marked:
            out[:, target : target + MARKS] = lanes[:, source : source + MARKS]
        elif wider.marked and rows is not None:
            out[:, target] = rows
        return wider.shaped(out)

    def decoded(self, store: Store, rows: Ints | None) -> Store:
        """Each row of lanes as the aggregate's own partial."""
        lanes = self._lanes_of(store).tolist()
        counts = [None] * len(lanes) if rows is None else rows.tolist()
        out = np.empty(len(lanes), np.object_)
        for i, row in enumerate(lanes):
            out[i] = from_lanes(self, row, counts[i])
        return out

    def of_partials(self, held: Iterable[Any]) -> Additive | None:
        """A marked encoding that covers these Python partials too; None if there is none."""
        wider: Additive | None = self
        for partial in held:
            if wider is None or self.sum is None:
                return wider
            wider = wider.spanning(span_of(self, partial), marked=True)
        return wider

    def encoded(self, held: Store) -> Store:
        """Python partials as rows of lanes."""
        out: Ints = np.zeros((len(held), self.width), np.int64)
        for i, partial in enumerate(held):
            row = to_lanes(self, partial)
            out[i, : len(row)] = row
        return self.shaped(out)


def _widened(limbs: Limbs, span: Span, spare: bool) -> Limbs:
    if limbs.count == 0:
        return Limbs.around(limbs.width, *span, spare)
    return limbs.widened(*span)


def _ones(aggregate: Any, values: Values) -> Ints:
    if isinstance(aggregate, CountIf):
        return values.items if values.valid is None else values.items * values.valid
    assert isinstance(aggregate, Count)
    counted = np.ones(len(values.items), np.int64) if values.valid is None else values.valid
    return counted.astype(np.int64)


# Lanes that count rows, NaN, +inf and -inf.
MARKS = 4


def from_lanes(encoding: Additive, row: list[int], rows: int | None) -> Any:
    """The aggregate's own partial; `rows` says how many rows it has where no lane does."""
    if encoding.sum is None:
        return row[0]
    grid, at, end = _grid(encoding), encoding.sum.count, encoding.limbs
    marks = row[end : end + MARKS] if encoding.marked else [rows or 0, 0, 0, 0]
    count, nans, ups, downs = marks
    total = Exact(encoding.sum.joined(row[:at], grid), nans, ups, downs)
    if encoding.squares is None:
        return Total(count, total)
    units = encoding.squares.joined(row[at:end], 2 * grid)
    return Moments(count, total, Exact(units, nans, ups + downs, 0))


def to_lanes(encoding: Additive, partial: Any) -> list[int]:
    """The lanes of a partial that a marked encoding covers."""
    if encoding.sum is None:
        return [partial]
    grid = _grid(encoding)
    row = encoding.sum.split(partial.total.units, grid)
    if encoding.squares is not None:
        row += encoding.squares.split(partial.squares.units, 2 * grid)
    return [*row, partial.rows, *partial.total[1:]]


def span_of(encoding: Additive, partial: Any) -> Span | None:
    """The bits that the sum takes, and half of those that the sum of squares takes."""
    grid = _grid(encoding)
    span = span_of_units(partial.total.units, grid)
    if encoding.squares is None:
        return span
    squares = span_of_units(partial.squares.units, 2 * grid)
    if squares is None:
        return span
    halved = squares[0] // 2, -(-squares[1] // 2)
    return halved if span is None else (min(span[0], halved[0]), max(span[1], halved[1]))


def _grid(encoding: Additive) -> int:
    return DOUBLE_GRID if encoding.double else 0


Span = tuple[int, int]
_LEAST_INFINITE = 0x7FF << 52


def span_of_values(values: Values) -> tuple[Span | None, bool]:
    """The bits that the values take, None if all are zero, and whether some are NaN or infinite."""
    if not values.double:
        if len(values.items) == 0:
            return None, False
        return (0, int(limbs.integer_bits(values.items)).bit_length()), False
    least, greatest = limbs.double_sizes(values.items)
    special = greatest >= _LEAST_INFINITE
    if special:
        greatest = limbs.greatest_finite(values.items)
    if greatest == 0:
        return None, special
    return (max(least >> 52, 1) - 1075, max(greatest >> 52, 1) - 1075 + 53), special


def span_of_units(units: int, grid: int) -> Span | None:
    """The bits of `units * 2**-grid`, None for zero.

    >>> span_of_units(12, grid=0), span_of_units(12, grid=4)
    ((2, 4), (-2, 0))
    """
    if units == 0:
        return None
    return (units & -units).bit_length() - 1 - grid, units.bit_length() - grid
