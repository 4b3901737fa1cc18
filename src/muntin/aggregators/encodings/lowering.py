"""Answers from sums of limbs, as the aggregates themselves would round them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin._compiled import compiled
from muntin._typing import Bools, Floats, Ints
from muntin.aggregates.columns.lowering import variances
from muntin.aggregates.exact import rounding
from muntin.aggregates.exact.limbs import LOW32, ORIGIN
from muntin.aggregates.sums import Avg

# Rows of lanes, the first lane of the limbs, and where they lie.
Part = tuple[Ints, int, Any]
_NO_DIVISORS = np.zeros(0, np.uint64)


def lower(
    aggregate: Any,
    total: Part,
    squares: Part,
    rows: Ints,
    marks: Ints | None,
    out: npt.NDArray[Any],
) -> Bools | None:
    """The answers of sum, avg, and the spreads; which of them are NULL."""
    if marks is not None:
        rows = marks[:, 0]
    if squares[2] is not None:
        return _lower_spread(aggregate, total, squares, rows, marks, out)
    if pa.types.is_integer(aggregate.type):
        _lower_integers(aggregate.name, total, out)
    else:
        _lower_doubles(total, out)
        if marks is not None:
            _, nans, ups, downs = marks.T
            out[ups > 0] = np.inf
            out[downs > 0] = -np.inf
            out[(nans > 0) | ((ups > 0) & (downs > 0))] = np.nan
        if isinstance(aggregate, Avg):
            out /= np.maximum(rows, 1)
    return None if marks is None else rows == 0


def _lower_doubles(part: Part, out: Floats) -> None:
    lanes, _, limbs = part
    if limbs.count == 0:
        # Only zeros were seen.
        out[:] = 0.0
        return
    if limbs.base < -1074:
        gathered, base = _gathered(part)
        out[:] = rounding.to_doubles(gathered, base).view(np.float64)
        return
    places = limbs.base + limbs.width * np.arange(limbs.count)
    # Far from denormal numbers, room is left above, so that only the answer can overflow.
    lasts = np.where(places >= 0, 2.0**512, 1.0)
    units = np.ldexp(1.0 / lasts, places)
    if limbs.count == 1:
        with np.errstate(over="ignore"):
            out[:] = lanes[:, 0] * units[0] * lasts[0]
    elif limbs.count == 2:
        round_pairs(lanes, limbs.width, units[0], lasts[0], out)
    else:
        round_many(lanes, limbs.count, limbs.width, units, lasts, out)


def _gathered(part: Part) -> tuple[Ints, int]:
    """The exact accumulators' limbs, and the place of the first."""
    lanes, column, limbs = part
    first = max(limbs.base + ORIGIN, 0) >> 5
    end = (max(limbs.top + ORIGIN, 0) >> 5) + 3
    out: Ints = np.zeros((len(lanes), end - first), np.int64)
    gather_limbs(lanes, column, limbs.count, limbs.base, limbs.width, out, first)
    return out, first


def _lower_integers(name: str, part: Part, out: Ints) -> None:
    lanes, column, limbs = part
    if limbs.count < 2:
        out[:] = lanes[:, column] if limbs.count else 0
        return
    gathered, first = _gathered(part)
    words: Ints = np.zeros((len(lanes), 2), np.int64)
    failed = rounding.to_words(gathered, first, words) | (words[:, 1] != words[:, 0] >> 63)
    if failed.any():
        raise OverflowError(f"{name} is outside BIGINT")
    out[:] = words[:, 0]


def _lower_spread(
    aggregate: Any, total: Part, squares: Part, rows: Ints, marks: Ints | None, out: Floats
) -> Bools:
    sums, sum_base = _gathered(total)
    squared, square_base = _gathered(squares)
    bits = variances(
        sums, sum_base, squared, square_base, np.ascontiguousarray(rows), aggregate.ddof,
        _NO_DIVISORS,
    )  # fmt: skip
    out[:] = bits.view(np.float64)
    if marks is not None:
        out[(marks[:, 1:] != 0).any(axis=1)] = np.nan
    if aggregate.name.startswith("stddev"):
        np.sqrt(out, out=out)
    nulls: Bools = rows <= aggregate.ddof
    return nulls


@compiled
def round_pairs(sums: Ints, width: int, unit: float, last: float, out: Floats) -> None:
    """Round sums of two limbs, of which the lower weighs `unit * last`."""
    scale = 2.0**width
    for i in range(len(sums)):
        out[i] = _rounded(sums[i, 0], sums[i, 1], width, scale, unit) * last


@compiled
def round_many(
    sums: Ints, count: int, width: int, units: Floats, lasts: Floats, out: Floats
) -> None:
    """Round sums of `count` limbs, two or more, of which limb k weighs `units[k] * lasts[k]`."""
    scale = 2.0**width
    mask = (1 << width) - 1
    small = 1 << (61 - width)
    settled = np.empty(count, np.int64)
    for i in range(len(sums)):
        carry = 0
        for k in range(count - 1):
            total = sums[i, k] + carry
            settled[k] = total & mask
            carry = total >> width
        high, at = sums[i, count - 1] + carry, count - 1
        while at > 1 and -small < high < small:
            at -= 1
            high = (high << width) + settled[at]
        low = settled[at - 1]
        # The upper two have more bits than a double: of those below only counts whether all are 0.
        for k in range(at - 1):
            low |= np.int64(settled[k] != 0)
        out[i] = _rounded(low, high, width, scale, units[at - 1]) * lasts[at - 1]


@compiled
def _rounded(low: int, high: int, width: int, scale: float, unit: float) -> float:
    """The double nearest to (high * scale + low) * unit; halves go to even.

    Once the carry is settled both limbs are exact doubles, or nearly so, and the one addition of
    the hardware rounds correctly.
    """
    high += low >> width
    low &= (1 << width) - 1
    if -(1 << 53) <= high <= 1 << 53:
        return np.float64(high) * scale * unit + np.float64(low) * unit
    # The upper limb alone has more bits than a double. Whatever lies below its last two bits only
    # tells whether there is a rest, which the last bit of an odd number can say.
    shift = 2 if -(1 << 55) <= high <= 1 << 55 else 0
    high = (high << shift) | (low >> (width - shift))
    high |= int((low & ((1 << (width - shift)) - 1)) != 0)
    return np.float64(high) * (scale / (1 << shift) * unit)


@compiled
def gather_limbs(
    sums: Ints, column: int, count: int, base: int, width: int, out: Ints, first: int
) -> None:
    """Bring limbs onto the 32-bit limbs of the exact accumulators, from limb `first` on."""
    for k in range(count):
        position = base + k * width + ORIGIN
        # Below the grid all bits are zero.
        drop, position = max(-position, 0), max(position, 0)
        at, r = (position >> 5) - first, position & 31
        for i in range(len(sums)):
            limb = sums[i, column + k] >> drop
            low, high = (limb & LOW32) << r, (limb >> 32) << r
            out[i, at] += low & LOW32
            out[i, at + 1] += (low >> 32) + (high & LOW32)
            out[i, at + 2] += high >> 32
