"""What encloses an answer: from the rows surely in a window, and those that may be in it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from typing import Any

import pyarrow as pa

# Aggregates that only grow, or only fall, as rows come to a window.
GROWING = frozenset({"count", "count_if", "count_distinct", "max", "bool_or", "value_range"})
FALLING = frozenset({"min", "bool_and"})
# Those that take the extremes of what may be in the window.
BORDERED = frozenset({"sum", "avg"})
_DIGITS = 80


@dataclass(frozen=True)
class Border:
    """The rows that may be in the window or not, by group: their number, and their extremes."""

    counts: Sequence[int]
    least: Sequence[Any]
    most: Sequence[Any]


@dataclass(frozen=True)
class Enclosed:
    """What is known of one aggregate: of the rows surely inside, and of all that may be.

    ``counts`` are the rows inside that have a value; ``border`` is there for sums and averages.
    """

    inner: pa.Array
    outer: pa.Array
    counts: Sequence[int] = ()
    border: Border | None = None


def enclose(name: str, found: Enclosed) -> tuple[pa.Array, pa.Array]:
    """The least and the greatest that an aggregate may be; NULL is not known.

    >>> inner, outer = pa.array([3, 0]), pa.array([5, 2])
    >>> [each.to_pylist() for each in enclose("count", Enclosed(inner, outer))]
    [[3, 0], [5, 2]]
    """
    if name == "value_range" and pa.types.is_floating(found.outer.type):
        return _ranges(found)
    if name in GROWING:
        return found.inner, found.outer
    if name in FALLING:
        return found.outer, found.inner
    assert found.border is not None
    kind = found.outer.type
    one = _sum if name == "sum" else _average
    pairs = [
        _bounds(one, kind, *row)
        for row in zip(
            found.inner.to_pylist(),
            found.outer.to_pylist(),
            found.counts,
            found.border.counts,
            found.border.least,
            found.border.most,
            strict=True,
        )
    ]
    lows, highs = [low for low, _ in pairs], [high for _, high in pairs]
    return pa.array(lows, kind), pa.array(highs, kind)


def _ranges(found: Enclosed) -> tuple[pa.Array, pa.Array]:
    """Of numbers that are all infinite the range is NaN, and infinity once another one comes."""
    lows = [math.inf if low is not None and math.isnan(low) else low
            for low in found.inner.to_pylist()]  # fmt: skip
    highs = [high if high is None or math.isfinite(high) else math.nan
             for high in found.outer.to_pylist()]  # fmt: skip
    return pa.array(lows, found.outer.type), pa.array(highs, found.outer.type)


_One = Callable[[Any, Any, int, int, Any, Any], tuple[Any, Any]]


def _bounds(
    one: _One,
    kind: pa.DataType,
    inner: Any,
    outer: Any,
    inside: int,
    count: int,
    low: Any,
    high: Any,
) -> tuple[Any, Any]:
    if not count:
        return inner, inner
    if (inside and inner is None) or outer is None:
        # A sum that its type cannot hold.
        return None, None
    numbers = [each for each in (inner, low, high) if isinstance(each, float)]
    if not all(map(math.isfinite, numbers)):
        # NaN is above all numbers, as in Spark.
        return -math.inf, math.nan
    below, above = one(inner, outer, inside, count, low, high)
    return fitted(below, kind, down=True), fitted(above, kind, down=False)


def _sum(inner: Any, outer: Any, inside: int, count: int, low: Any, high: Any) -> tuple[Any, Any]:
    """Some of so many numbers between two may be added to a sum."""
    start = inner if inside else type(outer)(0)
    if low >= 0:
        return start, outer
    if high <= 0:
        return outer, start
    return _apart(start, count * low, down=True), _apart(start, count * high, down=False)


def _average(
    inner: Any, outer: Any, inside: int, count: int, low: Any, high: Any
) -> tuple[Any, Any]:
    """Some of so many numbers between two may come to an average: more of them move it further."""
    if not inside:
        return _fraction(low), _fraction(high)
    start, total = _fraction(inner), inside + count
    below = (start * inside + count * _fraction(low)) / total
    above = (start * inside + count * _fraction(high)) / total
    # The average inside was rounded, and weighs as much as what it stands for.
    margin = (abs(start) * inside + count * max(abs(_fraction(low)), abs(_fraction(high)))) / total
    margin = margin / 2**50 if isinstance(inner, float) else Fraction(0)
    return min(start, below) - margin, max(start, above) + margin


def _fraction(value: Any) -> Fraction:
    return Fraction(value)


def _apart(start: Any, added: Any, *, down: bool) -> Any:
    """A sum of two, rounded away from what it bounds."""
    if isinstance(start, int) and isinstance(added, int):
        return start + added
    exact = Fraction(start) + Fraction(added)
    if not isinstance(start, float):
        return exact
    margin = Fraction(abs(start) + abs(float(added))) / 2**50
    return exact - margin if down else exact + margin


def fitted(value: Any, kind: pa.DataType, *, down: bool | None) -> Any:
    """A bound in the type of the answer, rounded outward; None where the type cannot hold it.

    Decimals that need no rounding have no ``down``.
    """
    if pa.types.is_floating(kind):
        if not isinstance(value, Fraction):
            return value
        # What it is compared with was rounded too.
        margin = abs(value) / 2**50
        try:
            return float(value - margin if down else value + margin)
        except OverflowError:
            return -math.inf if down else math.inf
    if pa.types.is_decimal(kind):
        if isinstance(value, Decimal):
            return value
        with localcontext() as context:
            context.prec = _DIGITS
            unit = Decimal(1).scaleb(-kind.scale)
            exact = Decimal(value.numerator) / Decimal(value.denominator)
            if down is None:
                return exact.quantize(unit)
            step = -unit if down else unit
            return (exact + step).quantize(unit, ROUND_FLOOR if down else ROUND_CEILING)
    whole = int(math.floor(value) if down else math.ceil(value))
    limit = 1 << (kind.bit_width - 1)
    return whole if -limit <= whole < limit else None


def widths(lows: pa.Array, highs: pa.Array) -> list[float]:
    """How wide bounds are; infinity where one is not known, or they are not numbers."""
    found = []
    for low, high in zip(lows.to_pylist(), highs.to_pylist(), strict=True):
        if low is not None and (low == high or (low != low and high != high)):  # noqa: PLR0124
            found.append(0.0)
        elif isinstance(low, int | float | Decimal) and isinstance(high, int | float | Decimal):
            width = float(high) - float(low)
            found.append(math.inf if math.isnan(width) else width)
        else:
            found.append(math.inf)
    return found
