"""Python partials of sums and moments as lanes of integers, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from muntin.aggregates.exact import DOUBLE_GRID, Exact
from muntin.aggregates.moments import Moments
from muntin.aggregates.sums import Total
from muntin.aggregators.spans import Span, span_of_units

if TYPE_CHECKING:
    from muntin.aggregators.additive import Additive

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
