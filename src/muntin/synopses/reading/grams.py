"""What the buckets of a TimeGram say of an aggregate: bounds, and an estimate between them.

*Aggregate Sharing in Stream Databases*, 3.2. A bucket knows how many values it has, and between
which two numbers they lie.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from muntin._typing import Floats, Ints
from muntin.aggregates import ResolvedAggregate
from muntin.aggregates.columns.column import PartColumn
from muntin.aggregates.columns.holistic.histograms import HistogramColumn, bits_of, ends
from muntin.synopses.reading.bounds import fitted

# Sums of so many products are rounded by less than this share of all that is added.
_ROUNDED = 2.0**-40


class _Gram(NamedTuple):
    """The buckets of every row of an answer: whose each is, its count, and its two ends."""

    size: int
    rows: Ints
    counts: Ints
    lows: Floats
    highs: Floats

    @classmethod
    def of(cls, column: PartColumn) -> _Gram:
        assert isinstance(column, HistogramColumn)
        codes, bits = column.rows.codes[:, 0], bits_of(column.part)
        rows = np.repeat(np.arange(len(column)), np.diff(column.rows.offsets))
        lows, highs = (ends(codes, bits, upper=upper) for upper in (False, True))
        return cls(len(column), rows, column.rows.weights, lows, highs)

    @property
    def totals(self) -> Ints:
        """How many values each row has."""
        found: Ints = np.bincount(self.rows, self.counts, self.size).astype(np.int64)
        return found

    def least(self) -> tuple[Floats, Floats]:
        """The ends of each row's first bucket, NaN of a row without one."""
        return self._at(np.searchsorted(self.rows, np.arange(self.size)))

    def greatest(self) -> tuple[Floats, Floats]:
        """The ends of each row's last bucket."""
        return self._at(np.searchsorted(self.rows, np.arange(self.size), side="right") - 1)

    def _at(self, places: Ints) -> tuple[Floats, Floats]:
        held = self.totals > 0
        found = np.full((2, self.size), np.nan)
        found[0, held], found[1, held] = self.lows[places[held]], self.highs[places[held]]
        return found[0], found[1]

    def sums(self, *, optional: bool = False) -> tuple[Floats, Floats]:
        """The least and the greatest that values may add up to; of some of them if optional."""
        lows, highs = self.lows, self.highs
        if optional:
            lows, highs = np.minimum(lows, 0.0), np.maximum(highs, 0.0)
        with np.errstate(invalid="ignore", over="ignore"):
            below, above = (np.bincount(self.rows, each * self.counts, self.size)
                            for each in (lows, highs))  # fmt: skip
            sizes = np.maximum(np.abs(lows), np.abs(highs)) * self.counts
            margin = np.bincount(self.rows, sizes, self.size) * _ROUNDED
            return below - margin, above + margin


def estimate(aggregate: ResolvedAggregate, column: PartColumn) -> pa.Array:
    """What is shown for an aggregate: the middle of what it may be, or a count."""
    gram = _Gram.of(column)
    totals = gram.totals
    if aggregate.name == "count":
        return pa.array(totals)
    below, above = _whole(aggregate.name, gram)
    pairs = zip(below.tolist(), above.tolist(), totals.tolist(), strict=True)
    listed = [
        _middle(low, high, aggregate.type, aggregate.name) if total else None
        for low, high, total in pairs
    ]
    return pa.array(listed, aggregate.type)


def _middle(below: float, above: float, kind: pa.DataType, name: str) -> Any:
    low, high = _pair(below, above, kind, name)
    if low is None or high is None:
        return None
    if isinstance(low, float):
        # The ends of a bucket of what is not a number are equal, and have no middle.
        return high if math.isnan(high) or low == high else low / 2 + high / 2
    if isinstance(low, int):
        return low + (high - low) // 2
    return fitted((Fraction(low) + Fraction(high)) / 2, kind, down=None)


def _whole(name: str, gram: _Gram) -> tuple[Floats, Floats]:
    """The bounds of an aggregate of all values."""
    if name == "max":
        return gram.greatest()
    if name == "min":
        return gram.least()
    below, above = gram.sums()
    if name == "sum":
        return below, above
    totals = np.maximum(gram.totals, 1)
    return below / totals, above / totals


def enclosed_by_gram(
    aggregate: ResolvedAggregate, inner: PartColumn, border: PartColumn
) -> tuple[pa.Array, pa.Array]:
    """The least and the greatest that an aggregate may be, of values surely inside and others."""
    inside, outside = _Gram.of(inner), _Gram.of(border)
    name, kind = aggregate.name, aggregate.type
    counts, others = inside.totals, outside.totals
    if name == "count":
        return pa.array(counts), pa.array(counts + others)
    if name in ("max", "min"):
        below, above = _extremes(name, inside, outside)
    elif name == "sum":
        (low, high), (less, more) = inside.sums(), outside.sums(optional=True)
        below, above = low + less, high + more
    else:
        below, above = _averages(inside, outside)
    known = (counts + others > 0).tolist()
    pairs = zip(below.tolist(), above.tolist(), known, strict=True)
    bounds = [_pair(low, high, kind, name) if each else (None, None) for low, high, each in pairs]
    return pa.array([low for low, _ in bounds], kind), pa.array([high for _, high in bounds], kind)


def _extremes(name: str, inside: _Gram, outside: _Gram) -> tuple[Floats, Floats]:
    """Values that may be there move an extreme one way only."""
    (low, high), (less, more) = ((each.greatest() if name == "max" else each.least())
                                 for each in (inside, outside))  # fmt: skip
    has, may = inside.totals > 0, outside.totals > 0
    # NaN is above all numbers; where there is nothing inside, any value outside may be it.
    if name == "max":
        above = np.where(has & may, _larger(high, more), np.where(has, high, more))
        return np.where(has, low, outside.least()[0]), above
    below = np.where(has & may, _smaller(low, less), np.where(has, low, less))
    return below, np.where(has, high, outside.greatest()[1])


def _larger(a: Floats, b: Floats) -> Floats:
    found: Floats = np.where(np.isnan(a) | (a > b), a, b)
    return found


def _smaller(a: Floats, b: Floats) -> Floats:
    found: Floats = np.where(np.isnan(a) | (b < a), b, a)
    return found


def _averages(inside: _Gram, outside: _Gram) -> tuple[Floats, Floats]:
    """All that may come to an average, at its extreme, moves it furthest."""
    counts, others = inside.totals, outside.totals
    (low, high), (least, greatest) = inside.sums(), (outside.least()[0], outside.greatest()[1])
    none, any_ = counts == 0, others > 0
    least, greatest = (np.where(any_, each, 0.0) for each in (least, greatest))
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        total = np.maximum(counts + others, 1)
        below, above = low / np.maximum(counts, 1), high / np.maximum(counts, 1)
        below = np.where(any_, np.minimum(below, (low + others * least) / total), below)
        above = np.where(any_, np.maximum(above, (high + others * greatest) / total), above)
    return np.where(none, least, below), np.where(none, greatest, above)


def _pair(low: float, high: float, kind: pa.DataType, name: str) -> tuple[Any, Any]:
    if name in ("sum", "avg") and not (math.isfinite(low) and math.isfinite(high)):
        # NaN is above all numbers, as in Spark.
        is_float = pa.types.is_floating(kind)
        return (-math.inf, math.nan) if is_float else (None, None)
    if name in ("max", "min") and pa.types.is_floating(kind):
        return low, high
    if name in ("sum", "avg"):
        return _typed(low, kind, down=True), _typed(high, kind, down=False)
    # A whole number between two numbers lies between the whole ones that they hold.
    return _inward(low, kind, up=True), _inward(high, kind, up=False)


def _inward(value: float, kind: pa.DataType, *, up: bool) -> Any:
    """A bound of a value that its type can hold."""
    unit = 10 ** (kind.scale if pa.types.is_decimal(kind) else 0)
    exact = Fraction(value) * unit
    whole = math.ceil(exact) if up else math.floor(exact)
    if pa.types.is_decimal(kind):
        limit = 10**kind.precision - 1
        return fitted(Fraction(min(max(whole, -limit), limit), unit), kind, down=None)
    least, greatest = _limits(kind)
    return min(max(whole, least), greatest)


def _limits(kind: pa.DataType) -> tuple[int, int]:
    if pa.types.is_unsigned_integer(kind):
        return 0, (1 << kind.bit_width) - 1
    limit = 1 << (kind.bit_width - 1)
    return -limit, limit - 1


def _typed(value: float, kind: pa.DataType, *, down: bool) -> Any:
    """A number in the type of the answer, rounded outward; None where the type cannot hold it."""
    if pa.types.is_floating(kind) or not math.isfinite(value):
        return value if pa.types.is_floating(kind) else None
    if pa.types.is_decimal(kind):
        found = fitted(Fraction(value), kind, down=down)
        return found if abs(found) < 10 ** (kind.precision - kind.scale) else None
    whole = math.floor(value) if down else math.ceil(value)
    least, greatest = _limits(kind)
    return whole if least <= whole <= greatest else None
