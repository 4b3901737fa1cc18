"""Histograms of numbers as a column: how many values have which leading bits.

A bucket is a number that orders as its values do: zero is 0, negative values have the buckets of
their sizes with a minus, infinities and NaN have buckets of their own. All is done on bits, so that
no machine rounds a value into another bucket.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin._compiled import compiled
from muntin._typing import Floats, Ints
from muntin.aggregates.algebra import HISTOGRAM, Lowered, Part
from muntin.aggregates.columns.arrow_views import double_bits
from muntin.aggregates.columns.codes import IntegerCoder
from muntin.aggregates.columns.holistic.clustered_windows import windows_of
from muntin.aggregates.columns.holistic.rows import Rows
from muntin.aggregates.columns.holistic.runs import RunColumn

if TYPE_CHECKING:
    from muntin.aggregates.registry import ResolvedAggregate

_MANTISSA = 52
_INFINITE = 0x7FF
_SIZE = (1 << 63) - 1
# Denormals are scaled by 2**54, and their buckets lie below those of normal numbers.
_SCALED, _BELOW = 54, 60
# The least double and the least float are two to the power of minus so many, and the least normal
# float is so many times that.
_DENORMAL, _DENORMAL_FLOAT, _NORMAL_FLOAT = 1074, 149, 1 << 23
_WIDE = Context(prec=400)


class HistogramColumn(RunColumn):
    """The buckets of every cell, sorted, each with how many values it has."""

    @classmethod
    def empty(cls, part: Part, size: int) -> Self:
        """No values."""
        none = np.empty(0, np.int64)
        rows = Rows(np.zeros(size + 1, np.int64), none.reshape(0, 1), none)
        return cls(part, rows, IntegerCoder(pa.int64()), None)

    def codes_of(self, args: tuple[pa.Array, ...], times: Ints | None) -> Ints:
        """The buckets."""
        return buckets_of(args[0], bits_of(self.part)).reshape(-1, 1)

    @classmethod
    def from_arrow(cls, part: Part, batch: pa.RecordBatch) -> Self:
        """The buckets of a snapshot."""
        column = cls.empty(part, batch.num_rows)
        lists = batch.column("value")
        offsets = np.concatenate(([0], np.cumsum(np.diff(lists.offsets.to_numpy()))))
        codes, weights = (
            np.array(batch.column(name).flatten().to_numpy(), np.int64)
            for name in ("value", "weight")
        )
        column.rows = Rows(offsets, codes.reshape(-1, 1), weights)
        return column


def bits_of(part: Part) -> int:
    """How many bits of the mantissa tell the buckets of a part apart."""
    return int(part.kind.removeprefix(HISTOGRAM))


def buckets_of(values: pa.Array, bits: int) -> Ints:
    """The buckets of numbers, by so many bits of their mantissas.

    >>> buckets_of(pa.array([0.0, -0.0]), 6).tolist()
    [0, 0]
    >>> one, near, two = buckets_of(pa.array([1.0, 1.01, 2.0]), 6)
    >>> int(near - one), int(two - one)
    (0, 64)
    """
    return to_buckets(double_bits(values), _MANTISSA - bits)


@compiled
def to_buckets(doubles: Ints, shift: int) -> Ints:
    """The buckets of doubles, given as bits."""
    out = np.empty(doubles.shape[0], np.int64)
    power = np.int64(1) << (_MANTISSA - shift)
    for i in range(doubles.shape[0]):
        size = doubles[i] & _SIZE
        if size >> _MANTISSA == _INFINITE:
            nan = (size & ((np.int64(1) << _MANTISSA) - 1)) != 0
            bucket = (_INFINITE + _BELOW) * power + nan
            out[i] = -bucket if doubles[i] < 0 and not nan else bucket
            continue
        if size == 0:
            out[i] = 0
            continue
        bucket = (size >> shift) + _BELOW * power
        if size >> _MANTISSA == 0:
            scaled = np.float64(np.float64(size) * 2.0**-1020).view(np.int64)
            bucket = (scaled >> shift) + (_BELOW - _SCALED) * power
        out[i] = -bucket if doubles[i] < 0 else bucket
    return out


def middles(buckets: Sequence[int] | Ints, bits: int) -> Floats:
    """The middle of each bucket."""
    return _inside(np.asarray(buckets, np.int64), bits, 1 << (_MANTISSA - bits - 1))


def ends(buckets: Ints, bits: int, *, upper: bool) -> Floats:
    """The least or the greatest number of each bucket, or one just outside of it.

    Integers and decimals may have been rounded into their bucket.
    """
    whole = (1 << (_MANTISSA - bits)) - 1
    far = _inside(buckets, bits, np.where((buckets > 0) == upper, whole, 0))
    found: Floats = np.nextafter(far, np.inf if upper else -np.inf)
    return np.where(np.isfinite(far) & (buckets != 0), found, far)


def _inside(given: Ints, bits: int, fill: int | Ints) -> Floats:
    """The number of each bucket whose other bits are those of ``fill``."""
    shift, power = _MANTISSA - bits, 1 << bits
    place = np.abs(given) - _BELOW * power
    normal = place >= power
    # A power of two of denormals is that of numbers scaled up.
    scaled = np.where(normal, place, place + _SCALED * power)
    doubles = ((np.maximum(scaled, 0) << shift) | fill).view(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        small = _whole(doubles * 2.0 ** (_DENORMAL - _SCALED)) * 2.0**-_DENORMAL
        doubles = np.where(normal, doubles, small)
    infinite = _INFINITE * power
    doubles = np.where(place == infinite, np.inf, doubles)
    doubles = np.where(place == infinite + 1, np.nan, doubles)
    found: Floats = np.where(given == 0, 0.0, np.where(given < 0, -doubles, doubles))
    return found


def _whole(numbers: Floats) -> Floats:
    """The nearest whole numbers; of two the one nearer to zero.

    A half is the middle of a bucket that holds one whole number only, which is where it begins.
    """
    found: Floats = np.copysign(np.ceil(np.abs(numbers) - 0.5), numbers)
    return found


def answers(
    buckets: Sequence[int] | Ints,
    bits: int,
    places: Ints,
    totals: Ints,
    least: pa.Array,
    greatest: pa.Array,
    facet: str = "",
) -> pa.Array:
    """Values at places among so many, from 0 on, of which the first and the last are known.

    With a facet the least, "low", or the greatest, "high", that each can be.
    """
    given = np.asarray(buckets, np.int64)
    middle = ends(given, bits, upper=facet == "high") if facet else middles(given, bits)
    found = within(middle, least, greatest, facet)
    found = pc.if_else(pa.array(places == 0), least, found)
    found = pc.if_else(pa.array(places == totals - 1), greatest, found)
    if pa.types.is_floating(found.type):
        # 0.0 stands for -0.0.
        found = pa.array(found.to_numpy(zero_copy_only=False) + 0, found.type)
    return found


def within(middle: Floats, least: pa.Array, greatest: pa.Array, facet: str = "") -> pa.Array:
    """Numbers as values of the ends' type, and between these; the ends must not be NULL."""
    kind = least.type
    if pa.types.is_decimal(kind):
        return _decimals(middle, least, greatest, facet)
    low, high = (each.to_numpy(zero_copy_only=False) for each in (least, greatest))
    if not pa.types.is_floating(kind):
        limits = np.iinfo(low.dtype)
        whole = {"low": np.ceil, "high": np.floor}.get(facet, _whole)(middle)
        top, bottom = whole >= float(limits.max), whole <= float(limits.min)
        plain = np.where(top | bottom, 0, whole).astype(low.dtype)
        found = np.where(top, limits.max, np.where(bottom, limits.min, plain))
        return pa.array(np.clip(found, low, high).astype(low.dtype), kind)
    with np.errstate(over="ignore"):
        rounded = middle.astype(low.dtype)
        if low.dtype == np.float32:
            steps = middle * 2.0**_DENORMAL_FLOAT
            small = (_whole(steps) * 2.0**-_DENORMAL_FLOAT).astype(low.dtype)
            rounded = np.where(np.abs(steps) < _NORMAL_FLOAT, small, rounded)
    rounded = np.where(rounded < low, low, rounded)
    rounded = np.where(rounded > high, high, rounded)
    return pa.array(rounded, kind)


def _decimals(middle: Floats, least: pa.Array, greatest: pa.Array, facet: str) -> pa.Array:
    """As decimals: one Python number for each different middle."""
    unit = Decimal(1).scaleb(-least.type.scale)
    distinct, places = np.unique(middle, return_inverse=True)
    rounding = {"low": ROUND_CEILING, "high": ROUND_FLOOR}.get(facet)
    made = [Decimal(each).quantize(unit, rounding, _WIDE) for each in distinct.tolist()]
    bounds = zip(least.to_pylist(), greatest.to_pylist(), strict=True)
    found = [
        min(max(made[place], low), high)
        for place, (low, high) in zip(places.tolist(), bounds, strict=True)
    ]
    return pa.array(found, least.type)


def lower_percentiles(aggregate: ResolvedAggregate, columns: Sequence[Any]) -> Lowered:
    """The answers of `approx_percentile`."""
    algebra: Any = aggregate.algebra
    windows = windows_of(columns[0])
    held = np.flatnonzero(windows.totals)
    fractions = np.array([float(p) for p in algebra.fractions])
    totals = np.repeat(windows.totals[held], fractions.size)
    places = np.ceil(totals * np.tile(fractions, held.size)).astype(np.int64) - 1
    asked = np.repeat(held, fractions.size)
    places = np.maximum(places, 0)
    ranks = windows.select(asked, places)
    buckets = windows.codes_at(ranks)[:, 0] if held.size else np.empty(0, np.int64)
    least, greatest = (each.result().take(pa.array(asked)) for each in columns[1:])
    bits = bits_of(aggregate.parts[0])
    values = answers(buckets, bits, places, totals, least, greatest, aggregate.facet)
    if algebra.is_listed:
        offsets = pa.array(fractions.size * np.arange(held.size + 1)).cast(pa.int32())
        values = pa.ListArray.from_arrays(offsets, values, type=aggregate.type)
    at = np.full(len(windows), -1)
    at[held] = np.arange(held.size)
    return Lowered(values.take(pa.array(at, mask=at < 0)))
